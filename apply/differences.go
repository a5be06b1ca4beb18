package apply

import (
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
)

// A commit costs what it changes. A sync that left nothing to be done leaves a base, and the
// next plan builds on it, as long as the same objects are declared, only some of them with
// other content, and all that has happened in the cluster since is known by object. These
// are looked at then: what the revision changes, and what has changed in the cluster.
// Whatever comes, goes, waits or is to be deleted has everything looked at; so has a RESYNC.

// base is a sync that left nothing to be done, as the next plan may build on it.
type base struct {
	basis    basis                // what its plan was begun with, and the parent as written last
	seen     inventory.Seen       // what its plan had seen of the set's objects
	declared map[manifest.ID]bool // with all objects live, the set's own, and as they were sent
	scope    inventory.Scope      // of these, as the parent names it
	had      int                  // how many of them are on the record
}

// buildOn has the plan, whose manifests were checked and whose parent was read, look at
// nothing but differences from a base. It reports whether that is enough.
func (p *Plan) buildOn(last *base, checked manifest.Checked) bool {
	if last == nil || !checked.Stay || len(checked.Unserved) > 0 || !p.sameGround(last) || !p.staysOurs(last) {
		return false
	}
	if slices.ContainsFunc(checked.Changed, p.judgesAnew) {
		return false
	}
	p.base, p.changed = last, checked.Changed
	p.objects, p.declared, p.had = checked.Objects, last.declared, last.had
	return true
}

// sameGround reports whether nothing has happened since a base but to the set's objects.
func (p *Plan) sameGround(last *base) bool {
	if p.basis == nil || p.parent.Live == nil || p.kinds != last.basis.kinds {
		return false
	}
	now, then := *p.basis, last.basis
	now.members, then.members = 0, 0
	return now == then && p.parent.Live.ResourceVersion == then.parent && !p.set.verifyDue(time.Now())
}

// staysOurs reports whether it is known which of the set's objects have changed since a base,
// and that none of these has left the set or come to it.
func (p *Plan) staysOurs(last *base) bool {
	changed, known := p.changedSince(last)
	return known && !slices.ContainsFunc(changed, func(id manifest.ID) bool {
		live, there, known := p.set.look(id)
		return !known || there && (live.Set == p.set.id) != last.declared[id]
	})
}

// judgesAnew reports whether annotations decide about an object's health, now or before: then
// what is watched of its kind may change.
func (p *Plan) judgesAnew(o manifest.Object) bool {
	return health.Annotated(o.Annotations()) || p.set.isGated(o.ID())
}

// changedSince returns which of the set's objects have changed since a base, some more than
// once; false if that is not known.
func (p *Plan) changedSince(last *base) (changed []manifest.ID, known bool) {
	w := p.set.cluster.watched()
	if w == nil {
		return nil, false
	}
	return w.members.ChangedSince(p.set.user, last.seen)
}

// toLookAt returns which of the plan's objects are looked at; the others are as the base
// found them.
func (p *Plan) toLookAt() []manifest.Object {
	if p.base == nil {
		return p.objects
	}
	ids, known := p.changedSince(p.base) // up to now
	if !known {
		return p.objects
	}
	for _, o := range p.changed {
		ids = append(ids, o.ID())
	}
	slices.SortFunc(ids, manifest.ID.Compare)
	return p.set.ledger.Objects(slices.Compact(ids))
}

// leaves returns what the next plan may build on after a sync of this one, which left nothing
// to be done; nil if that is nothing.
func (p *Plan) leaves() *base {
	if len(p.leaving)+len(p.taken)+len(p.held) > 0 {
		return nil
	}
	left := &base{basis: *p.basis, seen: p.seen, declared: p.declared, scope: p.scope(), had: p.had}
	left.basis.parent = p.parent.Live.ResourceVersion
	return left
}

// clean reports whether a sync found or made all objects as they are to be, and leaves nothing
// to be done or approved.
func (r Result) clean() bool {
	return r.PruneHeld == "" && r.Approve == "" && r.Waits == "" && r.Suspended == "" &&
		!slices.ContainsFunc(r.Outcomes, func(o Outcome) bool {
			return o.Action != Created && o.Action != Configured && o.Action != Unchanged
		})
}
