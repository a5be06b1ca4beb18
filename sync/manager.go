package sync

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/backoff"
)

// ManagerOptions are what a Manager works with.
type ManagerOptions struct {
	List     Lister
	Interval time.Duration // between two readings of the list, jittered
	Observer Observer
	// Watch watches the cluster while the loops run, until the context ends; the returned
	// function waits for its end. Nil in a dry run, which watches nothing.
	Watch func(context.Context) (wait func())
	// Housekeeping is what is done for all repos together, after the first reading of the
	// list, then once an interval and when HousekeepingDue receives; nil for nothing.
	Housekeeping    func(context.Context) error
	HousekeepingDue <-chan struct{}
	Log             zerolog.Logger
}

// Manager runs one loop per listed repo and follows the list.
type Manager struct {
	options ManagerOptions
	list    backoff.Repeat // errors of the list, used by Run alone
	house   backoff.Repeat // errors of the housekeeping, used by its goroutine alone
	wake    chan struct{}  // holds one request to read the list

	mu      sync.Mutex // guards what follows
	repos   []Repo     // the last good list
	running map[string]*running
	ending  map[string]*running // is stopping, and not replaced yet
}

// running is a loop that can be stopped.
type running struct {
	*Loop
	stop context.CancelFunc
	done chan struct{} // closed when the loop has returned
}

// NewManager returns a manager that starts with repos, the list as it was read
// at start, and reads it again at every interval.
func NewManager(options ManagerOptions, repos []Repo) *Manager {
	return &Manager{options: options, wake: make(chan struct{}, 1), repos: repos, running: map[string]*running{}, ending: map[string]*running{}}
}

// Run keeps the loops going until ctx ends and all have returned. It may be
// called again after that: every loop then starts from scratch, because another
// process may have written in between.
func (m *Manager) Run(ctx context.Context) {
	if m.options.Watch != nil {
		defer m.options.Watch(ctx)()
	}
	var all sync.WaitGroup
	defer all.Wait() // first: until they have returned, loops may have more watched
	m.reread(ctx)    // a standby may have waited for days
	if m.options.Housekeeping != nil {
		all.Go(func() { m.keepHouse(ctx) })
	}
	m.reconcile(ctx, &all)
	for backoff.Sleep(ctx, backoff.Jitter(m.options.Interval), m.wake) {
		m.reread(ctx)
		m.reconcile(ctx, &all)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.running) // they are stopping with ctx
}

// Poll makes these repos sync now or, without names, all repos, and the list be read again. It
// returns how many repos that are: 0 while another process holds the Lease. It never waits.
func (m *Manager) Poll(names ...string) (polled int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, loop := range m.running {
		if len(names) == 0 || slices.Contains(names, name) {
			loop.Trigger()
			polled++
		}
	}
	if len(names) == 0 {
		select {
		case m.wake <- struct{}{}:
		default: // the list is about to be read
		}
	}
	return polled
}

