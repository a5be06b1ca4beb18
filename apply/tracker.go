package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// sightPatience is how long a plan waits for what is not seen at the moment.
const sightPatience = 5 * time.Second

// tracker follows, of every kind in use, the objects that carry an apply set's
// label: one watch a kind, whatever the number of sets.
type tracker struct {
	watches *watches
	served  func(context.Context) (*kube.Kinds, error) // takes a new look at what is served
	changed func(manifest.ID, metav1.Object)           // receives each change
	read    observed.Reader                            // of all kinds

	mu    sync.Mutex // guards what follows
	kinds map[schema.GroupKind]*trackedKind
	users map[*Set]map[schema.GroupKind]bool
	blind map[schema.GroupKind]bool // that sets could not look at, and wait for
}

// trackedKind is one kind that is followed.
type trackedKind struct {
	served kube.ServedKind
	// views are what is followed of it: all namespaces, under "", or, where the daemon
	// may not see them all, some.
	views map[string]*view
}

// view is what is known of a kind in all namespaces or in one.
type view struct {
	*follow.Store[manifest.ID, observed.Member]
	stop     context.CancelFunc
	regained func()
}

// Current implements follow.Handler.
func (v *view) Current(version string) {
	v.Store.Current(version)
	v.regained()
}

// patience is how long it is worth waiting for the view to become current: not again
// and again for one that has been lost for long.
func (v *view) patience() time.Duration {
	if _, since, problem := v.State(); problem != nil {
		return max(0, sightPatience-time.Since(since))
	}
	return sightPatience
}

func newTracker(s *watches, served func(context.Context) (*kube.Kinds, error), changed func(manifest.ID, metav1.Object)) *tracker {
	return &tracker{
		watches: s, served: served, changed: changed,
		kinds: map[schema.GroupKind]*trackedKind{}, users: map[*Set]map[schema.GroupKind]bool{}, blind: map[schema.GroupKind]bool{},
	}
}

// use makes the kinds those that a set uses, and stops following what no one uses.
// A kind that is not served is not followed: it has no objects. The set itself looks at
// its kinds after that.
func (t *tracker) use(s *Set, k *kube.Kinds, wanted map[schema.GroupKind]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users[s] = maps.Clone(wanted)
	for gk := range wanted {
		if t.follow(gk, k) {
			t.wakeUsers(gk, s)
		}
	}
	t.tidy()
}

// follow begins to follow a kind, or goes over to the version in which it is served
// by now. It reports whether what was known of the kind is given up: then whoever uses
// it has to look again. The caller holds mu.
func (t *tracker) follow(gk schema.GroupKind, k *kube.Kinds) (gaveUp bool) {
	served, known := k.Lookup(gk)
	if kind := t.kinds[gk]; kind != nil && (!known || kind.served.GVR != served.GVR) {
		t.drop(gk)
		gaveUp = true
	}
	if known && t.kinds[gk] == nil {
		t.kinds[gk] = &trackedKind{served: served, views: map[string]*view{}}
	}
	return gaveUp
}

// wakeUsers has the sets synced that use a kind, but for the one that is being planned.
// The caller holds mu.
func (t *tracker) wakeUsers(gk schema.GroupKind, planned *Set) {
	for s, wanted := range t.users {
		if wanted[gk] && s != planned {
			s.wake()
		}
	}
}

// release forgets a set.
func (t *tracker) release(s *Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, s)
	t.tidy()
}

// tidy stops following what no one uses. The caller holds mu.
func (t *tracker) tidy() {
	used := map[schema.GroupKind]bool{}
	for _, wanted := range t.users {
		maps.Copy(used, wanted)
	}
	for gk := range t.kinds {
		if !used[gk] {
			t.drop(gk)
		}
	}
}

// drop stops following a kind. The caller holds mu.
func (t *tracker) drop(gk schema.GroupKind) {
	for _, v := range t.kinds[gk].views {
		v.stop()
	}
	delete(t.kinds, gk)
}

// view returns what is known of a kind in one namespace or (namespace "") in all,
// followed from now on; nil if the kind is not served. One that was forbidden is
// tried again if that is wanted.
func (t *tracker) view(gk schema.GroupKind, namespace string, again bool) *view {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := t.kinds[gk]
	if kind == nil {
		return nil
	}
	known := kind.views[namespace]
	if known != nil {
		if !known.forbidden() || !again {
			return known
		}
		known.stop()
	}
	kind.views[namespace] = t.open(gk, kind.served.GVR, namespace, observed.HasHealth(gk, kind.served))
	return kind.views[namespace]
}

// open begins to follow a kind in one namespace, as the limited user, or in all: whole
// objects, or their metadata.
func (t *tracker) open(gk schema.GroupKind, gvr schema.GroupVersionResource, namespace string, whole bool) *view {
	var opened *view
	reduce := func(live metav1.Object) (manifest.ID, observed.Member) {
		m := t.read.Member(gk, gvr, live)
		if before, known := opened.Get(m.ID); known && before.Health != nil && m.Health != nil && before.Health.State == m.Health.State {
			m.Health.Since = before.Health.Since
		}
		return m.ID, m
	}
	what, as := gvr.GroupResource().String(), t.watches.own
	if namespace != "" {
		what, as = what+" in namespace "+namespace, t.watches.limited
	}
	var resource follow.Resource = as.FollowMetadata(gvr, namespace)
	if whole {
		resource = as.FollowObjects(gk, gvr, namespace)
	}
	store := follow.NewStore(what, reduce, t.changed).Grouped(setOf).Ignoring(observed.Member.StandsAs)
	opened = &view{Store: store, regained: func() { t.regained(gk) }}
	opened.stop = t.watches.follow(what, resource, metav1.ListOptions{LabelSelector: manifest.PartOfLabel}, opened, func(err error, stop context.CancelFunc) {
		switch {
		case apierrors.IsForbidden(err):
			stop() // asking again and again would not help; a plan does if it has to
		case apierrors.IsNotFound(err):
			t.lookAnew(gk)
		}
	})
	return opened
}

