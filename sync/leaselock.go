package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock returns the elector's way to the Lease, for one term.
func (l *Lease) lock() *leaseLock {
	return &leaseLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.options.Namespace, Name: l.options.Name},
			Client:     l.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
		},
		owner:  l,
		stolen: make(chan struct{}),
	}
}

// leaseLock tells the Lease what the elector learns: how long writes are safe,
// who else holds it, and what stands in the way.
type leaseLock struct {
	resourcelock.Interface
	owner  *Lease
	stolen chan struct{} // closed when a lease that was ours is so no more; why is in lost

	mu    sync.Mutex // guards what follows
	lost  error      // set before stolen is closed
	ours  bool       // a write of ours succeeded and no other holder was seen since
	renew time.Time  // the time in the last write of ours that succeeded
	tried bool       // a write was sent: the lease may be ours even if the answer got lost
	other bool       // the last look found another holder
}

// Get notices a lease that was taken away. The elector itself would go on
// until RenewDeadline and so long there would be two writers.
func (k *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.Interface.Get(ctx)
	if apierrors.IsNotFound(err) {
		k.owner.sawHolder("")
		return record, raw, err
	}
	if err != nil {
		k.owner.sawProblem(ctx, fmt.Errorf("read: %w", err))
		return record, raw, err
	}
	k.owner.sawHolder(record.HolderIdentity)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.other = record.HolderIdentity != "" && record.HolderIdentity != k.Identity()
	switch {
	case k.ours && k.other:
		k.lose(errLost)
	case k.ours && record.RenewTime.Time.Before(k.renew.Add(-time.Millisecond)): // it is stored to the microsecond
		k.lose(errForgotten)
	}
	return record, raw, nil
}

// lose ends the term, for the first reason there is. The caller holds mu.
func (k *leaseLock) lose(err error) {
	if k.ours = false; k.lost != nil {
		return // the elector goes on until the writers have returned
	}
	k.lost = err
	k.owner.setLeading(false)
	close(k.stolen)
}

// lostTo tells why stolen was closed; errLost if it was not.
func (k *leaseLock) lostTo() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.lost, errLost)
}

// Create writes the first record.
func (k *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(ctx, record, func() error { return k.Interface.Create(ctx, record) })
}

// Update takes over or renews.
func (k *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(ctx, record, func() error { return k.Interface.Update(ctx, record) })
}

func (k *leaseLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func() error) error {
	k.mu.Lock()
	k.tried = true
	k.mu.Unlock()
	sent := time.Now()
	if err := send(); err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			k.owner.sawProblem(ctx, fmt.Errorf("write: %w", err))
		}
		return err
	}
	k.mu.Lock()
	k.ours, k.renew = true, record.RenewTime.Time
	k.mu.Unlock()
	k.owner.renewed(record.HolderIdentity, sent)
	return nil
}

func (k *leaseLock) written() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tried
}

// stoodBy tells whether the elector's last look found another holder.
func (k *leaseLock) stoodBy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.other
}

// renewed extends the time in which writes are safe. A standby counts Duration
// from when it sees the renewal, which is after it was sent; the fifth that is
// left out is for a write that is on its way when the time ends.
func (l *Lease) renewed(holder string, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.problem, l.said = holder, nil, echo{}
	l.validUntil = sent.Add(l.options.Timing.Duration * 4 / 5)
}

// sawHolder notes whose the lease is and says so when that changes.
func (l *Lease) sawHolder(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.problem = holder, nil
	if holder != "" && holder != l.options.Identity && l.said.again(holder, time.Now()) {
		l.options.Log.Info().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("holder", holder).Msg("standing by: the lease is held")
	}
}

// sawProblem notes why the lease cannot be had and says so, again only rarely.
// A request that was given up because the term is over is no problem, and one
// that the elector's patience cut short tells less than the one before.
func (l *Lease) sawProblem(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem != nil && ctx.Err() != nil {
		return
	}
	kind := errors.Unwrap(err).Error() // whatever was being tried
	var transport *url.Error
	switch {
	case errors.As(err, &transport):
		kind = "unreachable"
	case strings.Contains(kind, "serializer for "): // client-go's words for a login page
		err = fmt.Errorf("%w; does something else answer in the API server's place?", err)
	}
	l.problem = err
	if l.said.again(kind, time.Now()) {
		l.options.Log.Warn().Err(err).Str("lease", l.options.Namespace+"/"+l.options.Name).Msg("no word from the lease, trying on")
	}
}
