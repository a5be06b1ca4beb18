package inventory

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Patience is how long a plan waits for what is not seen at the moment.
const Patience = 5 * time.Second

// User is a set that uses a tracker, which knows it by its address.
type User struct {
	ID   string // of the apply set
	Tier manifest.Tier
	Wake func() // has the set synced now; it must not wait
}

// Tracker follows, of every kind in use, the objects that carry an apply set's
// label: one watch a kind, whatever the number of sets.
type Tracker struct {
	watches *Watches
	served  func(context.Context) (*kube.Kinds, error) // takes a new look at what is served
	changed func(manifest.ID, metav1.Object)           // receives each change
	read    observed.Reader                            // of all kinds

	mu    sync.Mutex // guards what follows
	kinds map[schema.GroupKind]*trackedKind
	users map[*User]Scope           // of which the kinds are used
	blind map[schema.GroupKind]bool // that sets could not look at, and wait for
}

// trackedKind is one kind that is followed.
type trackedKind struct {
	served kube.ServedKind
	whole  bool // its objects are followed whole, not their metadata alone
	// views are what is followed of it: all namespaces, under "", or, where the daemon
	// may not see them all, some.
	views map[string]*view
}

// NewTracker returns a tracker that follows nothing yet. It asks served when a watch says that a
// kind is not there, and has changed receive every change of an object.
func NewTracker(s *Watches, served func(context.Context) (*kube.Kinds, error), changed func(manifest.ID, metav1.Object)) *Tracker {
	return &Tracker{
		watches: s, served: served, changed: changed,
		kinds: map[schema.GroupKind]*trackedKind{}, users: map[*User]Scope{}, blind: map[schema.GroupKind]bool{},
	}
}

// Use makes the kinds those that a set uses, and stops following what no one uses.
// A kind that is not served is not followed: it has no objects. The set itself looks at
// its kinds after that.
func (t *Tracker) Use(s *User, k *kube.Kinds, in Scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users[s] = Scope{Kinds: maps.Clone(in.Kinds), Gated: in.Gated}
	for gk := range in.Kinds {
		if t.follow(gk, k) {
			t.wakeUsers(gk, s)
		}
	}
	t.tidy()
}

// follow begins to follow a kind, or goes over to the version in which it is served
// by now, or to seeing it whole or not. It reports whether what was known of the kind is given up: then whoever uses
// it has to look again. The caller holds mu.
func (t *Tracker) follow(gk schema.GroupKind, k *kube.Kinds) (gaveUp bool) {
	served, known := k.Lookup(gk)
	whole := t.wantsWhole(gk, served)
	if kind := t.kinds[gk]; kind != nil && (!known || kind.served.GVR != served.GVR || kind.whole != whole) {
		t.drop(gk)
		gaveUp = true
	}
	if known && t.kinds[gk] == nil {
		t.kinds[gk] = &trackedKind{served: served, whole: whole, views: map[string]*view{}}
	}
	return gaveUp
}

// wantsWhole reports whether the objects of a kind have to be seen whole: their status counts, or
// an annotation of one of them. The caller holds mu.
func (t *Tracker) wantsWhole(gk schema.GroupKind, served kube.ServedKind) bool {
	if observed.HasHealth(gk, served) {
		return true
	}
	for _, in := range t.users {
		if in.Gated[gk] {
			return true
		}
	}
	return false
}

// wakeUsers has the sets synced that use a kind, but for the one that is being planned.
// The caller holds mu.
func (t *Tracker) wakeUsers(gk schema.GroupKind, planned *User) {
	for s, in := range t.users {
		if in.Kinds[gk] && s != planned {
			s.Wake()
		}
	}
}

// Release forgets a set.
func (t *Tracker) Release(s *User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, s)
	t.tidy()
}

// tidy stops following what no one uses. The caller holds mu.
func (t *Tracker) tidy() {
	used := map[schema.GroupKind]bool{}
	for _, in := range t.users {
		maps.Copy(used, in.Kinds)
	}
	for gk := range t.kinds {
		if !used[gk] {
			t.drop(gk)
		}
	}
}

