package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/apply/parent"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of observing another writer's Lease.
const (
	// observeEvery is the time between two looks at a Lease that is being observed.
	observeEvery = time.Second
	// observeInLine is how long one sync waits at most for a Lease to prove dead or alive:
	// as long as one lasts that every write takes ten seconds longer, and thus enough for
	// ONCE, which remembers nothing. A live writer ends the wait with its next renewal.
	observeInLine = time.Minute + 5*time.Second
	// leaseDefault is how long a Lease that does not say it counts as held.
	leaseDefault = 15 * time.Second
)

// leaseState is what can be seen of a Lease. Times in it are the writer's, whose clock
// may be wrong: they serve to see a change, and are never compared with ours.
type leaseState struct {
	holder  string
	renewed string // the time as the writer gives it
	version string // resourceVersion
	lasts   time.Duration
}

// observation is a state and since when, by our own clock, it is known to be unchanged.
type observation struct {
	state leaseState
	since time.Time
}

// leaseVerdict says whether the holder of a Lease writes.
type leaseVerdict int

const (
	leaseFree     leaseVerdict = iota // no one holds it, or the holder has not renewed it in time
	leaseHeld                         // it has changed under our eyes
	leaseObserved                     // it has not changed, but not for long enough to judge
)

// judgeLease decides as leader election does: a holder that has not touched its Lease
// for as long as the Lease lasts, by our own monotonic clock, is none any more. before is
// the last observation, zero if there is none; the state was asked for and answered at
// the times given: it was so at some moment between them, and counts from the later and
// up to the earlier one. What is returned besides is the observation to keep, and how
// much longer the Lease has to stay as it is to count as free.
func judgeLease(before observation, seen leaseState, asked, answered time.Time) (observation, leaseVerdict, time.Duration) {
	fresh := observation{state: seen, since: answered}
	switch {
	case seen.holder == "":
		return fresh, leaseFree, 0
	case before.since.IsZero():
		return fresh, leaseObserved, seen.lasts
	case before.state != seen:
		return fresh, leaseHeld, seen.lasts
	}
	if rest := seen.lasts - asked.Sub(before.since); rest > 0 {
		return before, leaseObserved, rest
	}
	return before, leaseFree, 0
}

// stateOf returns what can be seen of a Lease.
func stateOf(lease *coordinationv1.Lease) leaseState {
	state := leaseState{version: lease.ResourceVersion, lasts: leaseDefault}
	if lease.Spec.HolderIdentity != nil {
		state.holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		state.renewed = lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		state.lasts = time.Duration(*seconds) * time.Second
	}
	return state
}

// WriterError says that another kubesync writes the set, or may do so.
type WriterError struct {
	Set    string // the parent
	Lease  string // the Lease that its writer holds
	Holder string // who holds it
	// Since is when the Lease was first seen as it is; zero if it has changed since it
	// is observed, which only a live writer does.
	Since time.Time
	Rest  time.Duration // how much longer it has to stay as it is to count as dead
}

// Error implements error.
func (e *WriterError) Error() string {
	text := fmt.Sprintf("another kubesync writes the set %s: it holds Lease %s as %s", e.Set, e.Lease, e.Holder)
	if e.Since.IsZero() {
		return text + " and renews it; stop it, or give this repo another name"
	}
	return fmt.Sprintf("%s, unchanged since it is observed, %s: it counts as dead in %s; if it lives, stop it, or give this repo another name",
		text, e.Since.UTC().Format(time.RFC3339), e.Rest.Round(time.Second))
}

// unwatched says the same where there is no waiting to see whether the writer lives.
func (e *WriterError) unwatched() string {
	return fmt.Sprintf("another kubesync may write the set %s: it took Lease %s as %s and has not released it; a dry run cannot tell whether it still runs, as that takes %s of watching",
		e.Set, e.Lease, e.Holder, e.Rest.Round(time.Second))
}

// checkWriter refuses a set whose recorded writer is another Lease that is held. One that
// is seen for the first time is observed in line.
func (s *Set) checkWriter(ctx context.Context, p parent.Parent) error {
	before := s.cluster.observedWriter(p.Data(parent.DataWriter))
	kept, held, err := s.lookAtWriter(ctx, p, before)
	if err != nil || held == nil {
		return err
	}
	if !before.since.IsZero() {
		return held
	}
	s.options.Log.Info().Str("lease", held.Lease).Str("holder", held.Holder).Stringer("at_most", min(held.Rest, observeInLine)).
		Msg("observing the Lease of the set's recorded writer, which may still write")
	for end := time.Now().Add(observeInLine); !held.Since.IsZero() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(observeEvery, held.Rest)):
		}
		if kept, held, err = s.lookAtWriter(ctx, p, kept); err != nil || held == nil {
			return err
		}
	}
	return held
}

// lookAtWriter looks once at the Lease of a set's recorded writer, given what was seen of
// it before, and remembers what it saw. The error for a writer is nil if there is none.
func (s *Set) lookAtWriter(ctx context.Context, p parent.Parent, before observation) (observation, *WriterError, error) {
	recorded := p.Data(parent.DataWriter)
	if recorded == "" || recorded == s.cluster.options.Writer {
		return observation{}, nil, nil
	}
	asked := time.Now()
	lease, err := s.cluster.typed.CoordinationV1().Leases(s.cluster.options.OwnNamespace).Get(ctx, recorded, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return observation{}, nil, nil
	case err != nil:
		return before, nil, fmt.Errorf("read Lease %s, which the writer of set %s holds: %w", recorded, s.parentRef(), err)
	}
	seen := stateOf(lease)
	kept, verdict, rest := judgeLease(before, seen, asked, time.Now())
	s.cluster.keepWriter(recorded, kept)
	if verdict == leaseFree {
		return kept, nil, nil
	}
	held := &WriterError{Set: s.parentRef(), Lease: recorded, Holder: seen.holder, Rest: rest}
	if verdict == leaseObserved {
		held.Since = kept.since
	}
	return kept, held, nil
}

// observedWriter returns what was last seen of another writer's Lease, zero if nothing was.
func (c *Cluster) observedWriter(lease string) observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writers[lease]
}

// keepWriter remembers what was seen of another writer's Lease. Several sets may look at
// one: of the same state the earliest sight counts.
func (c *Cluster) keepWriter(lease string, seen observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.writers[lease]; known.state != seen.state || known.since.IsZero() {
		c.writers[lease] = seen
	}
}
