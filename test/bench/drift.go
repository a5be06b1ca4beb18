package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubesync/kubesync/test/lab/daemon"
)

// foreign is what another writer makes a ConfigMap say.
const foreign = "changed by another writer"

// injury is an object that drifted, and when.
type injury struct {
	since  time.Time // its watch event: changed, or deleted
	healed time.Time
}

// drift measures how fast drift is put right, and that nothing else is touched.
func drift(ctx context.Context, l *lab) ([]line, error) {
	objects, url, err := l.newSet("drift", configMaps, l.configs)
	if err != nil {
		return nil, err
	}
	s, err := l.newSite(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	// No interval comes in between: what is healed was seen.
	d, err := l.start(s.on(url), daemon.Env{"INTERVAL": "1h"})
	if err != nil {
		return nil, err
	}
	defer d.Kill()
	if _, err := d.synced(ctx, 1, ""); err != nil {
		return nil, err
	}
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	var times series
	var wrong []request
	hurt, healed := 0, 0
	picks := newGenerator(l.seed)
	for round := range l.driftRounds {
		r := newHarm(s, picks.choose(objects, l.drifted))
		if err := r.run(ctx, l.patience); err != nil {
			return nil, err
		}
		times = append(times, r.times()...)
		hurt, healed = hurt+len(r.victims), healed+len(r.times())
		requests, err := s.requests(ctx, serviceAccount("kubesync"), r.mark)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, r.unneeded(work(requests))...)
		l.Say("  round %d of %d: %d of %d healed", round+1, l.driftRounds, len(r.times()), len(r.victims))
	}
	all := exactly("objects healed, a tenth of them deleted before", healed, hurt, fmt.Sprintf("waited up to %s", l.patience))
	unneeded := exactly("requests for objects that did not drift", len(wrong), 0, examples(wrong))
	if healed < hurt {
		return []line{{what: "99 % healed within", ours: "never", target: "≤ 1 s", met: "no"}, all, unneeded}, d.Stop(ctx)
	}
	slow := within(fmt.Sprintf("99 %% healed within (%d of %d objects at once)", l.drifted, l.configs), times.quantile(0.99), 1, seconds)
	slow.ours += ", median " + seconds(times.median())
	return []line{slow, all, unneeded}, d.Stop(ctx)
}

// keyOfMap names a ConfigMap: "namespace/name".
func keyOfMap(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

// harm is one round: objects that are changed or deleted all at once.
type harm struct {
	*site
	victims []*unstructured.Unstructured
	wanted  map[string]string // what the victims say in git
	mark    int64

	mu       sync.Mutex // guards what follows
	injuries map[string]injury
}

func newHarm(s *site, victims []*unstructured.Unstructured) *harm {
	h := &harm{site: s, victims: victims, wanted: map[string]string{}, injuries: map[string]injury{}}
	for _, o := range victims {
		h.wanted[keyOfMap(o)] = greetingOf(o)
	}
	return h
}

// run does the harm and waits until all of it is put right, or patience ends.
func (h *harm) run(ctx context.Context, patience time.Duration) error {
	var err error
	if h.mark, err = h.site.mark(ctx); err != nil {
		return err
	}
	maps := h.dynamic.Resource(resourceOf(h.victims[0].GroupVersionKind()))
	list, err := maps.List(ctx, metav1.ListOptions{Limit: 1}) // for where to watch from
	if err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return fmt.Errorf("watch ConfigMaps: %w", err)
	}
	defer events.Stop()
	done := make(chan error, 1)
	go func() { done <- h.watch(ctx, events.ResultChan(), patience) }()
	if err := h.hurt(ctx); err != nil {
		return err
	}
	return <-done
}

// hurt changes all victims, and deletes every tenth, all at once.
func (h *harm) hurt(ctx context.Context) error {
	errs := make(chan error, len(h.victims))
	for i, o := range h.victims {
		go func() {
			maps := h.dynamic.Resource(resourceOf(o.GroupVersionKind())).Namespace(o.GetNamespace())
			if i%10 == 9 {
				errs <- maps.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
				return
			}
			_, err := maps.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"data":{"greeting":"`+foreign+`"}}`),
				metav1.PatchOptions{FieldManager: "another"})
			errs <- err
		}()
	}
	for range h.victims {
		if err := <-errs; err != nil {
			return fmt.Errorf("making objects drift: %w", err)
		}
	}
	return nil
}

// watch notes when victims drift and when they are as git has them again.
func (h *harm) watch(ctx context.Context, events <-chan watch.Event, patience time.Duration) error {
	late := time.After(patience)
	for len(h.times()) < len(h.victims) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return nil
		case event, open := <-events:
			if !open {
				return fmt.Errorf("the watch on ConfigMaps ended")
			}
			if live, ok := event.Object.(*unstructured.Unstructured); ok {
				h.see(live, event.Type == watch.Deleted)
			}
		}
	}
	return nil
}

func (h *harm) see(live *unstructured.Unstructured, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := keyOfMap(live)
	wanted, victim := h.wanted[key]
	if !victim {
		return
	}
	i := h.injuries[key]
	switch {
	case deleted || greetingOf(live) == foreign:
		i.since = time.Now()
	case !i.since.IsZero() && i.healed.IsZero() && greetingOf(live) == wanted:
		i.healed = time.Now()
	}
	h.injuries[key] = i
}

// times returns how long it took to heal each object that was healed.
func (h *harm) times() series {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all series
	for _, i := range h.injuries {
		if !i.healed.IsZero() {
			all.add(i.healed.Sub(i.since))
		}
	}
	return all
}

// unneeded returns the requests that are about other objects of the set, or about
// all of a kind. What is about the set as a whole, in kube-system, may be asked.
func (h *harm) unneeded(requests []request) []request {
	var wrong []request
	for _, r := range requests {
		key := r.ObjectRef.Namespace + "/" + r.ObjectRef.Name
		if _, victim := h.wanted[key]; !victim && !strings.HasPrefix(key, "kube-system/") {
			wrong = append(wrong, r)
		}
	}
	return wrong
}
