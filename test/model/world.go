package main

import (
	"maps"
	"slices"
)

// world is the model: what the walk has done, and what must be live for that. It
// knows no server.
type world struct {
	repos []*repo
	live  map[id]*object

	standby    bool // a second daemon runs
	listBroken bool // the CONFIG list cannot be read
	burst      burst
}

// burst is what has happened since the last quiet point.
type burst struct {
	touched   map[string]bool // repos whose declarations, approval or configuration changed
	sealed    map[string]bool // repos whose objects no one may touch until the next quiet point
	removed   bool            // something left git
	broke     bool            // a repo became unreadable
	bad       map[string]bool // repos that could not be loaded when it began
	relisted  bool            // the list was changed
	apiOutage bool
	gitOutage bool
	restarts  int
	slow      int // steps that take a Namespace's or a Lease's time
}

// pruneLimit is the PRUNE_LIMIT that daemons of walks are given, in objects.
const pruneLimit = 4

// repo is a repository and what the configuration says of it.
type repo struct {
	name    string
	system  bool
	commits []commit
	line    []int // the commits of the branch, oldest first; a forced push shortens it
	gone    bool  // the branch was deleted

	listed    bool
	prune     bool
	suspended bool // by the annotation on its parent

	synced   int  // the commit that the cluster was last made to be; -1 for none
	claimed  bool // the running daemon knows what it declares
	approved int  // the commit that the annotation on the parent approves; -1 for none
	count    int  // of how many objects
	pruned   int  // the last commit of which nothing was left to prune; -1 for none
	recorded int  // the commit that the parent records as applied last; -1 for none
	counted  int  // the last commit whose trailer was found to count; -1 for none
	// used are the commits whose trailers were used, and allowed what was approved of the
	// commit that is recorded.
	used    map[int]bool
	allowed map[id]bool

	expect expectation
}

// commit is a revision.
type commit struct {
	tree    tree
	trailer bool   // it approves its prune
	broken  string // why it cannot be loaded; empty if it can
}

// tree is what a revision declares.
type tree map[id]entry

// entry is what a tree says of an object.
type entry struct {
	variant int
	dir     int  // which directory the file is in
	invalid bool // the API server refuses it
	ignore  bool // kubesync.io/ignore: data.value
	keep    bool // kubesync.io/prune: "false"
}

// object is a live object.
type object struct {
	owner   string // the repo whose it is; empty for another owner's
	entry   entry  // that was applied last
	applied bool   // kubesync has applied it at some time
	alien   bool   // carries the label of a set that there is not
	label   string // of a foreign object: the repo whose label a user copied onto it
	copied  bool   // of a foreign object: the field manager, too

	hand, other, csa bool // who has put an annotation on it: see manifest.go
	suspended        bool // by hand
	kept             bool // by hand

	dirty    bool // a user changed what is ours since the last quiet point
	deleted  bool // a user deleted it since the last quiet point
	fussy    bool // its belonging changed since the last quiet point
	loose    bool // what it says is not for the model to tell
	maybe    bool // nor whether it is there
	fresh    bool // it was made anew, or may have been
	spoilt   int  // how often a user spoilt it: a conflict is not what walks look at
	existing bool // it was there at the last quiet point
}

// expectation is what the status says of a repo at a quiet point.
type expectation struct {
	state   string
	held    bool // the prune as a whole waits for approval
	waits   bool // it waits for another repo
	blocked int  // objects that left git and are there; -1 if that cannot be known
	pending int
	wrong   int // refused or failed
}

// States as the API words them.
const (
	stateSynced    = "synced"
	statePartial   = "partial"
	stateFailed    = "failed"
	stateSuspended = "suspended"
)

// newWorld is a world in which nothing is declared.
func newWorld() *world {
	w := &world{live: map[id]*object{}}
	for _, name := range []string{"base", "shop", "team"} {
		w.repos = append(w.repos, &repo{
			name: name, system: name != "team", listed: true, prune: true,
			commits: []commit{{tree: tree{}}}, line: []int{0}, synced: -1, approved: -1, pruned: -1, recorded: -1, counted: -1,
			used: map[int]bool{}, allowed: map[id]bool{},
		})
	}
	for _, ns := range []string{"a", "b"} {
		w.live[id{kind: namespaceKind, name: ns}] = &object{existing: true}
	}
	w.begin()
	return w
}

// begin begins the next burst.
func (w *world) begin() {
	w.burst = burst{touched: map[string]bool{}, sealed: map[string]bool{}, bad: map[string]bool{}}
	for _, r := range w.repos {
		w.burst.bad[r.name] = r.listed && r.bad()
	}
	for _, o := range w.live {
		o.dirty, o.deleted, o.fussy, o.fresh, o.existing = false, false, false, false, true
	}
}

// repo returns the repo of a name; nil for foreign objects.
func (w *world) repo(name string) *repo {
	at := slices.IndexFunc(w.repos, func(r *repo) bool { return r.name == name })
	if at < 0 {
		return nil
	}
	return w.repos[at]
}

// at is the number of the commit that the branch is at, or was when it was deleted.
func (r *repo) at() int { return r.line[len(r.line)-1] }

// head is that commit.
func (r *repo) head() commit { return r.commits[r.at()] }

// bad reports whether the newest revision cannot be had or loaded.
func (r *repo) bad() bool { return r.gone || r.head().broken != "" }

// anyBad reports whether some listed repo cannot be loaded: then no one else prunes.
func (w *world) anyBad() bool {
	return slices.ContainsFunc(w.repos, func(r *repo) bool { return r.listed && r.bad() })
}

// inForce is what the running daemon holds the repo's objects to; nil for nothing.
func (r *repo) inForce() tree {
	switch {
	case !r.listed, r.suspended:
		return nil
	case !r.bad():
		return r.head().tree
	case r.claimed && r.synced >= 0:
		return r.commits[r.synced].tree
	}
	return nil
}

// declarers returns the repos that declare an object, at present or as last synced.
func (w *world) declarers(i id) []string {
	var names []string
	for _, r := range w.repos {
		_, now := r.head().tree[i]
		before := false
		if r.synced >= 0 {
			_, before = r.commits[r.synced].tree[i]
		}
		if now || before {
			names = append(names, r.name)
		}
	}
	return names
}

// declaredNow reports whether some repo's newest revision declares an object.
func (w *world) declaredNow(i id) bool {
	return slices.ContainsFunc(w.repos, func(r *repo) bool { _, found := r.head().tree[i]; return found })
}

// there reports whether an object exists, for all that the model knows.
func (w *world) there(i id) bool { o := w.live[i]; return o != nil && !o.deleted }

// leftovers returns the objects of a repo that its newest revision does not declare.
func (w *world) leftovers(r *repo) []id {
	var left []id
	for i, o := range w.live {
		if _, declared := r.head().tree[i]; o.owner == r.name && !declared && !o.alien {
			left = append(left, i)
		}
	}
	slices.SortFunc(left, compareIDs)
	return left
}

// liveIDs returns what is live, in a fixed order.
func (w *world) liveIDs() []id { return slices.SortedFunc(maps.Keys(w.live), compareIDs) }

// copies reports whether there are objects that look like a repo's own, which it reports as
// far as it looks at their kind and namespace.
func (w *world) copies(r *repo) bool {
	for _, o := range w.live {
		if o.copied && o.owner == "" && o.label == r.name {
			return true
		}
	}
	return false
}

// ids returns what a tree declares, in a fixed order.
func (t tree) ids() []id { return slices.SortedFunc(maps.Keys(t), compareIDs) }
