package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	admissionv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/internal/backoff"
)

// How often everything may be read again because the API server has gone back.
const (
	restartsAtOnce  = 5
	restartInterval = 10 * time.Minute
)

// Options name the Lease that makes a process the leader, the only one that writes.
type Options struct {
	Config    *rest.Config
	Namespace string
	Name      string
	Identity  string // of this process; empty: host name (in a pod the pod's) and a random part
	UserAgent string
	Timing    Timing
	Log       zerolog.Logger
}

// Lease is this process's claim to be the leader. All writing happens inside
// the function handed to Run or Once, under the context that function gets.
type Lease struct {
	options   Options
	client    coordinationv1.LeasesGetter
	admission admissionv1.AdmissionregistrationV1Interface
	core      corev1.NamespacesGetter
	restarts  *throttle
	releasing atomic.Bool // it is being given back, which takes long

	mu         sync.Mutex // guards what follows
	leading    bool
	validUntil time.Time    // writes are let through the fence before this
	held       *electorLock // while this process leads, else nil
	holder     string       // last one seen
	problem    error        // why the Lease could not be read or written last time
	pace       pace         // how long the last writes of it took
	suspicion  suspicion    // why they took long
	// What was logged, each for itself: a Lease that can be read and not written would
	// else make the other news again.
	loggedHolder, loggedProblem, loggedSlow backoff.Repeat
}

// New builds the clients of its own that the Lease needs, which are never fenced.
// How long each request may take depends on what it is for. Nothing is sent.
func New(options Options) (*Lease, error) {
	if options.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this process in the Lease: %w", err)
		}
		options.Identity = host + "_" + rand.Text()
	}
	config := rest.CopyConfig(options.Config)
	config.UserAgent = options.UserAgent
	config.Timeout = 0
	config.QPS = -1 // the elector paces itself, and waiting for the limiter would hide why it fails
	l := &Lease{options: options, restarts: newThrottle(restartsAtOnce, restartInterval)}
	transport, err := rest.HTTPClientFor(config)
	if err == nil {
		err = l.connect(config, transport)
	}
	if err != nil {
		return nil, fmt.Errorf("build the client for Lease %s/%s: %w", options.Namespace, options.Name, err)
	}
	return l, nil
}

// connect builds the clients.
func (l *Lease) connect(config *rest.Config, transport *http.Client) error {
	leases, leaseErr := coordinationv1.NewForConfigAndClient(config, transport)
	admission, admissionErr := admissionv1.NewForConfigAndClient(config, transport)
	core, coreErr := corev1.NewForConfigAndClient(config, transport)
	l.client, l.admission, l.core = leases, admission, core
	return errors.Join(leaseErr, admissionErr, coreErr)
}

// String returns "Lease namespace/name".
func (l *Lease) String() string {
	return "Lease " + l.options.Namespace + "/" + l.options.Name
}

// Leading reports whether this process holds the lease, and who held it when it
// was last seen. A standby is as ready as a leader.
func (l *Lease) Leading() (leading bool, holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading, l.holder
}

// Run is on standby, calls lead whenever it holds the lease, and is on standby again
// after losing it, until ctx ends. The context of lead ends when ctx does or when
// the lease is lost; nothing is taken over or released before lead has returned.
func (l *Lease) Run(ctx context.Context, lead func(context.Context)) {
	for ctx.Err() == nil {
		l.stand(ctx, candidacy{waiting: ctx, again: true}, lead)
	}
}

// Once waits for the lease, at most as long as given, calls lead once and gives
// the lease back. The error is a HeldError if there was no getting it, nil if
// ctx ended first.
func (l *Lease) Once(ctx context.Context, patience time.Duration, lead func(context.Context)) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for waiting.Err() == nil {
		if l.stand(ctx, candidacy{waiting: waiting}, lead) {
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

// Restart ends the leadership, if there is one: all that is known of the cluster goes with
// it, and the next candidacy begins at once. Asked for again and again, as where two
// API servers answer in turn that are not of one cluster, it takes its time.
func (l *Lease) Restart() {
	forget := func(lock *electorLock) { lock.lose(errForgotten) }
	l.whileLeading(func(lock *electorLock) { // many watches may notice at once: the first ends it
		wait := l.restarts.do(func() { forget(lock) }, func() { l.whileLeading(forget) })
		if wait > 0 {
			l.options.Log.Warn().Stringer("after", wait.Round(time.Second)).
				Msg("the API server goes back to earlier states again and again, as if several answered in turn: reading everything again later")
		}
	})
}

// whileLeading calls do with the lock of a lease that is held and not lost.
func (l *Lease) whileLeading(do func(*electorLock)) {
	l.mu.Lock()
	lock := l.held
	l.mu.Unlock()
	if lock == nil {
		return
	}
	lock.mu.Lock()
	defer lock.mu.Unlock()
	if lock.ours {
		do(lock)
	}
}

// Releasing reports whether the lease is being given back, which takes long because writes
// of it do.
func (l *Lease) Releasing() bool { return l.releasing.Load() }

// setLock notes the lock while this process leads.
func (l *Lease) setLock(lock *electorLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = lock
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