// reread reads the list; a list that cannot be read leaves the last one in force.
func (m *Manager) reread(ctx context.Context) {
	repos, err := m.options.List.Read(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if m.list.Due(err.Error(), time.Now()) {
			m.options.Log.Error().Err(err).Msg("cannot use the list of repos, keeping the last one")
		}
		return
	}
	if m.list != (backoff.Repeat{}) {
		m.options.Log.Info().Msg("the list of repos is valid again")
	}
	m.list = backoff.Repeat{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.repos = repos
}

// reconcile starts and stops loops as the list requires: those that left or changed stop,
// those that are new or changed start. Stopping a loop deletes nothing.
func (m *Manager) reconcile(ctx context.Context, all *sync.WaitGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := map[string]Repo{}
	for _, r := range m.repos {
		listed[r.Name] = r
	}
	for name, loop := range m.running {
		if r, still := listed[name]; !still || !same(r, loop.repo) {
			loop.stop()
			m.ending[name] = loop
			delete(m.running, name)
			if !still {
				all.Go(func() { m.unlist(loop) })
			}
		}
	}
	for _, r := range inOrder(m.repos) {
		if m.running[r.Name] == nil {
			m.running[r.Name] = m.start(ctx, r, m.ending[r.Name], all)
			delete(m.ending, r.Name)
		}
	}
}

// same reports whether a loop may go on with what the list says now.
func same(a, b Repo) bool {
	return a.URL == b.URL && a.Tier == b.Tier && a.Interval == b.Interval && reflect.DeepEqual(a.Settings, b.Settings)
}

// inOrder returns the system repos, then the application repos, each as listed.
func inOrder(repos []Repo) []Repo {
	ordered := slices.Clone(repos)
	slices.SortStableFunc(ordered, func(a, b Repo) int { return int(a.Tier) - int(b.Tier) })
	return ordered
}

// start starts a repo's loop; it begins when the loop that it replaces has
// returned and, for an application repo, the system repos have had their turn.
func (m *Manager) start(ctx context.Context, r Repo, replaced *running, all *sync.WaitGroup) *running {
	ctx, stop := context.WithCancel(ctx)
	started := &running{Loop: newLoop(r, m.options.Observer, m.options.Log), stop: stop, done: make(chan struct{})}
	var before []<-chan struct{}
	if replaced != nil {
		before = append(before, replaced.done)
	}
	if r.Tier == manifest.Application {
		before = append(before, m.systemFirsts()...)
	}
	all.Go(func() {
		defer close(started.done)
		defer stop()
		defer started.pass() // a loop that is stopped delays no other
		for _, done := range before {
			select {
			case <-done:
			case <-ctx.Done():
				if replaced != nil {
					<-replaced.done
				}
				return
			}
		}
		started.Run(ctx)
	})
	return started
}

// systemFirsts are closed when the system repos have had their first sync.
func (m *Manager) systemFirsts() []<-chan struct{} {
	var firsts []<-chan struct{}
	for _, loop := range m.running {
		if loop.repo.Tier == manifest.System {
			firsts = append(firsts, loop.first)
		}
	}
	return firsts
}

// unlist reports that a repo left the list, once its loop has returned and unless the repo
// is listed again by then.
func (m *Manager) unlist(loop *running) {
	<-loop.done
	m.mu.Lock()
	defer m.mu.Unlock()
	if name := loop.repo.Name; m.ending[name] == loop {
		delete(m.ending, name)
		m.options.Observer.Unlist(name)
	}
}

// keepHouse does the housekeeping at every interval, and sooner again if it failed. Its
// failure fails no repo.
func (m *Manager) keepHouse(ctx context.Context) {
	for failures := 0; ; {
		err := m.options.Housekeeping(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := m.options.Interval
		if err == nil {
			m.house, failures = backoff.Repeat{}, 0
		} else {
			failures++
			wait = backoff.Wait(failures, firstRetry, wait)
			if m.house.Due(err.Error(), time.Now()) {
				m.options.Log.Error().Err(err).Msg("housekeeping failed")
			}
		}
		if !backoff.Sleep(ctx, backoff.Jitter(wait), m.options.HousekeepingDue) {
			return
		}
	}
}

// FirstList reads the list before the first Run, and again with back-off up to the interval
// as long as its error is one that may pass. It returns nil if ctx ends before.
func (m *Manager) FirstList(ctx context.Context, passing func(error) bool) error {
	var logged backoff.Repeat
	for failures := 1; ; failures++ {
		repos, err := m.options.List.Read(ctx)
		switch {
		case err == nil:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.repos = repos
			return nil
		case ctx.Err() != nil:
			return nil
		case !passing(err):
			return err
		case logged.Due(err.Error(), time.Now()):
			m.options.Log.Error().Err(err).Msg("cannot read the list of repos yet, retrying")
		}
		if !backoff.Sleep(ctx, backoff.Jitter(backoff.Wait(failures, firstRetry, m.options.Interval)), nil) {
			return nil
		}
	}
}
