package lease

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

	"github.com/kubesync/kubesync/internal/backoff"
)

// newLock returns the elector's way to the Lease, for one candidacy.
func (l *Lease) newLock() *electorLock {
	return &electorLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.options.Namespace, Name: l.options.Name},
			Client:     l.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
		},
		owner:  l,
		stolen: make(chan struct{}),
	}
}

// electorLock passes on to the Lease what the elector learns: how long writes are safe,
// who else holds it, and what stands in the way.
type electorLock struct {
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
// until electorPatience and so long there would be two writers.
func (k *electorLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.get(ctx)
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

// lose ends the leadership, for the first reason there is. The caller holds mu.
func (k *electorLock) lose(err error) {
	if k.ours = false; k.lost != nil {
		return // the elector goes on until the writers have returned
	}
	k.lost = err
	k.owner.setLeading(false)
	close(k.stolen)
}

// lostTo returns why stolen was closed; errLost if it was not.
func (k *electorLock) lostTo() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.lost, errLost)
}

// get reads the Lease, which no admission webhook slows down.
func (k *electorLock) get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, k.owner.readTimeout())
	defer cancel()
	return k.Interface.Get(ctx)
}

// runOut ends the leadership if the lease was not renewed in time.
func (k *electorLock) runOut() {
	if time.Now().Before(k.owner.mayWriteUntil()) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose(errLost)
}

// Create writes the first record.
func (k *electorLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(ctx, record, k.Interface.Create)
}

// Update takes over or renews.
func (k *electorLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return k.write(ctx, record, k.Interface.Update)
}

// write writes the record, and says in it how long the Lease lasts. If that turns out to
// be too short for the next write, it writes once more: no one is the writer before
// there is time for a renewal.
func (k *electorLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	k.mu.Lock()
	k.tried = true
	k.mu.Unlock()
	for lasting := k.owner.lasting(); ; lasting = k.owner.lasting() {
		sent := time.Now()
		record.RenewTime = metav1.NewTime(sent)
		record.LeaseDurationSeconds = int(lasting / time.Second)
		if err := k.owner.send(ctx, sent, lasting, func(ctx context.Context) error { return send(ctx, record) }); err != nil {
			if !errors.Is(err, errTooLate) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
				k.owner.sawProblem(ctx, fmt.Errorf("write: %w", err))
			}
			return err
		}
		k.mu.Lock()
		k.renew = record.RenewTime.Time
		k.mu.Unlock()
		k.owner.renewed(record.HolderIdentity, sent, lasting)
		if k.owner.lasting() <= lasting {
			break
		}
		send = k.Interface.Update
	}
	k.mu.Lock()
	k.ours = true
	k.mu.Unlock()
	return nil
}

// send sends one write of a Lease that is to last so long.
func (l *Lease) send(ctx context.Context, sent time.Time, lasting time.Duration, do func(context.Context) error) error {
	until := l.sending(sent, lasting)
	if !sent.Before(until) {
		return errTooLate
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	stopLooking := l.suspectWhenSlow(ctx)
	err := do(ctx)
	stopLooking()
	took := time.Since(sent)
	if err == nil {
		l.wrote(took)
		return nil
	}
	l.mu.Lock()
	why := l.suspicion
	l.mu.Unlock()
	if (errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err)) && !why.looked.Before(sent) && why.readable {
		err = &slowError{after: took, why: why, err: err}
	}
	return err
}

// errTooLate is a renewal that is not even sent, as the lease runs out: it explains nothing.
var errTooLate = errors.New("the lease runs out")

// slowError is a write of the Lease that got no answer while reads do.
type slowError struct {
	after time.Duration
	why   suspicion
	err   error
}

// Error says why, as far as it is known.
func (e *slowError) Error() string {
	return fmt.Sprintf("no answer within %s: %s", e.after.Round(time.Second), e.why)
}

// Unwrap returns what the API server said.
func (e *slowError) Unwrap() error { return e.err }

func (k *electorLock) written() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tried
}

// heldByOther reports whether the elector's last look found another holder.
func (k *electorLock) heldByOther() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.other
}

