package main

import "slices"

// Why a commit cannot be loaded.
const (
	brokenYAML     = "no YAML"
	brokenNameless = "an object without a name"
	brokenTwice    = "an object that stands twice"
	brokenRefused  = "an object that the tier forbids"
)

// act takes a step in the model.
func (w *world) act(s step) {
	r, o := w.repo(s.repo), w.live[s.id]
	if o != nil && r == nil && o.owner != "" {
		w.handle(s, w.repo(o.owner), o)
		return
	}
	switch s.op {
	case opPush, opForce, opRevert:
		w.commit(r, s)
	case opDropBranch:
		r.gone = true
		w.burst.broke = w.burst.broke || r.listed
		w.touch(r, true)
	case opMove:
		to := w.repo(s.to)
		e := r.head().tree[s.id]
		w.commit(r, step{op: opPush, edits: []edit{{id: s.id, gone: true}}})
		w.commit(to, step{op: opPush, edits: []edit{{id: s.id, entry: e}}})
		o.fussy = true
	case opForeign:
		w.live[s.id] = &object{fresh: true, label: s.repo, hand: s.number == 0, csa: s.number == 1, copied: s.restores()}
	case opForeignLabel:
		o.label = s.repo
	case opForeignEdit:
		o.hand = true
	case opForeignDelete:
		delete(w.live, s.id)
	default:
		w.disturb(s, r)
	}
}

// restores reports whether a foreign object is made to look like a repo's own, label and field
// manager, as a backup tool does it.
func (s step) restores() bool { return s.repo != "" && s.id.namespace == "a" }

// handle takes a step that a user does to an object of a repo.
func (w *world) handle(s step, r *repo, o *object) {
	_, declared := r.head().tree[s.id]
	switch s.op {
	case opSpoil, opConflict:
		o.dirty = true
		o.spoilt++
		if s.op == opConflict {
			o.other = true
		}
	case opClientSide:
		o.dirty, o.csa = true, true
		o.spoilt++
	case opAnnotate:
		o.hand = true
	case opServerSide:
		o.other = true
	case opDelete:
		w.delete(s.id, o)
	case opUnlabel:
		o.fussy = true
		o.spoilt++
		if !declared {
			o.owner = ""
		}
	case opRelabel:
		o.fussy = true
		o.spoilt++
	case opAlienate:
		o.fussy, o.alien = true, true
	case opReclaim:
		o.fussy, o.alien = true, false
		o.spoilt++
		if !declared {
			o.owner = ""
		}
	case opSuspend:
		o.fussy, o.suspended = true, true
	case opUnsuspend:
		o.fussy, o.suspended = true, false
		o.spoilt++
	case opKeep, opUnkeep:
		o.fussy, o.kept = true, s.op == opKeep
	}
	if o.fussy && s.op != opRelabel || !declared {
		w.touch(r, false)
	}
}

// disturb takes a step that changes no object.
func (w *world) disturb(s step, r *repo) {
	switch s.op {
	case opApprove:
		r.approved, r.count = r.at(), len(w.candidates(r))
		w.touch(r, false)
	case opSuspendRepo, opUnsuspendRepo:
		r.suspended = s.op == opSuspendRepo
		w.touch(r, true)
	case opUnlist, opList:
		r.listed, r.claimed = s.op == opList, false
		w.burst.relisted = true
		w.touch(r, true)
	case opPruneOff, opPruneOn:
		r.prune = s.op == opPruneOn
		w.burst.relisted = true
		w.touch(r, false)
	case opBreakList, opMendList:
		w.listBroken = s.op == opBreakList
	case opStandby, opNoStandby:
		w.standby = s.op == opStandby
		w.burst.restarts++
	case opFailover, opRelease:
		w.standby = false
		w.burst.slow++
		w.restart()
	case opRestart, opKill:
		w.restart()
	case opAPIOutage, opAPIFaults, opAPICut:
		w.burst.apiOutage = true
		w.forgetClaims()
	case opGitOutage:
		w.burst.gitOutage = true
	}
}

// restart is what a new process knows.
func (w *world) restart() {
	w.burst.restarts++
	w.forgetClaims()
}

// forgetClaims lets go of what the daemon knew of the repos: what can be loaded, it will
// know again at the next quiet point.
func (w *world) forgetClaims() {
	for _, r := range w.repos {
		r.claimed = false
	}
}

// touch notes that a repo changed. A sealed one's objects are let be.
func (w *world) touch(r *repo, sealed bool) {
	w.burst.touched[r.name] = true
	w.burst.sealed[r.name] = w.burst.sealed[r.name] || sealed
}

// commit makes a commit, or goes back to one.
func (w *world) commit(r *repo, s step) {
	before := r.declares()
	next, _ := w.nextCommit(r, s)
	if s.op == opForce {
		r.line = slices.Clone(r.line[:len(r.line)-s.number])
	} else {
		r.commits = append(r.commits, next)
		r.line = append(slices.Clone(r.line), len(r.commits)-1)
	}
	wasBad := r.bad()
	r.gone = false
	w.touch(r, wasBad || next.broken != "")
	if next.broken != "" {
		w.burst.broke = w.burst.broke || r.listed
	}
	for i := range before {
		if _, stays := next.tree[i]; !stays {
			w.burst.removed = true
			if o := w.live[i]; o != nil {
				o.spoilt = 0
			}
		}
	}
}

// declares returns what a repo declares, or has declared when it was synced.
func (r *repo) declares() tree {
	all := tree{}
	for i, e := range r.head().tree {
		all[i] = e
	}
	if r.synced >= 0 {
		for i, e := range r.commits[r.synced].tree {
			all[i] = e
		}
	}
	return all
}

// delete deletes an object by hand, and what goes with it.
func (w *world) delete(i id, o *object) {
	o.gone()
	o.spoilt++
	if !i.foundation() {
		return
	}
	w.burst.slow++
	for other, o := range w.live {
		if slices.Contains(other.needs(), i) {
			o.gone()
		}
	}
	for _, r := range w.repos {
		w.touch(r, false)
	}
}

// gone notes that an object was deleted, and all that others had put on it.
func (o *object) gone() {
	o.deleted = true
	o.hand, o.other, o.csa, o.suspended, o.kept, o.alien = false, false, false, false, false, false
}
