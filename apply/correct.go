package apply

import (
	"context"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

const (
	// correctRetry is the wait after a first correction that failed. It doubles up to
	// correctRetryLast.
	correctRetry     = time.Second
	correctRetryLast = 5 * time.Minute
)

// correction is an object that has drifted.
type correction struct {
	set *Set
	id  manifest.ID
}

// corrector corrects drifted objects, each by one worker at a time. Events that
// come in while an object waits for its turn cost nothing.
type corrector struct {
	cluster *Cluster
	queue   workqueue.TypedDelayingInterface[correction]

	mu sync.Mutex // guards what follows
	// failures count how often a correction has failed; 0 is one that waits for its
	// Namespace.
	failures map[correction]int
}

func newCorrector(c *Cluster) *corrector {
	return &corrector{cluster: c, queue: workqueue.NewTypedDelayingQueue[correction](), failures: map[correction]int{}}
}

// add has an object looked at after a wait.
func (c *corrector) add(s *Set, id manifest.ID, wait time.Duration) {
	c.queue.AddAfter(correction{s, id}, wait)
}

// run corrects until ctx ends.
func (c *corrector) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range cap(c.cluster.writes) {
		workers.Go(func() {
			for {
				next, stopped := c.queue.Get()
				if stopped {
					return
				}
				if ctx.Err() == nil {
					c.do(ctx, next)
				}
				c.queue.Done(next)
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
}

// do corrects one object, and has it tried again if that failed.
func (c *corrector) do(ctx context.Context, next correction) {
	c.mu.Lock()
	c.failures[next] += 0 // what it turns out to wait for may come before that is known
	c.mu.Unlock()
	drifted, again := next.correct(ctx)
	c.mu.Lock()
	switch {
	case drifted == nil && again == placeless:
		c.failures[next] = 0
	case drifted != nil && drifted.Err != nil:
		c.failures[next]++
		drifted.Retry = min(correctRetry<<min(c.failures[next]-1, 16), correctRetryLast)
		again = drifted.Retry
	default:
		delete(c.failures, next)
	}
	c.mu.Unlock()
	if ctx.Err() != nil || next.set.ledger.Entry(next.id) == nil { // the set may be closed by now
		return
	}
	if drifted != nil {
		next.set.report(*drifted)
	}
	if again > 0 {
		c.add(next.set, next.id, again)
	}
}

// retry has those objects looked at now of which a correction failed or waits.
func (c *corrector) retry(matching func(manifest.ID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for next := range c.failures {
		if matching(next.id) {
			c.queue.Add(next)
		}
	}
}

// forget gives up what a set that is closed had waiting.
func (c *corrector) forget(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.failures, func(next correction, _ int) bool { return next.set == s })
}

// placeless is the time after which an object is looked at again whose Namespace is not
// there: none. Its sync holds it back, and whoever sees the Namespace come has it looked at,
// even if no sync gets that far meanwhile.
const placeless = time.Duration(-1)

// correct applies one object again if it is still not as it was sent. It returns what
// is to be reported of that, nil for nothing, and after which time it has to be looked at
// again, if it has.
func (c correction) correct(ctx context.Context) (outcome *Drift, again time.Duration) {
	e := c.set.ledger.Entry(c.id)
	if e == nil || e.Begin(ctx) != nil {
		return nil, 0
	}
	defer c.set.end(e)
	if c.homeless() {
		c.set.wake() // the sync will leave it pending, or wait for its Namespace
		return nil, placeless
	}
	live, there, entries, err := c.lookClosely(ctx)
	if err != nil {
		drifted := Drift{Repo: c.set.options.Name, ID: c.id, What: ledger.Missing.String(), Err: err}
		return &drifted, 0
	}
	is := c.set.ledger.Drifted(e, live, there, entries, time.Now())
	switch {
	case !is.Due, !c.set.mayCorrect(), is.Is == ledger.AsSent, is.Is == ledger.Terminating, live.Stopped(is.Object.Annotations()):
		return nil, 0
	case is.Is == ledger.Elsewhere:
		c.set.wake() // the sync will refuse it, and say so
		return nil, 0
	case is.Wait > 0:
		return nil, is.Wait
	}
	drifted := c.set.driftOf(c.id, is.Drift)
	if err := c.send(ctx, e, is.Object); err != nil {
		switch { // since a moment ago: the sync will leave it pending
		case kube.LacksNamespace(err):
			c.set.wake()
			return nil, placeless
		case kube.LacksKind(err):
			c.set.cluster.distrustKinds()
			c.set.wake()
			return nil, 0
		}
		drifted.Err = err
		return &drifted, 0
	}
	drifted.Corrected = true
	var now types.UID
	if now, drifted.Retry, drifted.Conflict = c.set.ledger.Corrected(e, time.Now()); now != is.UID {
		c.set.wake() // the parent has to record the new object as ours
	}
	return &drifted, 0
}

// homeless reports whether the object's Namespace is not there, or is being deleted.
func (c correction) homeless() bool {
	w := c.set.cluster.watched()
	if c.id.Namespace == "" || w == nil {
		return false
	}
	if current, _, _ := w.namespaces.State(); !current {
		return false
	}
	ns, there := w.namespaces.Get(c.id.Namespace)
	return !there || ns.terminating
}

// send applies an object as git has it, on the terms of the last plan.
func (c correction) send(ctx context.Context, e *ledger.Entry, o manifest.Object) error {
	if earlier := c.set.ledger.Rejected(o); earlier != nil {
		return earlier
	}
	k, err := c.set.cluster.currentKinds(ctx)
	if err != nil {
		return err
	}
	served, found := k.Served[o.GroupVersionKind()]
	if !found {
		return kube.ErrNotServed
	}
	answer, _, err := c.set.sending(nil, served, o, soon()).do(ctx)
	if err != nil {
		return c.set.judge(o, served, err)
	}
	c.set.wrote(e, o, answer.Live, observed.NewMember(o.ID().GroupKind(), served.GVR, answer.Live))
	return nil
}

// lookClosely returns what is known of a live object. One that is not seen may only
// have lost its label, which looks the same on a watch as being deleted: that is
// asked, and who wrote it last.
func (c correction) lookClosely(ctx context.Context) (live observed.Member, there bool, writers []metav1.ManagedFieldsEntry, err error) {
	live, there, _ = c.set.look(c.id)
	if there {
		return live, true, nil, nil
	}
	k, err := c.set.cluster.currentKinds(ctx)
	if err != nil {
		return observed.Member{}, false, nil, err
	}
	served, found := k.Lookup(c.id.GroupKind())
	if !found {
		return observed.Member{}, false, nil, nil
	}
	meta, err := c.set.client.GetMetadata(ctx, served.GVR, c.id.Namespace, c.id.Name)
	switch {
	case apierrors.IsNotFound(err):
		return observed.Member{}, false, nil, nil
	case err != nil:
		return observed.Member{}, false, nil, kube.Explain(err, c.id.Group, served.GVR.Resource, c.set.options.Tier)
	}
	live = observed.NewMember(c.id.GroupKind(), served.GVR, meta)
	if live.Set == "" {
		live.Set = c.set.id // without any label it is as good as ours; applying puts the label back
	}
	return live, true, meta.ManagedFields, nil
}