// sending returns when to give up a write of a Lease that is to last so long. It may be
// stored even if its answer is lost, and standbys go by what is stored: so nothing is
// written to the cluster beyond the time that it grants, though an earlier renewal has
// granted more. While this process leads, a write that is answered after that time is of
// no use; a little before, it shall be known why it failed.
func (l *Lease) sending(sent time.Time, lasting time.Duration) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := sent.Add(valid(lasting)); until.Before(l.validUntil) {
		l.validUntil = until
	}
	if !l.leading {
		return sent.Add(takeTimeout)
	}
	return l.validUntil.Add(-l.options.Timing.Duration / 50)
}

// renewed extends the time in which writes are safe.
func (l *Lease) renewed(holder string, sent time.Time, lasting time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder, l.problem, l.loggedHolder, l.loggedProblem = holder, nil, backoff.Repeat{}, backoff.Repeat{}
	l.validUntil = sent.Add(valid(lasting))
}

// mayWriteUntil returns when the lease runs out if it is not renewed.
func (l *Lease) mayWriteUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.validUntil
}

// lasting returns how long the Lease has to last, given how long its last writes took.
func (l *Lease) lasting() time.Duration { return l.options.Timing.lasting(l.slowestWrite()) }

// slowestWrite returns how long the slowest of the last writes took.
func (l *Lease) slowestWrite() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.slowest()
}

// readTimeout bounds a read of the Lease.
func (l *Lease) readTimeout() time.Duration { return l.options.Timing.Duration / 3 }

// wrote notes how long a write took, and says so where it was slow.
func (l *Lease) wrote(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace = l.pace.with(took)
	switch timing := l.options.Timing; {
	case timing.slow(took) && l.loggedSlow.Due("slow", time.Now()):
		l.options.Log.Warn().Str("lease", l.options.Namespace+"/"+l.options.Name).Stringer("took", took.Round(time.Second)).
			Stringer("lasts", timing.lasting(l.pace.slowest())).Str("reason", l.suspicion.String()).
			Msg("writing the lease takes long: it lasts longer, and a standby takes over later after a crash")
	case !timing.slow(l.pace.slowest()):
		l.loggedSlow = backoff.Repeat{}
	}
}

// sawHolder notes whose the lease is and says so when that changes. That it can be read
// solves no problem of writing it, unless it is another's to write.
func (l *Lease) sawHolder(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = holder
	if holder == "" || holder == l.options.Identity {
		return
	}
	if l.problem = nil; l.loggedHolder.Due(holder, time.Now()) {
		l.options.Log.Info().Str("lease", l.options.Namespace+"/"+l.options.Name).Str("holder", holder).Msg("on standby: another process holds the lease")
	}
}

// sawProblem notes why the lease cannot be had and says so, again only rarely.
// A request that was given up because the candidacy is over is no problem, and one
// that the elector's patience cut short says less than the one before.
func (l *Lease) sawProblem(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.problem != nil && ctx.Err() != nil {
		return
	}
	kind, err := l.classify(err)
	l.problem = err
	if l.loggedProblem.Due(kind, time.Now()) {
		l.options.Log.Warn().Err(err).Str("lease", l.options.Namespace+"/"+l.options.Name).Msg("cannot renew the lease, retrying")
	}
}

// classify returns what one problem has in common with others that need not be said
// again after it, whatever was being tried, and the error with what to do about it.
func (l *Lease) classify(err error) (string, error) {
	var transport *url.Error
	var slow *slowError
	switch {
	case isDenied(err):
		return "denied", fmt.Errorf("%w: kubesync needs get, create and update on leases.coordination.k8s.io in the namespace %s: bind a Role with these rights to it, as deploy/components/restricted/rbac.yaml does", err, l.options.Namespace)
	case errors.As(err, &slow):
		return "slow", err
	case errors.As(err, &transport):
		return "unreachable", err
	}
	kind := errors.Unwrap(err).Error()             // whatever was being tried
	if strings.Contains(kind, "serializer for ") { // client-go's words for a login page
		err = fmt.Errorf("%w; does something else answer in the API server's place?", err)
	}
	return kind, err
}

// failedSlowly reports whether the last thing known of the Lease is a write without an answer.
func (l *Lease) failedSlowly() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var slow *slowError
	return errors.As(l.problem, &slow)
}

// isDenied reports whether the API server's authorization has refused a request. An
// admission webhook that says no uses the same status.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `User "`) && strings.Contains(err.Error(), " cannot ")
}