// drop stops following a kind. The caller holds mu.
func (t *Tracker) drop(gk schema.GroupKind) {
	for _, v := range t.kinds[gk].views {
		v.stop()
	}
	delete(t.kinds, gk)
}

// lookAnew looks whether a kind is served in another version, or no more. The syncs of
// its users follow it there, or hold back what was of that kind.
func (t *Tracker) lookAnew(gk schema.GroupKind) {
	k, err := t.served(t.watches.ctx)
	if err != nil || k.GroupUnreachable(gk.Group) != nil {
		return // the watch will be tried again, and lead here again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[gk] != nil && t.follow(gk, k) {
		t.wakeUsers(gk, nil)
	}
}

// regained has those sets synced that could not look at a kind.
func (t *Tracker) regained(gk schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blind[gk] {
		delete(t.blind, gk)
		t.wakeUsers(gk, nil)
	}
}

// miss notes that sets wait until a kind can be looked at in a view, which may be so by
// now.
func (t *Tracker) miss(gk schema.GroupKind, v *view) {
	t.mu.Lock()
	t.blind[gk] = true
	t.mu.Unlock()
	if current, _, _ := v.State(); current {
		t.regained(gk)
	}
}

// Missing returns the sets that use a kind which was not served when they were
// planned, so that it is not followed, and, unless k is nil, is served by now.
func (t *Tracker) Missing(k *kube.Kinds) []*User {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sets []*User
	for s, in := range t.users {
		for gk := range in.Kinds {
			served := k == nil
			if !served {
				_, served = k.Lookup(gk)
			}
			if t.kinds[gk] == nil && served {
				sets = append(sets, s)
				break
			}
		}
	}
	return sets
}

// Look waits until all is known that a set uses, and returns what a plan of it needs of
// that. Where the daemon may not see all namespaces it looks, for an application repo,
// into those where the repo has objects, with the rights that it has there. A kind of
// which it cannot be known what there is keeps no other from being known.
func (t *Tracker) Look(ctx context.Context, s *User, in Scope, k *kube.Kinds, of Interest) (*Inventory, error) {
	found, looked := newInventory(of), map[schema.GroupKind][]*view{}
	for gk := range in.Kinds {
		if _, served := k.Lookup(gk); !served {
			if err := k.GroupUnreachable(gk.Group); err != nil {
				found.miss(gk, err)
			}
			continue
		}
		v, forbidden, err := t.lookAt(ctx, gk, "", s.Tier == manifest.System)
		if err == nil {
			looked[gk] = []*view{v}
		}
		if forbidden && s.Tier == manifest.Application {
			looked[gk], err = t.lookInto(ctx, gk, in, found)
		} else if forbidden {
			return nil, err
		}
		switch {
		case err == nil:
		case ctx.Err() != nil, apierrors.IsUnauthorized(err):
			return nil, err
		default:
			found.miss(gk, err)
		}
	}
	found.gather(looked)
	return found, nil
}

// gather adds what matters of what is seen: the set's own members, and those of the objects
// named that others have. How many others there are makes no difference.
func (i *Inventory) gather(seen map[schema.GroupKind][]*view) {
	count := 0
	for _, views := range seen {
		for _, v := range views {
			count += v.CountOf(i.of.Set)
		}
	}
	i.Members = make(map[manifest.ID]observed.Member, count)
	for _, views := range seen {
		for _, v := range views {
			v.EachOf(i.of.Set, func(id manifest.ID, m observed.Member) { i.Members[id] = m })
		}
	}
	for id := range i.of.named() {
		if _, ours := i.Members[id]; ours {
			continue
		}
		for _, v := range seen[id.GroupKind()] {
			if m, there := v.Get(id); there {
				i.Members[id] = m
			}
		}
	}
}

// lookInto returns the views of a kind in some namespaces.
func (t *Tracker) lookInto(ctx context.Context, gk schema.GroupKind, in Scope, found *Inventory) ([]*view, error) {
	var views []*view
	for namespace := range in.Namespaces {
		if in.Absent[namespace] {
			found.overlook(gk, namespace, nil) // there are no rights either
			continue
		}
		switch v, forbidden, err := t.lookAt(ctx, gk, namespace, true); {
		case forbidden:
			found.overlook(gk, namespace, err)
		case err != nil:
			return views, err
		default:
			views = append(views, v)
		}
	}
	return views, nil
}