// setOf is the set that a member belongs to.
func setOf(m observed.Member) string { return m.Set }

// lookAnew looks whether a kind is served in another version, or no more. The syncs of
// its users follow it there, or hold back what was of that kind.
func (t *tracker) lookAnew(gk schema.GroupKind) {
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
func (t *tracker) regained(gk schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blind[gk] {
		delete(t.blind, gk)
		t.wakeUsers(gk, nil)
	}
}

// miss notes that sets wait until a kind can be looked at in a view, which may be so by
// now.
func (t *tracker) miss(gk schema.GroupKind, v *view) {
	t.mu.Lock()
	t.blind[gk] = true
	t.mu.Unlock()
	if current, _, _ := v.State(); current {
		t.regained(gk)
	}
}

// missing returns the sets that use a kind which was not served when they were
// planned, so that it is not followed, and, unless k is nil, is served by now.
func (t *tracker) missing(k *kube.Kinds) []*Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sets []*Set
	for s, wanted := range t.users {
		for gk := range wanted {
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

// look waits until all is known that a set uses, and returns what a plan of it needs of
// that. Where the daemon may not see all namespaces it looks, for an application repo,
// into those where the repo has objects, with the rights that it has there. A kind of
// which it cannot be known what there is keeps no other from being known.
func (t *tracker) look(ctx context.Context, s *Set, in scope, k *kube.Kinds, of interest) (*inventory, error) {
	found, looked := newInventory(of), map[schema.GroupKind][]*view{}
	for gk := range in.kinds {
		if _, served := k.Lookup(gk); !served {
			if err := k.GroupUnreachable(gk.Group); err != nil {
				found.miss(gk, err)
			}
			continue
		}
		v, forbidden, err := t.lookAt(ctx, gk, "", s.options.Tier == manifest.System)
		if err == nil {
			looked[gk] = []*view{v}
		}
		if forbidden && s.options.Tier == manifest.Application {
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
func (i *inventory) gather(seen map[schema.GroupKind][]*view) {
	for _, views := range seen {
		for _, v := range views {
			v.EachOf(i.of.set, func(id manifest.ID, m observed.Member) { i.members[id] = m })
		}
	}
	for id := range i.of.named() {
		if _, ours := i.members[id]; ours {
			continue
		}
		for _, v := range seen[id.GroupKind()] {
			if m, there := v.Get(id); there {
				i.members[id] = m
			}
		}
	}
}

// lookInto returns the views of a kind in some namespaces.
func (t *tracker) lookInto(ctx context.Context, gk schema.GroupKind, in scope, found *inventory) ([]*view, error) {
	var views []*view
	for namespace := range in.namespaces {
		if in.absent[namespace] {
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
func (t *tracker) lookAt(ctx context.Context, gk schema.GroupKind, namespace string, again bool) (v *view, forbidden bool, err error) {
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

// changesOf counts what has changed about the objects of a set, of all kinds that it
// uses; false while of some it is not known what there is.
func (t *tracker) changesOf(s *Set) (changes uint64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for gk := range t.users[s] {
		kind := t.kinds[gk]
		if kind == nil {
			return 0, false
		}
		for _, v := range kind.views {
			if v.forbidden() {
				continue
			}
			if current, _, _ := v.State(); !current {
				return 0, false
			}
			changes += v.Changes(s.id)
		}
	}
	return changes, true
}

// find returns what is known of an object; known reports whether it was looked for,
// with an answer that is current.
func (t *tracker) find(id manifest.ID) (m observed.Member, there, known bool) {
	for _, v := range t.viewsWith(id) {
		current, _, _ := v.State()
		known = known || current
		if m, there = v.Get(id); there {
			break
		}
	}
	return m, there, known
}

// seesWhole reports whether a kind's objects are seen whole.
func (t *tracker) seesWhole(gk schema.GroupKind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := t.kinds[gk]
	return kind != nil && observed.HasHealth(gk, kind.served)
}

// put notes what the answer to a write said of an object.
func (t *tracker) put(id manifest.ID, live metav1.Object) {
	for _, v := range t.viewsWith(id) {
		v.Put(live)
	}
}

// viewsWith returns the views in which an object would be seen.
func (t *tracker) viewsWith(id manifest.ID) []*view {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := t.kinds[id.GroupKind()]
	if kind == nil {
		return nil
	}
	var views []*view
	for _, namespace := range slices.Compact([]string{"", id.Namespace}) {
		if v := kind.views[namespace]; v != nil && !v.forbidden() {
			views = append(views, v)
		}
	}
	return views
}

// forbidden reports whether nothing is seen there, because that is not allowed. What was
// put there would stay as it is for ever, whatever becomes of the object.
func (v *view) forbidden() bool {
	_, _, problem := v.State()
	return apierrors.IsForbidden(problem)
}
