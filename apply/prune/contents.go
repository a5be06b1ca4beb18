package prune

import "k8s.io/apimachinery/pkg/types"

// Content is one object in a Namespace that may have to go.
type Content struct {
	UID    types.UID
	Name   string // "Kind/namespace/name"
	Claim  bool   // a PersistentVolumeClaim
	Own    bool   // the set's own, which stays: declared, or exempted
	Usual  bool   // what every Namespace has, made by no one
	Going  bool   // counts as gone: a dry run would have deleted it by now
	Owners []Owner
}

// Owner is one of an object's ownerReferences.
type Owner struct {
	UID types.UID
	// Inside says that objects of its kind live in Namespaces, so that the owner is, or
	// was, in the same one (the garbage collector takes no other).
	Inside bool
}

// Contents sorts what a Namespace still holds when it is to be deleted: what is the
// set's own and stays, and what is others'. What leaves with others of the Namespace
// counts as neither: the garbage collector is about to delete it. An owner elsewhere
// excuses nothing, since it stays; and nothing excuses a PersistentVolumeClaim.
func Contents(held []Content) (own, foreign []string) {
	byUID := make(map[types.UID]Content, len(held))
	for _, c := range held {
		byUID[c.UID] = c
	}
	leaves := leaving{held: byUID, known: map[types.UID]bool{}}
	for _, c := range held {
		switch {
		case c.Going, c.Usual && !c.Claim:
		case c.Own:
			own = append(own, c.Name)
		case !leaves.with(c):
			foreign = append(foreign, c.Name)
		}
	}
	return own, foreign
}

// leaving finds out what leaves with its owners.
type leaving struct {
	held  map[types.UID]Content
	known map[types.UID]bool
}

// with reports whether an object leaves together with all its owners.
func (l leaving) with(c Content) bool {
	if c.Claim || len(c.Owners) == 0 {
		return false
	}
	if leaves, known := l.known[c.UID]; known {
		return leaves
	}
	l.known[c.UID] = false // owners in a circle leave with no one
	for _, owner := range c.Owners {
		if !l.gone(owner) {
			return false
		}
	}
	l.known[c.UID] = true
	return true
}

// gone reports whether an owner was in the Namespace and is gone, or leaves it. All that
// the Namespace holds was listed: an owner that is not among it was deleted.
func (l leaving) gone(owner Owner) bool {
	if !owner.Inside {
		return false
	}
	c, there := l.held[owner.UID]
	return !there || c.Going || !c.Own && (c.Usual || l.with(c))
}
