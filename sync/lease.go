package sync

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
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
