package apply

import (
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
)

// A poll that brings nothing new touches no object. A sync that found everything as it is
// to be notes what it was made of, its basis, in counters and versions. While these are
// what they were, and all of it is watched, another sync of the same revision would find
// the same. Whatever happens to the set changes its basis: an event about one of its
// objects, its parent or a Namespace, a new look at what is served, or a reason that has
// the set synced.

// basis is what a plan depends on besides the revision and the options.
type basis struct {
	kinds      *kube.Kinds
	parent     string // version
	namespaces uint64 // changes
	members    uint64 // changes of the set's objects
	wakes      uint64 // reasons to sync that came up in between
}

// standing is a sync that changed nothing, and what it was made of.
type standing struct {
	revision Provenance
	basis    basis
	result   Result
}

// Standing returns what the last sync came to, with no outcomes but their counts, if another
// one of the revision would come to the same now. It is false where anything has happened
// since that a sync looks at, where something is not being watched, and when everything is
// due to be applied again.
func (s *Set) Standing(revision Provenance) (Result, bool) {
	now, known := s.basis()
	s.mu.Lock()
	last := s.standing
	s.mu.Unlock()
	if !known || s.verifyDue(time.Now()) || last == nil || last.basis != now ||
		last.revision.ID != revision.ID || last.revision.Ref != revision.Ref {
		return Result{}, false
	}
	s.cluster.readAt(s.options.Name, revision.Polled)
	return last.result, true
}

// basis returns what a plan that is made now depends on; false while some of it is not seen.
func (s *Set) basis() (basis, bool) {
	now, _, known := s.begin()
	return now, known
}

// begin returns the basis of a plan that is made now, and what was seen of the set's objects.
func (s *Set) begin() (basis, inventory.Seen, bool) {
	w := s.cluster.watched()
	if w == nil {
		return basis{}, nil, false
	}
	members, known := w.members.Seen(s.user)
	parents, _, _ := w.parents.State()
	namespaces, _, _ := w.namespaces.State()
	parent, there := w.parents.Get(s.parentName)
	if !known || !parents || !namespaces || !there {
		return basis{}, nil, false
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return basis{
		kinds:      s.cluster.kinds,
		parent:     parent.ResourceVersion,
		namespaces: w.namespaces.Changes(""),
		members:    members.Count(),
		wakes:      s.wakes.Load(),
	}, members, true
}

// stand notes a sync, made of what its plan was begun with, if it changed nothing and nothing
// of it is still under way; else it forgets the one before.
func (s *Set) stand(plan *Plan, result Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standing = nil
	if plan.basis == nil || !result.clean() || len(plan.blind)+len(plan.unseen) > 0 || !s.ledger.Settled(time.Now()) {
		return
	}
	s.base = plan.leaves()
	if !result.settled() {
		return
	}
	s.standing = &standing{revision: plan.Revision, basis: *plan.basis, result: Result{Warnings: slices.Clone(result.Warnings), Others: result.Counts()[Unchanged]}}
}

// settled reports whether a sync found everything as it is to be, and leaves nothing to be done
// or approved.
func (r Result) settled() bool {
	return r.clean() && r.Counts()[Unchanged] == len(r.Outcomes)+r.Others
}
