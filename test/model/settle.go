package main

import "slices"

// settle is the model's one rule: what is live when the daemon has done all that it
// can. It is called at each quiet point.
func (w *world) settle() {
	for _, r := range w.repos {
		r.expect = expectation{}
		if r.listed && !r.bad() {
			r.claimed = true
			if !r.suspended {
				r.synced = r.at()
			}
		}
	}
	for _, foundations := range []bool{true, false} {
		for _, r := range w.repos {
			w.write(r, foundations)
		}
	}
	w.forget()
	for _, r := range w.repos {
		w.prune(r)
		if w.copies(r) {
			r.expect.blocked = -1
		}
		r.sumUp()
	}
}

// write makes a repo's objects what is in force, those that others need first.
func (w *world) write(r *repo, foundations bool) {
	for i, e := range r.inForce() {
		o := w.live[i]
		switch {
		case i.foundation() != foundations:
		case r.bad() && (o == nil || o.owner != r.name || e.invalid || o.alien || o.suspended && !o.deleted):
			// Only what was applied before it became bad is corrected.
		case w.homeless(i):
			r.expect.pending++
		case o != nil && o.alien && !o.deleted:
			r.expect.wrong++
			o.loose = true
		case o != nil && o.suspended && !o.deleted:
			// No one writes it until a person lets go of it, so no one reports what is wrong with it.
		case e.invalid:
			r.expect.wrong++
			if o != nil && o.owner == r.name {
				o.loose = true
			}
		case o == nil:
			w.live[i] = &object{owner: r.name, entry: e, applied: true, fresh: true}
		case o.deleted:
			w.live[i] = &object{owner: r.name, entry: e, applied: true, fresh: true, spoilt: o.spoilt}
		default:
			o.owner, o.entry, o.applied, o.label, o.copied = r.name, e, true, "", false
			o.csa = false // client-side apply is taken over, and git does not declare it
			o.fresh = o.fresh || o.maybe
			o.dirty, o.loose, o.maybe = false, false, false
		}
	}
}

// homeless reports whether an object has to wait for its Namespace or CRD.
func (w *world) homeless(i id) bool {
	for _, needed := range i.needs() {
		if !w.there(needed) {
			return true
		}
	}
	return false
}

// forget settles what a user did to objects that no one has corrected.
func (w *world) forget() {
	for i, o := range w.live {
		owner := w.repo(o.owner)
		switch {
		case o.deleted && owner != nil && owner.listed && owner.bad():
			o.maybe, o.fresh = true, true // whether the daemon still knew it is not for the model to say
		case o.deleted:
			delete(w.live, i)
		case o.dirty && owner != nil:
			o.loose = true
		}
	}
}

// prune takes away what left a repo, as far as the rules allow.
func (w *world) prune(r *repo) {
	left := w.leftovers(r)
	r.expect.blocked = len(left)
	if !r.listed || r.bad() || r.suspended {
		r.expect.blocked = -1
		return
	}
	r.step()
	if r.expect.waits = len(left) > 0 && w.anyBad(); r.expect.waits {
		return
	}
	candidates := w.candidates(r)
	open := slices.DeleteFunc(slices.Clone(candidates), func(i id) bool { return r.allowed[i] })
	if len(open) > 0 && r.approves(len(open)) {
		r.use(open)
		open = nil
	}
	r.expect.held = len(open) > 0 && r.holds(len(open))
	remains := r.expect.held
	for _, foundations := range []bool{false, true} {
		for _, i := range candidates {
			switch {
			case i.foundation() != foundations, r.expect.held && slices.Contains(open, i):
			case i.kind == volumeClaim && !r.allowed[i], foundations && w.inUse(i):
				remains = true
			default:
				delete(w.live, i)
				delete(r.allowed, i)
				r.expect.blocked--
			}
		}
	}
	if !remains {
		r.pruned = r.at()
		clear(r.allowed)
		if r.approved == r.at() {
			r.approved = -1
		}
	}
}

// candidates returns what left a repo and may be pruned.
func (w *world) candidates(r *repo) []id {
	var candidates []id
	for _, i := range w.leftovers(r) {
		if o := w.live[i]; r.prune && !o.deleted && !o.suspended && !o.kept && !o.entry.keep {
			candidates = append(candidates, i)
		}
	}
	return candidates
}

// step takes the repo to its newest commit. What was approved of another one is void, and
// a trailer counts for the step from the commits before it alone.
func (r *repo) step() {
	if r.recorded == r.at() {
		return
	}
	clear(r.allowed)
	r.counted = -1
	if r.head().trailer && r.recorded >= 0 && r.descends(r.recorded) && (r.pruned < 0 || r.descends(r.pruned)) {
		r.counted = r.at()
	}
	r.recorded = r.at()
}

// descends reports whether the newest commit was made on top of another one.
func (r *repo) descends(commit int) bool { return slices.Contains(r.line[:len(r.line)-1], commit) }

// approves reports whether a person approves that so many objects go.
func (r *repo) approves(count int) bool {
	trailer := r.counted == r.at() && !r.used[r.at()] && r.pruned != r.at()
	return trailer || r.approved == r.at() && r.count == count
}

// use notes that an approval is used, for these objects.
func (r *repo) use(going []id) {
	for _, i := range going {
		r.allowed[i] = true
	}
	if r.counted == r.at() {
		r.used[r.at()] = true
	}
	if r.approved == r.at() {
		r.approved = -1
	}
}

// holds reports whether a prune of so many objects needs a person's approval.
func (r *repo) holds(candidates int) bool {
	return r.expect.pending > 0 || r.expect.wrong > 0 || len(r.head().tree) == 0 || candidates > pruneLimit
}

// inUse reports whether something lives in a Namespace, or of a CRD.
func (w *world) inUse(foundation id) bool {
	for i := range w.live {
		for _, needed := range i.needs() {
			if needed == foundation {
				return true
			}
		}
	}
	return false
}

// sumUp says what the status has to say.
func (r *repo) sumUp() {
	switch {
	case r.bad():
		r.expect.state = stateFailed
	case r.suspended:
		r.expect.state = stateSuspended
	case r.expect.pending > 0 || r.expect.wrong > 0:
		r.expect.state = statePartial
	default:
		r.expect.state = stateSynced
	}
}
