package status

import (
	"slices"
	"strings"
	stdsync "sync"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync"
)

// Cluster returns what is known of the cluster besides the syncs.
type Cluster interface {
	// Blind returns what cannot be watched at the moment.
	Blind() []inventory.Blind
	// Unlisted returns the sets whose repos are not listed any more.
	Unlisted() []apply.Unlisted
}

// Health returns how objects are, as opposed to how they are declared.
type Health interface {
	// Health returns the health of a repo's objects, as far as it is known.
	Health(repo string) map[manifest.ID]health.Health
}

// Options are what a Board works with. Each may be left out.
type Options struct {
	Version string // of kubesync
	Cluster Cluster
	Health  Health
	// Redact masks the secrets in a text; nil for leaving it as it is.
	Redact func(string) string
	// Holder names who holds the Lease, for a process on standby.
	Holder func() string
}

// Listed is a repo of the configuration.
type Listed struct {
	Name string
	URL  string // without credentials
	Tier manifest.Tier
}

// Board keeps what is known of all repos. It implements [sync.Observer]. Its
// methods may be called concurrently.
type Board struct {
	options Options
	started time.Time

	mu        stdsync.Mutex // guards what follows
	listed    []Listed      // nil until the list was read
	listError *Trouble      // why the list cannot be read, nil if it can
	repos     map[string]*record
	writing   bool      // this process is the leader
	changed   time.Time // when it became that, or ceased to be
	events    events
}

// NewBoard returns a board that knows of nothing yet.
func NewBoard(options Options) *Board {
	if options.Redact == nil {
		options.Redact = func(text string) string { return text }
	}
	now := time.Now()
	return &Board{options: options, started: now, changed: now, repos: map[string]*record{}}
}

// List takes which repos there are, in the configuration's order, or why that cannot be
// known: then the last list stays in force.
func (b *Board) List(repos []Listed, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if b.listError == nil {
			b.listError = &Trouble{Since: time.Now()}
		}
		b.listError.Error = b.options.Redact(err.Error())
		return
	}
	b.listError = nil
	if b.listed != nil && slices.Equal(b.listed, repos) {
		return
	}
	b.listed = slices.Clone(repos)
	for _, r := range repos {
		b.record(r.Name)
	}
	b.dropUnlisted()
	b.events.publish("list", b.names())
}

// dropUnlisted forgets the repos that are not listed and of which no one will report that
// they were unlisted: because they never synced, or because whoever synced them has
// ended with the leadership of this process.
func (b *Board) dropUnlisted() {
	if b.listed == nil {
		return // no one knows yet
	}
	for name, r := range b.repos {
		if !slices.ContainsFunc(b.listed, func(l Listed) bool { return l.Name == name }) && (r.never() || r.ended) {
			delete(b.repos, name)
		}
	}
}

// Lead sets whether this process is the leader from now on. When it ceases to be,
// all syncs have ended.
func (b *Board) Lead(writing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writing, b.changed = writing, time.Now()
	if !writing {
		for _, r := range b.repos {
			r.ended = true
		}
		b.dropUnlisted()
	}
	b.events.publish("lease", map[string]bool{"writing": writing})
}

// Unreadable does nothing: the board shows the health of each object at any time.
func (b *Board) Unreadable(sync.Unreadable) {}

// Begin implements [sync.Observer].
func (b *Board) Begin(progress sync.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.record(progress.Repo)
	r.progress, r.ended = &progress, false
	if progress.Revision.ID != "" {
		r.revision = progress.Revision
	}
	b.events.publish("stage", stageEvent{Repo: progress.Repo, Stage: progress.Stage, Since: progress.Began, Revision: r.revision.Short()})
}

// Observe implements [sync.Observer].
func (b *Board) Observe(report sync.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.record(report.Repo)
	r.observe(report, b.options.Redact)
	if len(r.syncs) > 0 {
		b.events.publish("sync", syncEvent{Repo: report.Repo, Sync: r.syncs[0]})
	}
}

// Drift implements [sync.Observer].
func (b *Board) Drift(drift apply.Drift) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	noted := b.record(drift.Repo).drifted(drift, now, b.options.Redact)
	b.events.publish("drift", driftEvent{Repo: drift.Repo, Object: drift.ID.String(), Drift: noted})
}

// Unlist implements [sync.Observer].
func (b *Board) Unlist(repo string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.repos, repo) // what is left of it in the cluster, the cluster returns
	b.events.publish("unlisted", map[string]string{"repo": repo})
}

