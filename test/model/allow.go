package main

import "slices"

// allows reports whether the model knows for certain what a step will lead to, and
// whether it can be done at all. Where two outcomes are right, because it depends on
// which of two things a daemon comes to first, the step is not part of walks.
func (w *world) allows(s step) bool {
	switch s.op {
	case opQuiet, opWait:
		return true
	case opPush, opForce, opRevert, opDropBranch, opMove:
		return w.allowsGit(s)
	case opForeign, opForeignLabel, opForeignEdit, opForeignDelete:
		return w.allowsForeign(s)
	case opApprove, opSuspendRepo, opUnsuspendRepo, opUnlist, opList, opPruneOff, opPruneOn, opBreakList, opMendList:
		return w.allowsConfiguration(s)
	case opRestart, opKill, opStandby, opNoStandby, opFailover, opRelease, opAPIOutage, opAPICut, opAPIFaults, opGitOutage:
		return w.allowsTrouble(s)
	}
	return w.allowsHand(s)
}

// allowsGit is for what happens to repositories.
func (w *world) allowsGit(s step) bool {
	r := w.repo(s.repo)
	if r == nil || w.burst.touched[r.name] || w.burst.broke {
		return false
	}
	switch s.op {
	case opDropBranch:
		return !r.gone && len(w.burst.touched) == 0 && !w.dirtyOf(r)
	case opMove:
		return w.allowsMove(r, w.repo(s.to), s.id)
	}
	next, ok := w.nextCommit(r, s)
	if !ok {
		return false
	}
	if next.broken != "" && (len(w.burst.touched) > 0 || w.dirtyOf(r) || next.broken == brokenRefused && r.system) {
		return false
	}
	if w.anyOtherBad(r) && len(w.leftovers(r)) > 0 {
		return false // whether the other was read since these left is not for the model to say
	}
	if next.trailer && (w.anyOtherBad(r) || w.dangerous(r, next.tree)) {
		return false
	}
	return w.treeAllowed(r, next.tree)
}

// anyOtherBad reports whether another listed repo cannot be loaded, or could not when the
// burst began: a daemon may not have noticed yet.
func (w *world) anyOtherBad(r *repo) bool {
	return slices.ContainsFunc(w.repos, func(o *repo) bool { return o != r && o.listed && (o.bad() || w.burst.bad[o.name]) })
}

// nextCommit returns the commit that a step makes, or goes back to; false if it
// cannot.
func (w *world) nextCommit(r *repo, s step) (commit, bool) {
	switch s.op {
	case opForce:
		if s.number < 1 || s.number >= len(r.line) {
			return commit{}, false
		}
		return r.commits[r.line[len(r.line)-1-s.number]], true
	case opRevert:
		if len(r.line) < 2 {
			return commit{}, false
		}
		return commit{tree: r.commits[r.line[len(r.line)-2]].tree}, true
	}
	next := tree{}
	for i, e := range r.head().tree {
		next[i] = e
	}
	if s.broken != "" && len(s.edits) > 0 {
		return commit{}, false
	}
	for _, e := range s.edits {
		if _, found := next[e.id]; e.gone && !found {
			return commit{}, false
		}
		if e.gone {
			delete(next, e.id)
			continue
		}
		next[e.id] = e.entry
	}
	return commit{tree: next, trailer: s.trailer, broken: s.broken}, len(next) <= repoCapacity
}

// treeAllowed reports whether a repo may declare a tree from now on.
func (w *world) treeAllowed(r *repo, next tree) bool {
	for i, e := range next {
		was, declared := r.head().tree[i]
		o := w.live[i]
		switch {
		case !w.addable(r, i), o != nil && o.fussy && was != e, !declared && i.foundation() && w.anyBad():
			return false
		}
	}
	for _, before := range w.declaredTrees(r) {
		for i := range before {
			if _, stays := next[i]; stays {
				continue
			}
			if o := w.live[i]; o != nil && (o.fussy || o.deleted || o.dirty) || i.foundation() && !w.removable(r, i, next) {
				return false
			}
		}
	}
	return true
}

