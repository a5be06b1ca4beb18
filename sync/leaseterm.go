package sync

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
// watches would go on in silence. All that is known goes with the term, and the next
// one begins at once.
var errForgotten = errors.New("the cluster is not what it was")

// term is one candidature: it waits for the lease until waiting ends, runs lead
// under it until ctx ends or the lease is lost, and gives it back. It returns
// whether lead ran. It also returns when somebody else released the lease, so
// that the next term takes it at once and not at the elector's next retry.
//
// The elector's own ReleaseOnCancel is not used: it releases while the context
// of the writers still lives. Here the lease is renewed until lead has returned.
func (l *Lease) term(ctx, waiting context.Context, lead func(context.Context)) (led bool) {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	started := make(chan context.Context, 1)
	lock := l.lock()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          l.options.Name,
		LeaseDuration: l.options.Timing.Duration,
		RenewDeadline: l.options.Timing.RenewDeadline,
		RetryPeriod:   l.options.Timing.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) { started <- held },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil { // only ever a mistake in LeaseTiming
		panic(fmt.Sprintf("%s: %v", l, err))
	}
	var background sync.WaitGroup
	background.Go(func() { elector.Run(electing) })

	watching, unwatch := context.WithCancel(waiting)
	defer unwatch()
	freed := make(chan struct{})
	background.Go(func() { l.watchRelease(watching, lock, freed) })

	select {
	case held := <-started:
		unwatch()
		led = true
		l.lead(ctx, held, lock, lead)
	case <-freed:
	case <-waiting.Done():
	}
	stop()
	unwatch()
	background.Wait()
	if lock.written() {
		l.release()
	}
	return led
}

// lead runs the writers while the lease is held.
func (l *Lease) lead(ctx, held context.Context, lock *leaseLock, lead func(context.Context)) {
	l.setTerm(lock)
	defer l.setTerm(nil)
	l.setLeading(true)
	writing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	returned := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-lock.stolen:
		case <-held.Done():
		case <-returned:
			return
		}
		l.setLeading(false) // the fence first: whoever sees the context end may rely on it
		cancel(lock.lostTo())
	})

	l.options.Log.Info().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("identity", l.options.Identity).Msg("holding the lease: this process is the one writer")
	lead(writing)
	close(returned)
	watch.Wait()
	l.setLeading(false)
	switch cause := context.Cause(writing); {
	case errors.Is(cause, errForgotten):
		l.options.Log.Warn().Str("lease", l.options.Namespace+"/"+l.options.Name).
			Msg("the API server has forgotten what it had stored, as after the restore of a backup: looking at everything anew")
	case errors.Is(cause, errLost):
		l.mu.Lock()
		holder, problem := l.holder, l.problem
		l.mu.Unlock()
		l.options.Log.Error().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("holder", holder).AnErr("error", problem).Msg("lost the lease: all writing has stopped, standing by")
	}
}

// watchRelease closes freed when a lease that the elector saw held is held no more.
// The elector alone would notice up to 2.2 RetryPeriods later. A lease that was free
// from the start is none of its business: the elector is about to take it.
func (l *Lease) watchRelease(ctx context.Context, lock *leaseLock, freed chan<- struct{}) {
	err := wait.PollUntilContextCancel(ctx, l.options.Timing.Poll, false, func(ctx context.Context) (bool, error) {
		lease, err := l.client.Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, nil
		}
		held := err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
		return !held && lock.stoodBy(), nil
	})
	if err == nil {
		close(freed)
	}
}

// releaseTimeout bounds the release: a process that is told to stop has 10 s in all.
const releaseTimeout = 2 * time.Second

// release gives the lease back if this process still has it, so that a standby
// need not wait until it runs out. Failing that is no harm but that wait.
func (l *Lease) release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	leases := l.client.Leases(l.options.Namespace)
	// The elector's last renewal may still be on its way although nobody waits for
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
		l.options.Log.Warn().Err(err).Str("lease", l.options.Namespace+"/"+l.options.Name).Msg("the lease could not be released: a standby takes over when it runs out")
	}
}
