package sync

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
)

// ManagerOptions are what a Manager works with.
type ManagerOptions struct {
	List     Lister
	Interval time.Duration // between two readings of the list, jittered
	Observer Observer
	// Watch has the cluster watched while the loops run, until the context ends; what
	// it returns waits for the end of that. Nil for not at all, as in a dry run.
	Watch func(context.Context) (wait func())
	// Housekeeping is what is done for all repos together, after the first reading of the
	// list, then once an interval and when Nudged receives; nil for nothing.
	Housekeeping func(context.Context) error
	Nudged       <-chan struct{}
	Log          zerolog.Logger
}

// Manager runs one loop per listed repo and follows the list.
type Manager struct {
	options ManagerOptions
	said    echo          // about the list, used by Run alone
	kept    echo          // about the housekeeping, used by its goroutine alone
	wake    chan struct{} // holds one request to read the list

	mu      sync.Mutex // guards what follows
	repos   []Repo     // the last good list
	running map[string]*running
	ending  map[string]*running // was told to stop, and nothing has taken its place yet
}

// running is a loop with its way to be stopped.
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
	for sleep(ctx, jitter(m.options.Interval), m.wake) {
		m.reread(ctx)
		m.reconcile(ctx, &all)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.running) // they are stopping with ctx
}

// Poll has these repos synced now; without names all of them, and the list read again. It
// returns how many it reached: none while another process holds the Lease. It never waits.
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
		if m.said.again(err.Error(), time.Now()) {
			m.options.Log.Error().Err(err).Msg("the list of repos cannot be used, the last good one stays in force")
		}
		return
	}
	if m.said.count > 0 {
		m.options.Log.Info().Msg("the list of repos can be used again")
	}
	m.said = echo{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.repos = repos
}

// reconcile makes the running loops what the list says: those that left or
// changed stop, those that are new or changed start.
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
				all.Go(func() { m.abandon(loop) })
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

// same tells whether a loop may go on with what the list says now.
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
	if r.Tier == apply.Application {
		before = append(before, m.systemFirsts()...)
	}
	all.Go(func() {
		defer close(started.done)
		defer stop()
		defer started.pass() // a loop that is stopped holds nobody up
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
		if loop.repo.Tier == apply.System {
			firsts = append(firsts, loop.first)
		}
	}
	return firsts
}

// abandon tells that a repo left the list, once its loop has returned and unless the
// repo is back by then.
func (m *Manager) abandon(loop *running) {
	<-loop.done
	m.mu.Lock()
	defer m.mu.Unlock()
	if name := loop.repo.Name; m.ending[name] == loop {
		delete(m.ending, name)
		m.options.Observer.Abandon(name)
	}
}

// keepHouse does the housekeeping at every interval, and sooner again if it failed. Its
// failure is nobody's but its own.
func (m *Manager) keepHouse(ctx context.Context) {
	for failures := 0; ; {
		err := m.options.Housekeeping(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := m.options.Interval
		if err == nil {
			m.kept, failures = echo{}, 0
		} else {
			failures++
			wait = backoff(failures, wait)
			if m.kept.again(err.Error(), time.Now()) {
				m.options.Log.Error().Err(err).Msg("housekeeping failed")
			}
		}
		if !sleep(ctx, jitter(wait), m.options.Nudged) {
			return
		}
	}
}

// FirstList reads the list at start, and again with back-off up to interval as
// long as its error is one that may pass. It returns nothing if ctx ends before.
func FirstList(ctx context.Context, list Lister, interval time.Duration, log zerolog.Logger, passing func(error) bool) ([]Repo, error) {
	var said echo
	for failures := 1; ; failures++ {
		repos, err := list.Read(ctx)
		switch {
		case err == nil:
			return repos, nil
		case ctx.Err() != nil:
			return nil, nil
		case !passing(err):
			return nil, err
		case said.again(err.Error(), time.Now()):
			log.Error().Err(err).Msg("there is no list of repos yet, trying again")
		}
		if !sleep(ctx, jitter(backoff(failures, interval)), nil) {
			return nil, nil
		}
	}
}