// lookAt returns what is known of a kind in one namespace or in all, once that is current.
func (t *Tracker) lookAt(ctx context.Context, gk schema.GroupKind, namespace string, again bool) (v *view, forbidden bool, err error) {
	v = t.view(gk, namespace, again)
	if v == nil { // its users were woken when it was given up
		return nil, false, fmt.Errorf("what there is of %s is not known: whether the cluster serves it has just changed; it is looked at again", gk)
	}
	switch err := v.Await(ctx, v.patience(), apierrors.IsForbidden); {
	case apierrors.IsForbidden(err):
		return nil, true, err
	case err != nil:
		t.miss(gk, v)
		return nil, false, err
	}
	return v, false, nil
}

// Seen is how much of what changes was seen of a set's objects: the count of each view.
type Seen map[*view]uint64

// Count adds it up.
func (s Seen) Count() (changes uint64) {
	for _, count := range s {
		changes += count
	}
	return changes
}

// Seen returns what was seen until now of the objects of a set, of all kinds that it uses;
// false while of some it is not known what there is.
func (t *Tracker) Seen(s *User) (seen Seen, known bool) {
	views, known := t.viewsOf(s)
	seen = make(Seen, len(views))
	for _, v := range views {
		seen[v] = v.Changes(s.ID)
	}
	return seen, known
}

// ChangedSince returns which objects of a set have changed since so much was seen, some more
// than once; false if that is not known of each, or while of some kind it is not known what there is.
func (t *Tracker) ChangedSince(s *User, seen Seen) (changed []manifest.ID, known bool) {
	views, known := t.viewsOf(s)
	if !known || len(views) != len(seen) {
		return nil, false
	}
	for _, v := range views {
		before, seenBefore := seen[v]
		if !seenBefore {
			return nil, false
		}
		ids, known := v.ChangedSince(s.ID, before)
		if !known {
			return nil, false
		}
		changed = append(changed, ids...)
	}
	return changed, true
}

// viewsOf returns all that is followed for a set; false unless it is all current.
func (t *Tracker) viewsOf(s *User) (views []*view, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for gk := range t.users[s].Kinds {
		kind := t.kinds[gk]
		if kind == nil {
			return nil, false
		}
		for _, v := range kind.views {
			if v.forbidden() {
				continue
			}
			if current, _, _ := v.State(); !current {
				return nil, false
			}
			views = append(views, v)
		}
	}
	return views, true
}

// Find returns what is known of an object; known reports whether it was looked for,
// with an answer that is current.
func (t *Tracker) Find(id manifest.ID) (m observed.Member, there, known bool) {
	all, namespaced := t.viewsWith(id)
	for _, v := range [...]*view{all, namespaced} {
		if v == nil {
			continue
		}
		current, _, _ := v.State()
		known = known || current
		if m, there = v.Get(id); there {
			break
		}
	}
	return m, there, known
}

// Sees reports of a kind that is followed whether its objects have health by their kind, and
// whether they are seen whole.
func (t *Tracker) Sees(gk schema.GroupKind) (health, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := t.kinds[gk]
	if kind == nil {
		return false, false
	}
	return observed.HasHealth(gk, kind.served), kind.whole
}

// Put notes what the answer to a write said of an object.
func (t *Tracker) Put(id manifest.ID, live metav1.Object) {
	all, namespaced := t.viewsWith(id)
	for _, v := range [...]*view{all, namespaced} {
		if v != nil {
			v.Put(live)
		}
	}
}

// viewsWith returns the views in which an object would be seen, of all namespaces and of its
// own; nil where there is none. It is asked about every object of a sync, and allocates nothing.
func (t *Tracker) viewsWith(id manifest.ID) (all, namespaced *view) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := t.kinds[id.GroupKind()]
	if kind == nil {
		return nil, nil
	}
	if v := kind.views[""]; v != nil && !v.forbidden() {
		all = v
	}
	if v := kind.views[id.Namespace]; id.Namespace != "" && v != nil && !v.forbidden() {
		namespaced = v
	}
	return all, namespaced
}
