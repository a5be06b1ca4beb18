package sync

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clientretry "k8s.io/client-go/util/retry"
)

// LeaseTiming says how fast a standby takes over. A holder that crashed is
// followed after Duration plus at most 2.2 RetryPeriods (the elector's jitter),
// 20 s by default; one that stopped cleanly within a Poll. A holder that cannot
// renew stops writing RenewDeadline after it first tried, hence
// RetryPeriod+RenewDeadline must be well below Duration.
type LeaseTiming struct {
	Duration      time.Duration // how long a standby waits for a sign of life
	RenewDeadline time.Duration // how long the holder tries to renew before it gives up
	RetryPeriod   time.Duration // between two renewals, and two attempts to take over
	Poll          time.Duration // how often a standby looks whether the lease was released
}

// DefaultLeaseTiming is what Kubernetes' own controllers use, plus the poll.
func DefaultLeaseTiming() LeaseTiming {
	return LeaseTiming{Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, Poll: time.Second}
}

// How often everything may be looked at anew because the API server has gone back.
const (
	anewAtOnce   = 5
	anewInterval = 10 * time.Minute
)

// LeaseOptions name the Lease that makes a process the one writer.
type LeaseOptions struct {
	Config    *rest.Config
	Namespace string
	Name      string
	Identity  string // of this process; empty: host name (in a pod the pod's) and a random part
	UserAgent string
	Timing    LeaseTiming
	Log       zerolog.Logger
}

// Lease is this process's claim to be the one writer. All writing happens inside
// the function handed to Run or Once, under the context that function gets.
type Lease struct {
	options LeaseOptions
	client  coordinationv1.LeasesGetter
	anew    *rarely

	mu         sync.Mutex // guards what follows
	leading    bool
	validUntil time.Time  // writes are let through the fence before this
	under      *leaseLock // the term under way; nil while somebody else writes
	holder     string     // last one seen
	problem    error      // why the Lease could not be read or written last time
	said       echo
}

// NewLease builds the client of its own that the Lease needs: one that is never
// fenced, and that gives up early enough for a second try before the lease is
// lost. Nothing is sent.
func NewLease(options LeaseOptions) (*Lease, error) {
	if options.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this process in the Lease: %w", err)
		}
		options.Identity = host + "_" + rand.Text()
	}
	config := rest.CopyConfig(options.Config)
	config.UserAgent = options.UserAgent
	config.Timeout = options.Timing.RenewDeadline / 2
	config.QPS = -1 // the elector paces itself, and waiting for the limiter would hide why it fails
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build the client for Lease %s/%s: %w", options.Namespace, options.Name, err)
	}
	return &Lease{options: options, client: client, anew: newRarely(anewAtOnce, anewInterval)}, nil
}

// String returns "Lease namespace/name".
func (l *Lease) String() string {
	return "Lease " + l.options.Namespace + "/" + l.options.Name
}

// Leading tells whether this process holds the lease, and who held it when it
// was last seen. A standby is as ready as a leader.
func (l *Lease) Leading() (leading bool, holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading, l.holder
}

// Run stands by, calls lead whenever it holds the lease, and stands by again
// after losing it, until ctx ends. The context of lead ends when ctx does or when
// the lease is lost; nothing is taken over or released before lead has returned.
func (l *Lease) Run(ctx context.Context, lead func(context.Context)) {
	for ctx.Err() == nil {
		l.term(ctx, ctx, lead)
	}
}

// Once waits for the lease, at most as long as given, calls lead once and gives
// the lease back. The error is a HeldError if there was no getting it, nil if
// ctx ended first.
func (l *Lease) Once(ctx context.Context, patience time.Duration, lead func(context.Context)) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for waiting.Err() == nil {
		if l.term(ctx, waiting, lead) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &HeldError{Lease: l.String(), Holder: l.holder, Waited: patience, Err: l.problem}
}

// HeldError says why the lease could not be had.
type HeldError struct {
	Lease  string
	Holder string // empty if the Lease could not even be read
	Waited time.Duration
	Err    error // what the API server said, if it was not just held
}

// Error names the holder.
func (e *HeldError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s could not be taken within %s: %v", e.Lease, e.Waited, e.Err)
	case e.Holder == "":
		return fmt.Sprintf("%s could not be taken within %s: others were quicker", e.Lease, e.Waited)
	}
	return fmt.Sprintf("%s is held by %s, which did not give it up within %s: stop that process, or set LEASE to another name if it writes other repos", e.Lease, e.Holder, e.Waited)
}

// Unwrap returns what the API server said.
func (e *HeldError) Unwrap() error { return e.Err }

// StartAnew ends the term under way, if there is one: all that is known of the cluster
// goes with it, and the next one begins at once. Asked for again and again, as where two
// API servers answer in turn that are not of one cluster, it takes its time.
func (l *Lease) StartAnew() {
	forget := func(term *leaseLock) { term.lose(errForgotten) }
	l.inTerm(func(term *leaseLock) { // many watches may notice at once: the first ends the term
		wait := l.anew.do(func() { forget(term) }, func() { l.inTerm(forget) })
		if wait > 0 {
			l.options.Log.Warn().Stringer("after", wait.Round(time.Second)).
				Msg("the API server goes back to earlier states again and again, as if several answered in turn: looking at everything anew later")
		}
	})
}

// inTerm calls do with the term under way, if there is one and the lease is not lost.
func (l *Lease) inTerm(do func(*leaseLock)) {
	l.mu.Lock()
	term := l.under
	l.mu.Unlock()
	if term == nil {
		return
	}
	term.mu.Lock()
	defer term.mu.Unlock()
	if term.ours {
		do(term)
	}
}

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

// setTerm notes the term under way.
func (l *Lease) setTerm(term *leaseLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under = term
}

// setLeading opens or closes the fence with the state.
func (l *Lease) setLeading(leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = leading
	if !leading {
		l.validUntil = time.Time{}
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

// Fence returns a transport that lets a write through only while the lease is
// known to be held. Contexts end when the lease is lost; the fence also stops
// what no context reaches in time, such as a process that was frozen and wakes
// up after another took over. It fits rest.Config.Wrap.
func (l *Lease) Fence(next http.RoundTripper) http.RoundTripper {
	return fence{lease: l, next: next}
}

type fence struct {
	lease *Lease
	next  http.RoundTripper
}

// RoundTrip refuses writes without the lease.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if !f.lease.mayWrite() {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper must, even on errors
			}
			return nil, fmt.Errorf("%s not sent: this process does not hold %s", request.Method, f.lease)
		}
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }

func (l *Lease) mayWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading && time.Now().Before(l.validUntil)
}
