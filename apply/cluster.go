package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"

	"github.com/rs/zerolog"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/claims"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
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
	// WentBack is called by the watches when the API server has gone back to an earlier
	// state: nothing that is known of the cluster holds any more, so the watching has to
	// end and everything to start from scratch. It must not wait.
	WentBack func()
	Log      zerolog.Logger
}

// Cluster is what all sets on one API server share: clients, discovery, the
// limit on writes in flight, and who declares what. Its methods may be called
// concurrently.
type Cluster struct {
	options      ClusterOptions
	own          *kube.Client         // the daemon's own identity
	limited      *kube.Client         // impersonates LimitedUser
	typed        kubernetes.Interface // the daemon's own identity
	asLimited    kubernetes.Interface // impersonates LimitedUser
	discovery    discovery.DiscoveryInterfaceWithContext
	writes       chan struct{}
	computing    chan struct{} // holds as many as there are cores
	housekeeping chan struct{} // holds one

	// The same identities without a limit on how long a request may last.
	watching, limitedWatching *kube.Client
	watchingTyped             kubernetes.Interface

	search search
	claims *claims.Table // which repos declare an object, and when each was read

	mu       sync.Mutex // guards what follows
	seen     *watched   // nil while the cluster is not being watched
	kinds    *kube.Kinds
	sets     map[string]*Set
	unlisted map[string]bool        // the repos that were said to be
	listed   map[string]ListedRepo  // the repos of the configuration; nil until it was read
	relisted bool                   // listed was read since the watching began, or ended
	writers  map[string]observation // what was last seen of other writers' Leases
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
		options:      options,
		writes:       make(chan struct{}, options.Concurrency),
		computing:    make(chan struct{}, runtime.GOMAXPROCS(0)),
		housekeeping: make(chan struct{}, 1),
		sets:         map[string]*Set{},
		claims:       claims.NewTable(),
		writers:      map[string]observation{},
		unlisted:     map[string]bool{},
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
func connect(config *rest.Config) (*kube.Client, kubernetes.Interface, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	raw, rawErr := kube.NewClient(config, transport)
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
func (c *Cluster) currentKinds(ctx context.Context) (*kube.Kinds, error) {
	c.mu.Lock()
	current := c.kinds
	c.mu.Unlock()
	if current != nil {
		return current, nil
	}
	return c.refreshKinds(ctx)
}

// refreshKinds takes a new snapshot of discovery.
func (c *Cluster) refreshKinds(ctx context.Context) (*kube.Kinds, error) {
	fresh, err := kube.Discover(ctx, c.discovery)
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
// No one may wait for anything in there. A plan waits long for watches, for the API server
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
	Tier       manifest.Tier
	Namespaces []string // the only ones it writes in; nil for all
}

// Listed reports which repos the configuration names. The objects of one that it
// names no more are unlisted: another repo that declares them takes them over.
// Until it has been called, and once more since Watch was, nothing counts as unlisted,
// and KeepBindings takes nothing away: while another process wrote, repos may have come.
func (c *Cluster) Listed(repos []ListedRepo) {
	listed := make(map[string]ListedRepo, len(repos))
	for _, r := range repos {
		listed[r.Name] = r
	}
	c.mu.Lock()
	c.listed, c.relisted = listed, true
	maps.DeleteFunc(c.unlisted, func(name string, _ bool) bool {
		_, again := listed[name]
		return again
	})
	c.mu.Unlock()
	c.requestHousekeeping()
}

// isListed reports whether the configuration names a repo, if it is known.
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
	c.claims.Forget(s.options.Name)
	c.requestHousekeeping() // it may be unlisted
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
// known reports whether there are no others.
func (c *Cluster) applications() (repos []ListedRepo, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.listed {
		if r.Tier == manifest.Application {
			repos = append(repos, r)
		}
	}
	return repos, c.relisted
}