// record returns what is known of a repo, which may be nothing yet.
func (b *Board) record(name string) *record {
	r := b.repos[name]
	if r == nil {
		r = &record{tracks: map[manifest.ID]track{}}
		b.repos[name] = r
	}
	return r
}

// names returns the names of the repos in the configuration's order, then of those that
// it does not name.
func (b *Board) names() []string {
	var names, others []string
	for _, r := range b.listed {
		names = append(names, r.Name)
	}
	for name := range b.repos {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.SortFunc(others, strings.Compare)
	return append(names, others...)
}

// Overview returns all that is known, but for the objects and earlier syncs.
func (b *Board) Overview() Overview {
	view := Overview{Version: b.options.Version, Started: b.started, Stale: b.stale(), Repos: []Repo{}, Unlisted: b.unlisted()}
	b.mu.Lock()
	view.Writing, view.ListError = b.writing, copied(b.listError)
	names := b.names()
	b.mu.Unlock()
	if !view.Writing && b.options.Holder != nil {
		view.Holder = b.options.Holder()
	}
	for _, name := range names {
		if r, found := b.snapshot(name, view.Stale); found {
			view.Repos = append(view.Repos, r)
		}
	}
	view.Healthy = view.ListError == nil && len(view.Repos) > 0 && !slices.ContainsFunc(view.Repos, func(r Repo) bool { return !r.Healthy })
	return view
}

// Repo returns what is known of one repo; false if there is none of that name.
func (b *Board) Repo(name string) (Detail, bool) {
	r, found := b.snapshot(name, b.stale())
	if !found {
		return Detail{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	detail := Detail{Repo: r, Syncs: []Sync{}}
	if known := b.repos[name]; known != nil {
		known.detail(&detail, b.options.Redact)
	}
	return detail, true
}

// snapshot returns what is known of one repo.
func (b *Board) snapshot(name string, stale *Stale) (Repo, bool) {
	health := b.health(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.listed, func(r Listed) bool { return r.Name == name })
	known := b.repos[name]
	if at < 0 && known == nil {
		return Repo{}, false
	}
	r := Repo{Name: name, State: Waiting, Stale: stale, Counts: map[apply.Action]int{}, Objects: map[ObjectState]int{}}
	if at >= 0 {
		r.URL, r.Tier = b.listed[at].URL, b.listed[at].Tier.String()
	}
	if known != nil {
		known.fill(&r, health, b.options.Redact)
	}
	r.Healthy = r.healthy()
	return r, true
}

// Objects returns the objects of a repo that the filter lets pass, those first that
// need a person's attention; false if there is no repo of that name.
func (b *Board) Objects(name string, filter Filter) ([]Object, bool) {
	health := b.health(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.repos[name]
	if known == nil {
		listed := slices.ContainsFunc(b.listed, func(r Listed) bool { return r.Name == name })
		return []Object{}, listed
	}
	return known.objects(health, filter, b.options.Redact), true
}

// health returns the health of a repo's objects; nil if no one knows it.
func (b *Board) health(repo string) map[manifest.ID]health.Health {
	if b.options.Health == nil {
		return nil
	}
	return b.options.Health.Health(repo)
}

// unlisted returns the unlisted sets.
func (b *Board) unlisted() []Unlisted {
	sets := []Unlisted{}
	if b.options.Cluster == nil {
		return sets
	}
	for _, set := range b.options.Cluster.Unlisted() {
		sets = append(sets, Unlisted(set))
	}
	return sets
}

// stale returns why no one knows how the cluster is now; nil if that is known.
func (b *Board) stale() *Stale {
	b.mu.Lock()
	writing, changed := b.writing, b.changed
	b.mu.Unlock()
	if !writing {
		return &Stale{Since: changed, Reasons: []string{"this process is on standby: it does not hold the Lease, and watches nothing"}}
	}
	if b.options.Cluster == nil {
		return nil
	}
	var stale *Stale
	for _, blind := range b.options.Cluster.Blind() {
		if stale == nil {
			stale = &Stale{Since: blind.Since}
		}
		if blind.Since.Before(stale.Since) {
			stale.Since = blind.Since
		}
		stale.Reasons = append(stale.Reasons, b.options.Redact(blind.What+": "+blind.Err.Error()))
	}
	return stale
}

// copied returns a copy of what a pointer points at, for a snapshot.
func copied[T any](from *T) *T {
	if from == nil {
		return nil
	}
	to := *from
	return &to
}
