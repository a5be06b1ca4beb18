package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// LimitedUser is the user that every request for an application repo
// impersonates.
const LimitedUser = "kubesync-limited"

// ClusterOptions say how to reach one API server and what may be written there.
type ClusterOptions struct {
	Config       *rest.Config
	OwnNamespace string // where parents and Leases live
	Writer       string // name of the Lease that this process holds while it writes
	Concurrency  int    // writes in flight, at least 1
	// SystemNamespaces are closed to application repos; the own namespace always is.
	SystemNamespaces []string
	// Namespaces, unless nil, are the only ones in which anything is written.
	Namespaces []string
	UserAgent  string
	// WentBack is told by what watches that the API server has gone back to an earlier
	// state: nothing that is known of the cluster holds any more, so the watching has to
	// end and everything to start from scratch. It must not wait.
	WentBack func()
	Log      zerolog.Logger
}

// Cluster is what all sets on one API server share: clients, discovery, the
// limit on writes in flight, and who declares what. Its methods may be called
// concurrently.
type Cluster struct {
	options   ClusterOptions
	own       *client              // the daemon's own identity
	limited   *client              // impersonates LimitedUser
	typed     kubernetes.Interface // the daemon's own identity
	asLimited kubernetes.Interface // impersonates LimitedUser
	discovery discovery.DiscoveryInterfaceWithContext
	writes    chan struct{}
	computing chan struct{} // holds as many as there are cores
	nudged    chan struct{} // holds one

	// The same identities without a limit on how long a request may last.
	watching, limitedWatching *client
	watchingTyped             kubernetes.Interface

	search search

	mu        sync.Mutex // guards what follows
	seen      *watched   // nil while the cluster is not being watched
	kinds     *kinds
	sets      map[string]*Set
	claims    map[ID][]string        // the repos that declare an object; the first has it, the others wait
	abandoned map[string]bool        // the repos that were said to be
	listed    map[string]ListedRepo  // the repos of the configuration; nil until it was read
	relisted  bool                   // listed was read since the watching began, or ended
	loaded    map[string]time.Time   // when the poll began after which a repo was loaded last
	writers   map[string]observation // what was last seen of other writers' Leases
	// loading is closed, and made anew, whenever a repo was loaded.
	loading chan struct{}
}

// NewCluster builds the clients for one API server. It sends nothing: a server
// that cannot be reached shows in the first Plan.
func NewCluster(options ClusterOptions) (*Cluster, error) {
	if options.Concurrency < 1 {
		return nil, fmt.Errorf("apply concurrency must be at least 1, not %d", options.Concurrency)
	}
	if options.WentBack == nil {
		options.WentBack = func() {}
	}
	config := rest.CopyConfig(options.Config)
	config.UserAgent = options.UserAgent
	config.WarningHandler = rest.NoWarnings{} // they are read from each answer instead
	config.QPS = -1                           // Concurrency is the limit; priority and fairness does the rest
	impersonating := rest.CopyConfig(config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: LimitedUser}

	c := &Cluster{
		options:   options,
		writes:    make(chan struct{}, options.Concurrency),
		computing: make(chan struct{}, runtime.GOMAXPROCS(0)),
		nudged:    make(chan struct{}, 1),
		sets:      map[string]*Set{},
		claims:    map[ID][]string{},
		loaded:    map[string]time.Time{},
		writers:   map[string]observation{},
		abandoned: map[string]bool{},
		loading:   make(chan struct{}),
	}
	var errs [3]error
	c.own, c.typed, errs[0] = connect(config)
	c.limited, c.asLimited, errs[1] = connect(impersonating)
	c.discovery, errs[2] = discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return c, c.connectWatches(config, impersonating)
}

// connect builds the clients of one identity.
func connect(config *rest.Config) (*client, kubernetes.Interface, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	raw, rawErr := newClient(config, transport)
	typed, typedErr := kubernetes.NewForConfigAndClient(config, transport)
	return raw, typed, errors.Join(rawErr, typedErr)
}

// connectWatches builds the clients that watch: a limit on how long a request may
// last is not meant for those.
func (c *Cluster) connectWatches(config, impersonating *rest.Config) error {
	c.watching, c.watchingTyped, c.limitedWatching = c.own, c.typed, c.limited
	if config.Timeout == 0 {
		return nil
	}
	config.Timeout, impersonating.Timeout = 0, 0
	var err, limitedErr error
	c.watching, c.watchingTyped, err = connect(config)
	c.limitedWatching, _, limitedErr = connect(impersonating)
	return errors.Join(err, limitedErr)
}

// currentKinds returns the last snapshot of discovery, taking the first if there
// is none yet.
func (c *Cluster) currentKinds(ctx context.Context) (*kinds, error) {
	c.mu.Lock()
	current := c.kinds
	c.mu.Unlock()
	if current != nil {
		return current, nil
	}
	return c.refreshKinds(ctx)
}