// declaredTrees are what a repo declares, and what it was last synced to.
func (w *world) declaredTrees(r *repo) []tree {
	trees := []tree{r.head().tree}
	if r.synced >= 0 {
		trees = append(trees, r.commits[r.synced].tree)
	}
	return trees
}

// addable reports whether a repo may declare an object: no one else does, or still has
// it, and what it needs is not on its way out.
func (w *world) addable(r *repo, i id) bool {
	if !r.system && !i.forApplications() {
		return false
	}
	for _, name := range w.declarers(i) {
		if name != r.name {
			return false
		}
	}
	if o := w.live[i]; o != nil {
		if o.owner != "" && o.owner != r.name || o.owner == "" && (o.suspended || o.alien) {
			return false
		}
	}
	for _, needed := range i.needs() {
		if w.there(needed) && !w.declaredNow(needed) {
			return false
		}
	}
	return true
}

// removable reports whether a Namespace or CRD may leave git: nothing that anybody
// declares, and nothing that is not the repo's own, may be left in it.
func (w *world) removable(r *repo, foundation id, next tree) bool {
	needs := func(i id) bool { return slices.Contains(i.needs(), foundation) }
	for i := range next {
		if needs(i) {
			return false
		}
	}
	for _, other := range w.repos {
		for _, t := range w.declaredTrees(other) {
			for i := range t {
				if other != r && needs(i) {
					return false
				}
			}
		}
	}
	for i, o := range w.live {
		if needs(i) && (o.owner != r.name || o.alien || o.suspended || o.kept || o.entry.keep) {
			return false
		}
	}
	return true
}

// dangerous reports whether an approval would take more than the repo's own with it.
func (w *world) dangerous(r *repo, next tree) bool {
	for i, o := range w.live {
		if _, declared := next[i]; o.owner == r.name && !declared && i.foundation() && !w.removable(r, i, next) {
			return true
		}
	}
	return false
}

// allowsMove is for an object that goes from one repo to another.
func (w *world) allowsMove(from, to *repo, i id) bool {
	if to == nil || from == to || w.burst.touched[to.name] || w.anyBad() || w.burst.broke {
		return false
	}
	for _, r := range []*repo{from, to} {
		if !r.listed || r.suspended {
			return false
		}
	}
	e, declared := from.head().tree[i]
	o := w.live[i]
	switch {
	case !declared, e.invalid, o == nil, o.owner != from.name, o.suspended, o.alien, o.dirty, o.deleted, o.fussy, !o.existing:
		return false
	case !to.system && !i.forApplications(), i.foundation(), len(to.head().tree) >= repoCapacity:
		return false
	}
	return true
}

// dirtyOf reports whether a user has just changed objects of a repo.
func (w *world) dirtyOf(r *repo) bool {
	for _, o := range w.live {
		if o.owner == r.name && (o.dirty || o.deleted || o.fussy) {
			return true
		}
	}
	return false
}

// allowsForeign is for objects that are no one's.
func (w *world) allowsForeign(s step) bool {
	o := w.live[s.id]
	if s.op == opForeign {
		ours := s.id.kind == configMap || s.id.kind == secret
		return ours && s.id.namespace != "c" && o == nil && len(w.declarers(s.id)) == 0 && (s.repo == "" || s.number == 0)
	}
	if o == nil || o.owner != "" || o.deleted || o.fussy || s.id.foundation() || len(w.declarers(s.id)) > 0 {
		return false
	}
	return s.op != opForeignLabel || !o.applied && !o.alien && w.repo(s.repo) != nil
}

// allowsConfiguration is for what people tell a daemon.
func (w *world) allowsConfiguration(s step) bool {
	switch s.op {
	case opBreakList:
		return !w.listBroken && !w.burst.relisted && w.burst.restarts == 0 && !w.burst.apiOutage
	case opMendList:
		return w.listBroken
	}
	r := w.repo(s.repo)
	if r == nil || w.burst.touched[r.name] || w.anyBad() || w.burst.broke || w.dirtyOf(r) {
		return false
	}
	switch s.op {
	case opApprove:
		return r.listed && !r.suspended && r.approved != r.at() && !w.dangerous(r, r.head().tree)
	case opSuspendRepo:
		return r.listed && !r.suspended
	case opUnsuspendRepo:
		return r.listed && r.suspended
	}
	if w.listBroken {
		return false
	}
	switch s.op {
	case opUnlist:
		listed := 0
		for _, other := range w.repos {
			if other.listed {
				listed++
			}
		}
		return r.listed && listed > 1
	case opList:
		return !r.listed && !r.bad()
	case opPruneOff:
		return r.listed && r.prune
	}
	return r.listed && !r.prune // opPruneOn
}

