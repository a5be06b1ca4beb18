package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	clientretry "k8s.io/client-go/util/retry"
)

// errLost is the cause of the context of a lead function that must stop because
// another may write from now on.
var errLost = errors.New("the lease is lost")

// errForgotten is the cause where the Lease is as it was before a renewal that the API
// server has confirmed: then a backup of etcd was restored, and nothing that is known
// of the cluster holds any more. Versions of objects are given out a second time, so
// watches would go on in silence. All that is known goes with the leadership, and the next
// candidacy begins at once.
var errForgotten = errors.New("the cluster is not what it was")

// electorPatience is how long the elector itself goes on without a renewal: for longer than
// any lease lasts, as it is judged here how long that is.
const electorPatience = time.Hour

// candidacy says how long to wait for the lease, and what follows.
type candidacy struct {
	waiting context.Context // ends the wait for the lease
	again   bool            // another candidacy follows, unless the process ends
}

// stand is one candidacy: it waits for the lease until waiting ends, runs lead
// under it until ctx ends or the lease is lost, and gives it back. It returns
// whether lead ran. It also returns when another process released the lease, so
// that the next candidacy takes it at once and not at the elector's next retry.
//
// The elector's own ReleaseOnCancel is not used: it releases while the context
// of the writers still lives. Here the lease is renewed until lead has returned.
func (l *Lease) stand(ctx context.Context, how candidacy, lead func(context.Context)) (led bool) {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	started := make(chan context.Context, 1)
	lock := l.newLock()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          l.options.Name,
		LeaseDuration: 2 * electorPatience, // what is written is up to electorLock
		RenewDeadline: electorPatience,
		RetryPeriod:   l.options.Timing.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) { started <- held },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil { // only ever a mistake in Timing
		panic(fmt.Sprintf("%s: %v", l, err))
	}
	var background sync.WaitGroup
	background.Go(func() { elector.Run(electing) })

	watching, unwatch := context.WithCancel(how.waiting)
	defer unwatch()
	freed := make(chan struct{})
	background.Go(func() { l.watchRelease(watching, lock, freed) })

	select {
	case held := <-started:
		unwatch()
		led = true
		l.lead(ctx, held, lock, lead)
	case <-freed:
	case <-how.waiting.Done():
	}
	stop()
	unwatch()
	background.Wait()
	if lock.written() {
		l.release(how.again && ctx.Err() == nil)
	}
	return led
}

// lead runs the writers while the lease is held.
func (l *Lease) lead(ctx, held context.Context, lock *electorLock, lead func(context.Context)) {
	l.setLock(lock)
	defer l.setLock(nil)
	l.setLeading(true)
	writing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	returned := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		if !l.lost(held, lock, returned) {
			return
		}
		l.setLeading(false) // the fence first: whoever sees the context end may rely on it
		cancel(lock.lostTo())
	})

	l.options.Log.Info().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("identity", l.options.Identity).Msg("became leader: this process holds the lease and writes")
	lead(writing)
	close(returned)
	watch.Wait()
	l.setLeading(false)
	switch cause := context.Cause(writing); {
	case errors.Is(cause, errForgotten):
		l.options.Log.Warn().Str("lease", l.options.Namespace+"/"+l.options.Name).
			Msg("the API server has forgotten what it had stored, as after the restore of a backup: reading everything again")
	case errors.Is(cause, errLost):
		l.mu.Lock()
		holder, problem := l.holder, l.problem
		l.mu.Unlock()
		l.options.Log.Error().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("holder", holder).AnErr("error", problem).Msg("lost the lease: all writing has stopped, on standby")
	}
}

// lost waits until the lease is lost: to another, or because it was not renewed in time.
// It returns false if the writers have returned before.
func (l *Lease) lost(held context.Context, lock *electorLock, returned <-chan struct{}) bool {
	for {
		select {
		case <-returned:
			return false
		case <-lock.stolen:
			return true
		case <-held.Done():
			return true
		case <-time.After(time.Until(l.mayWriteUntil())):
			lock.runOut()
		}
	}
}

// watchRelease closes freed when a lease that the elector saw held is held no more.
// The elector alone would notice up to 2.2 RetryPeriods later. A lease that was free
// from the start is none of its business: the elector is about to take it.
func (l *Lease) watchRelease(ctx context.Context, lock *electorLock, freed chan<- struct{}) {
	err := wait.PollUntilContextCancel(ctx, l.options.Timing.Poll, false, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, l.readTimeout())
		defer cancel()
		lease, err := l.client.Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, nil
		}
		held := err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
		return !held && lock.heldByOther(), nil
	})
	if err == nil {
		close(freed)
	}
}

// release gives the lease back if this process still has it, so that a standby
// need not wait until it runs out. Failing that is no harm but that wait. again says
// that this process tries to take it at once: then it is not worth a slow write.
func (l *Lease) release(again bool) {
	log := l.options.Log.With().Str("lease", l.options.Namespace+"/"+l.options.Name).Logger()
	slowest := l.slowestWrite()
	timeout, useful := releaseTime(slowest)
	switch slow := timeout > releaseTimeout; {
	case again && (slow || l.failedSlowly()):
		return
	case !useful:
		log.Warn().Stringer("took", slowest.Round(time.Second)).
			Msg("the lease is not released, as writing it takes longer than a process has that stops: a standby takes over when it runs out")
		return
	case slow:
		log.Info().Stringer("took", slowest.Round(time.Second)).Msg("releasing the lease")
		l.releasing.Store(true)
		defer l.releasing.Store(false)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	leases := l.client.Leases(l.options.Namespace)
	// The elector's last renewal may still be on its way although no one waits for
	// its answer any more: it conflicts with this, or this with it.
	err := clientretry.RetryOnConflict(clientretry.DefaultRetry, func() error {
		lease, err := leases.Get(ctx, l.options.Name, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != l.options.Identity {
			return err
		}
		lease.Spec.HolderIdentity = nil
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		log.Warn().Err(err).Msg("cannot release the lease: a standby takes over when it expires")
	}
}
