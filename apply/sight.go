package apply

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

	"github.com/kubesync/kubesync/apply/follow"
)

// sight runs watches until its context ends, and knows which of them see nothing
// at the moment.
type sight struct {
	ctx     context.Context
	own     *client // the daemon's own identity, without a time limit
	limited *client // impersonates LimitedUser, without a time limit
	log     zerolog.Logger
	// wentBack is told that the API server has gone back to an earlier state.
	wentBack func()
	running  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	blind map[string]Blind
	said  bool // that something is not seen
}

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

// follow begins to follow a resource. Lost, unless nil, is called when it cannot be
// followed any more, each time it was tried, and may end it by stop. The function that
// follow returns does so, too; lost may be called before follow has returned.
func (s *sight) follow(what string, resource follow.Resource, matching metav1.ListOptions, audience follow.Audience,
	lost func(err error, stop context.CancelFunc),
) context.CancelFunc {
	ctx, stop := context.WithCancel(s.ctx)
	heard := witness{audience, s, what, nil}
	if lost != nil {
		heard.lost = func(err error) { lost(err, stop) }
	}
	s.running.Go(func() {
		defer s.forget(what)
		follow.Follow(ctx, resource, matching, heard)
	})
	return stop
}

// What the daemon may not follow it asks for again after a while, and ever more rarely:
// rights are given later, and one refusal may be a mistake.
const (
	firstAsking = 5 * time.Second
	lastAsking  = 10 * time.Minute
)

// followIfAllowed follows what the daemon can do without.
func (s *sight) followIfAllowed(what string, resource follow.Resource, matching metav1.ListOptions, audience follow.Audience) {
	s.running.Go(func() {
		for wait := firstAsking; s.ctx.Err() == nil; wait = min(2*wait, lastAsking) {
			ctx, stop := context.WithCancel(s.ctx)
			follow.Follow(ctx, resource, matching, witness{audience, s, what, func(err error) {
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

// witness tells the sight what an audience hears of itself.
type witness struct {
	follow.Audience
	sight *sight
	what  string
	lost  func(error)
}

// Current implements follow.Audience.
func (w witness) Current(version string) {
	w.Audience.Current(version)
	w.sight.forget(w.what)
}

// Lost implements follow.Audience.
func (w witness) Lost(err error) {
	w.Audience.Lost(err)
	w.sight.note(w.what, err)
	if errors.Is(err, follow.ErrWentBack) {
		w.sight.wentBack()
	}
	if w.lost != nil {
		w.lost(err)
	}
}

// note notes that something is not seen.
func (s *sight) note(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Now()
	if before, known := s.blind[what]; known {
		since = before.Since
	}
	s.blind[what] = Blind{What: what, Since: since, Err: err}
	if !s.said && !forgotten(err) && !apierrors.IsForbidden(err) { // what is forbidden a plan reports
		s.said = true
		s.log.Warn().Err(err).Str("what", what).Msg("changes in the cluster are not seen at the moment: the watch was lost")
	}
}

// forget notes that something is seen again, or no longer looked at.
func (s *sight) forget(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blind, what)
	if s.said && len(s.blind) == 0 {
		s.said = false
		s.log.Info().Msg("changes in the cluster are seen again")
	}
}

// blindSpots returns what is not seen at the moment.
func (s *sight) blindSpots() []Blind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.blind), func(a, b Blind) int { return strings.Compare(a.What, b.What) })
}
