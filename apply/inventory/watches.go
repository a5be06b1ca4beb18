package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
)

// WatchOptions say how watches reach the API server. The clients have no limit on how long a
// request may last.
type WatchOptions struct {
	Own     *kube.Client // the daemon's own identity
	Limited *kube.Client // the identity that writes for application repos
	// WentBack is called when the API server has gone back to an earlier state.
	WentBack func()
	Log      zerolog.Logger
}

// Watches runs watches until its context ends, and keeps which of them are lost at the
// moment.
type Watches struct {
	WatchOptions
	ctx     context.Context
	running sync.WaitGroup

	mu    sync.Mutex // guards what follows
	blind map[string]Blind
	said  bool // that something is not seen
}

// NewWatches returns watches that end with ctx.
func NewWatches(ctx context.Context, options WatchOptions) *Watches {
	return &Watches{WatchOptions: options, ctx: ctx, blind: map[string]Blind{}}
}

// Wait waits until all watches have ended, and what Go was given.
func (s *Watches) Wait() { s.running.Wait() }

// Go runs what belongs to the watches and ends with their context.
func (s *Watches) Go(do func()) { s.running.Go(do) }

// Blind is something that cannot be watched at the moment.
type Blind struct {
	What  string // for example configmaps
	Since time.Time
	Err   error
}

// String words it for a person.
func (b Blind) String() string {
	return fmt.Sprintf("%s since %s: %v", b.What, b.Since.Format(time.TimeOnly), b.Err)
}

// Follow begins to follow a resource. Lost, unless nil, is called when it cannot be
// followed any more, each time it was tried, and may end it by stop. The function that
// Follow returns does so, too; lost may be called before follow has returned.
func (s *Watches) Follow(what string, resource follow.Resource, matching metav1.ListOptions, handler follow.Handler,
	lost func(err error, stop context.CancelFunc),
) context.CancelFunc {
	ctx, stop := context.WithCancel(s.ctx)
	observed := observer{handler, s, what, nil}
	if lost != nil {
		observed.lost = func(err error) { lost(err, stop) }
	}
	s.running.Go(func() {
		defer s.forget(what)
		follow.Follow(ctx, resource, matching, observed)
	})
	return stop
}

// What the daemon may not follow it asks for again after a while, and ever more rarely:
// rights are given later, and one refusal may be a mistake.
const (
	firstAsking = 5 * time.Second
	lastAsking  = 10 * time.Minute
)

// FollowIfAllowed follows what the daemon can do without.
func (s *Watches) FollowIfAllowed(what string, resource follow.Resource, matching metav1.ListOptions, handler follow.Handler) {
	s.running.Go(func() {
		for wait := firstAsking; s.ctx.Err() == nil; wait = min(2*wait, lastAsking) {
			ctx, stop := context.WithCancel(s.ctx)
			follow.Follow(ctx, resource, matching, observer{handler, s, what, func(err error) {
				if apierrors.IsForbidden(err) {
					stop()
				}
			}})
			stop()
			s.forget(what)
			select {
			case <-time.After(wait):
			case <-s.ctx.Done():
			}
		}
	})
}

// observer passes on what a handler receives, and notes what is lost and current again.
type observer struct {
	follow.Handler
	watches *Watches
	what    string
	lost    func(error)
}

// Current implements follow.Handler.
func (w observer) Current(version string) {
	w.Handler.Current(version)
	w.watches.forget(w.what)
}

// Lost implements follow.Handler.
func (w observer) Lost(err error) {
	w.Handler.Lost(err)
	w.watches.note(w.what, err)
	if errors.Is(err, follow.ErrWentBack) {
		w.watches.WentBack()
	}
	if w.lost != nil {
		w.lost(err)
	}
}

// note notes that something is not seen.
func (s *Watches) note(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Now()
	if before, known := s.blind[what]; known {
		since = before.Since
	}
	s.blind[what] = Blind{What: what, Since: since, Err: err}
	if !s.said && !kube.Expired(err) && !apierrors.IsForbidden(err) { // what is forbidden a plan reports
		s.said = true
		s.Log.Warn().Err(err).Str("what", what).Msg("watch lost: changes in the cluster are not seen until it is back")
	}
}

// forget notes that something is seen again, or no longer looked at.
func (s *Watches) forget(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blind, what)
	if s.said && len(s.blind) == 0 {
		s.said = false
		s.Log.Info().Msg("watch restored")
	}
}

// BlindSpots returns what is not seen at the moment.
func (s *Watches) BlindSpots() []Blind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.blind), func(a, b Blind) int { return strings.Compare(a.What, b.What) })
}