// refreshKinds takes a new snapshot of discovery.
func (c *Cluster) refreshKinds(ctx context.Context) (*kinds, error) {
	fresh, err := discoverKinds(ctx, c.discovery)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = fresh
	return fresh, nil
}

// distrustKinds has the next plan take a new snapshot of discovery.
func (c *Cluster) distrustKinds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = nil
}

// write runs one write when fewer than Concurrency are in flight.
func (c *Cluster) write(ctx context.Context, do func() error) error {
	select {
	case c.writes <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.writes }()
	return do()
}

// compute does what of a plan takes cores and memory, and nothing else: reading manifests
// and checking them. At start every repo is planned at once, and what all of them need for
// that in the same moment would be many times what they keep. More at a time than there
// are cores would be no faster.
//
// Nobody may wait for anything in there. A plan waits long for watches, for the API server
// and, in a prune, for the plans of other repos: if it kept its turn meanwhile, those that
// it waits for could not come to theirs.
func compute[T any](ctx context.Context, c *Cluster, do func() (T, error)) (none T, err error) {
	select {
	case c.computing <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-c.computing }()
	return do()
}

// ListedRepo is what the cluster needs to know of a repo in the configuration,
// whether it is being synced yet or not.
type ListedRepo struct {
	Name       string
	Tier       Tier
	Namespaces []string // the only ones it writes in; nil for all
}

// Listed tells which repos the configuration names. The objects of one that it
// names no more are abandoned: another repo that declares them takes them over.
// Until it has been called, and once more since Watch was, nothing counts as abandoned,
// and KeepBindings takes nothing away: while another process wrote, repos may have come.
func (c *Cluster) Listed(repos []ListedRepo) {
	listed := make(map[string]ListedRepo, len(repos))
	for _, r := range repos {
		listed[r.Name] = r
	}
	c.mu.Lock()
	c.listed, c.relisted = listed, true
	maps.DeleteFunc(c.abandoned, func(name string, _ bool) bool {
		_, again := listed[name]
		return again
	})
	c.mu.Unlock()
	c.nudge()
}

// isListed tells whether the configuration names a repo, if it is known.
func (c *Cluster) isListed(name string) (listed, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, listed = c.listed[name]
	return listed, c.relisted
}

// register makes a set known; a set of the same name is replaced.
func (c *Cluster) register(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sets[s.options.Name] = s
}

// forget drops a set and its claims: others may declare its objects from now on.
func (c *Cluster) forget(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets[s.options.Name] != s {
		return // the claims are those of the set that has replaced it
	}
	delete(c.sets, s.options.Name)
	delete(c.loaded, s.options.Name)
	for id := range c.claims {
		c.unclaim(id, s.options.Name)
	}
	c.nudge() // it may be abandoned
}

// claim records what a repo declares from now on and returns what it does not
// get, because another repo of this daemon declares it already. It has that as
// soon as the other declares it no more. What a repo has (the live object carries
// its label) it keeps, whoever asks first after a restart.
func (c *Cluster) claim(name string, declared map[ID]bool, has func(ID) bool) map[ID]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[ID]string{}
	for id := range declared {
		switch claims := c.claims[id]; {
		case len(claims) == 1 && claims[0] == name:
		case has(id):
			c.unclaim(id, name)
			c.claims[id] = slices.Insert(c.claims[id], 0, name)
		case !slices.Contains(claims, name):
			c.claims[id] = append(claims, name)
		}
		if holder := c.claims[id][0]; holder != name {
			taken[id] = holder
		}
	}
	heirs := map[string]bool{}
	for id := range c.claims {
		if !declared[id] && c.unclaim(id, name) && len(c.claims[id]) > 0 {
			heirs[c.claims[id][0]] = true
		}
	}
	for heir := range heirs {
		if set := c.sets[heir]; set != nil {
			set.wake() // what it waits for is its own now
		}
	}
	return taken
}

// unclaim forgets that a repo declares an object, and tells whether it had it. The
// caller holds mu.
func (c *Cluster) unclaim(id ID, name string) (had bool) {
	had = len(c.claims[id]) > 0 && c.claims[id][0] == name
	rest := slices.DeleteFunc(c.claims[id], func(claimant string) bool { return claimant == name })
	if len(rest) == 0 {
		delete(c.claims, id)
		return had
	}
	c.claims[id] = rest
	return had
}

// claimant returns the repo of this daemon that has an object, or gets it now
// that the one before lets it go.
func (c *Cluster) claimant(id ID) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if names := c.claims[id]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

// setByID returns the set of this daemon that has the apply set ID.
func (c *Cluster) setByID(id string) (*Set, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sets {
		if s.id == id {
			return s, true
		}
	}
	return nil, false
}

// setByName returns a repo's set, nil if there is none.
func (c *Cluster) setByName(repo string) *Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets[repo]
}

// applications returns the application repos of the configuration as it was last read;
// known tells whether there are no others.
func (c *Cluster) applications() (repos []ListedRepo, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.listed {
		if r.Tier == Application {
			repos = append(repos, r)
		}
	}
	return repos, c.relisted
}