// allowsTrouble is for daemons and what they talk to. A daemon that starts anew, or
// has lost its Lease, knows nothing of a repo that it cannot load.
func (w *world) allowsTrouble(s step) bool {
	forgets := s.op != opGitOutage && s.op != opStandby && s.op != opNoStandby
	if forgets {
		for _, r := range w.repos {
			if r.listed && r.bad() && w.dirtyOf(r) {
				return false
			}
		}
	}
	switch s.op {
	case opAPIOutage, opAPICut, opAPIFaults:
		return !w.burst.apiOutage
	case opGitOutage:
		return !w.burst.gitOutage
	}
	if w.listBroken || w.burst.restarts > 0 {
		return false
	}
	switch s.op {
	case opStandby:
		return !w.standby
	case opNoStandby:
		return w.standby
	case opFailover, opRelease:
		return w.standby && !w.burst.apiOutage && w.burst.slow < maxSlow
	}
	return !w.standby // opRestart, opKill
}

// allowsHand is for what is done to objects of repos.
func (w *world) allowsHand(s step) bool {
	o := w.live[s.id]
	if o == nil || o.owner == "" || o.deleted || o.fussy || o.maybe || !o.existing || w.burst.sealed[o.owner] {
		return false
	}
	r := w.repo(o.owner)
	e, declared := r.head().tree[s.id]
	if w.burst.touched[r.name] && !declared {
		return false
	}
	calm := !w.burst.touched[r.name] && !w.anyBad() && !w.burst.broke && r.listed && !r.suspended
	switch s.op {
	case opSpoil, opConflict, opClientSide:
		if s.id.kind == volumeClaim && s.op == opClientSide {
			return false
		}
		return o.spoilt < maxSpoilt && !o.alien && (!r.bad() || !w.burst.apiOutage)
	case opAnnotate, opServerSide:
		return true
	case opDelete:
		return (declared || calm) && w.allowsDelete(s.id, r, o)
	case opUnlabel:
		return calm && !o.alien && !o.suspended && (!declared || !e.invalid && o.spoilt < maxSpoilt) && !s.id.foundation()
	case opRelabel: // what a suspended repo has, by the label, is left to it until it is resumed
		to := w.repo(s.to)
		return calm && declared && !e.invalid && !o.alien && !o.suspended && o.spoilt < maxSpoilt && to != nil && to != r && !to.suspended && !w.burst.touched[to.name]
	case opAlienate: // a correction on its way would take it back
		return calm && declared && !o.alien && !o.suspended && !o.dirty && !s.id.foundation()
	case opReclaim:
		return calm && o.alien
	case opSuspend:
		return calm && !o.suspended && !o.alien && !o.dirty && !s.id.foundation()
	case opUnsuspend:
		return calm && o.suspended
	case opKeep:
		return calm && !o.kept && !e.keep && !o.entry.keep && !o.alien && !o.dirty
	case opUnkeep:
		return calm && o.kept
	}
	return false
}

// allowsDelete is for deletions by hand. What takes others with it has to be in good
// hands.
func (w *world) allowsDelete(i id, r *repo, o *object) bool {
	if i.kind == volumeClaim || r.bad() && w.burst.apiOutage || o.alien {
		return false
	}
	if !i.foundation() {
		return true
	}
	if w.burst.slow >= maxSlow || w.anyBad() || w.burst.broke || !w.declaredNow(i) || len(w.burst.touched) > 0 {
		return false
	}
	for _, other := range w.repos {
		if !other.listed || other.suspended {
			return false
		}
	}
	return true
}
