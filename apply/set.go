package apply

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/internal/limits"
)

// SetOptions describe one repo's set of objects on a cluster.
type SetOptions struct {
	Name string // the repo's name; the parent is the ConfigMap kubesync-<Name>
	Tier manifest.Tier
	// Namespace is where namespaced objects go that name none; NamespaceFromPod
	// says that it is merely the daemon's own.
	Namespace        string
	NamespaceFromPod bool
	// Namespaces, unless nil, are the only ones in which this set writes; the
	// cluster's own list holds besides.
	Namespaces []string
	Prune      bool
	PruneLimit prune.Limit
	Suspend    bool // the configuration stops every write
	// Preview says that the set is only ever dry-run, with files that the daemon which
	// writes it has not got yet.
	Preview bool
	Drift   DriftPolicy
	// Resync is how often what is known to be as applied is applied all the same,
	// jittered; 0 for never.
	Resync time.Duration
	// Wake has the set synced soon, for a reason found out in between; it must not
	// wait. Nil for nothing.
	Wake func()
	// Rendering is what the configuration says of how manifests are made of a revision, as
	// prune.Rendering has it.
	Rendering prune.Rendering
	// OnDrift receives drift while the cluster is being watched, from any goroutine; it
	// should not wait. Nil for no one.
	OnDrift func(Drift)
	// Limits bound what manifests may cost; the zero value is the defaults.
	Limits limits.Limits
	Log    zerolog.Logger
}

// Set is one repo's objects on one cluster. One goroutine at a time may use it.
type Set struct {
	cluster    *Cluster
	options    SetOptions
	client     *kube.Client // the identity that writes the set's objects
	user       *inventory.User
	id         string // the apply set ID
	parentName string
	unlisted   bool // its repo is not listed, and it is there to be deleted
	loader     *manifest.Loader
	checker    manifest.Checker // used by Plan alone
	// CRDs whose kinds were waited for in vain; used by Apply alone.
	inVain map[manifest.ID]bool

	wakes atomic.Uint64 // how often the set was to be synced for a reason found out in between

	ledger *ledger.Ledger // what is known of each object

	mu       sync.Mutex // guards what follows, which other sets read
	claimed  bool       // the set has said at least once what it declares
	active   bool       // drift may be corrected: no one has suspended the set
	pending  bool       // the last plan had pending objects
	standing *standing  // nil if the last sync changed something, or left something to be done
	base     *base      // nil if the last sync left something to be done; used by Plan and Apply alone
	verify   time.Time  // when the next verification is due
	waiting  []string   // the other repos that pruning, or an object, waits for
	// The parent's annotations and labels, as last read or written.
	steering, steeringLabels map[string]string
	// gated are the declared objects whose annotations say when they are healthy.
	gated map[manifest.ID]bool
}

// NewSet makes a repo's set known to the cluster.
func (c *Cluster) NewSet(options SetOptions) *Set {
	s := c.newSet(options)
	c.register(s)
	return s
}

// newSet makes a set that no one knows.
func (c *Cluster) newSet(options SetOptions) *Set {
	name := parent.Name(options.Name)
	s := &Set{
		cluster:    c,
		options:    options,
		client:     c.own,
		id:         parent.ID(c.options.OwnNamespace, name),
		parentName: name,
		loader:     manifest.NewLoader(options.Limits),
	}
	if options.Tier == manifest.Application {
		s.client = c.limited
	}
	s.ledger = ledger.New(s.id)
	s.user = &inventory.User{ID: s.id, Tier: options.Tier, Wake: s.wake}
	return s
}

// Close gives up the set: its objects stay, and another repo may declare them. A
// correction under way is waited for, and none follows: it would bring back what was
// declared when the set was open.
func (s *Set) Close() {
	s.activate(false)
	_ = ledger.AwaitIdle(context.Background(), s.ledger.Close()) // which only its context ends
	s.cluster.forget(s)
	if w := s.cluster.watched(); w != nil {
		w.corrector.forget(s)
		w.members.Release(s.user)
	}
}

// allows reports whether the configuration lets the set write in a namespace.
func (s *Set) allows(namespace string) bool {
	return listAllows(s.cluster.options.Namespaces, namespace) && listAllows(s.options.Namespaces, namespace)
}

// allowsObject reports whether the configuration lets the set write an object.
// Where namespaces are listed, these Namespaces themselves are the only
// cluster-scoped objects.
func (s *Set) allowsObject(id manifest.ID) bool {
	switch {
	case id.Namespace != "":
		return s.allows(id.Namespace)
	case id.GroupKind() == manifest.NamespaceKind:
		return s.allows(id.Name)
	default:
		return s.cluster.options.Namespaces == nil && s.options.Namespaces == nil
	}
}

// hasClaimed reports whether the set has said what it declares since it started.
func (s *Set) hasClaimed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

// claim says what the set declares from now on, and notes what other repos of this
// daemon declare already.
func (p *Plan) claim() {
	taken, heirs := p.set.cluster.claims.Declare(p.set.options.Name, p.declared, func(id manifest.ID) bool { return p.members[id].Set == p.set.id })
	p.taken = taken
	for _, heir := range heirs {
		p.set.cluster.wake(heir) // what it waits for is its own now
	}
	p.set.mu.Lock()
	p.set.claimed = true
	p.set.mu.Unlock()
	p.set.cluster.readAt(p.set.options.Name, p.Revision.Polled)
}
