package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// watched is a cluster that is being watched: what plans are made of then, without
// a request.
type watched struct {
	watches    *inventory.Watches
	members    *inventory.Tracker
	namespaces *follow.Store[string, namespace]
	parents    *follow.Store[string, *corev1.ConfigMap]
	bindings   *follow.Store[string, *rbacv1.RoleBinding] // by namespace
	corrector  *corrector
}

// Watch has the cluster watched until ctx ends. From now on plans are made of what
// is seen, and what drifts is corrected, if the options say so. The function it
// returns waits until all that has ended.
func (c *Cluster) Watch(ctx context.Context) (wait func()) {
	s := inventory.NewWatches(ctx, inventory.WatchOptions{Own: c.watching, Limited: c.limitedWatching, WentBack: c.options.WentBack, Log: c.options.Log})
	w := &watched{
		watches:    s,
		members:    inventory.NewTracker(s, c.refreshKinds, c.observed),
		namespaces: follow.NewStore("namespaces", reduceNamespace, c.namespaceSeen).Ignoring(namespace.standsAs),
		parents:    follow.NewStore("the parent ConfigMaps", byName[*corev1.ConfigMap], c.parentSeen),
		bindings:   follow.NewStore("RoleBindings "+manifest.BindingName, byNamespace[*rbacv1.RoleBinding], func(string, metav1.Object) { c.requestHousekeeping() }),
		corrector:  newCorrector(c),
	}
	c.setWatched(w)
	s.Follow("namespaces", s.Own.FollowMetadata(namespacesResource, ""), metav1.ListOptions{}, w.namespaces, nil)
	parents := c.watchingTyped.CoreV1().ConfigMaps(c.options.OwnNamespace)
	s.Follow("parent ConfigMaps", kube.TypedResource[*corev1.ConfigMap](parents.List, parents.Watch),
		metav1.ListOptions{LabelSelector: manifest.ParentIDLabel}, w.parents, nil)
	bindings := c.watchingTyped.RbacV1().RoleBindings("")
	s.FollowIfAllowed("RoleBindings", kube.TypedResource[*rbacv1.RoleBinding](bindings.List, bindings.Watch),
		metav1.ListOptions{FieldSelector: "metadata.name=" + manifest.BindingName}, w.bindings)
	s.FollowIfAllowed("CRDs", s.Own.FollowMetadata(crdResource, ""), metav1.ListOptions{}, &crdHandler{cluster: c, ctx: ctx, awaited: map[schema.GroupResource]time.Time{}})
	var correcting sync.WaitGroup
	correcting.Go(func() { w.corrector.run(ctx) })
	return func() {
		<-ctx.Done()
		correcting.Wait()
		s.Wait()
		c.setWatched(nil)
	}
}

// Blind returns what the daemon cannot see at the moment of what it watches.
func (c *Cluster) Blind() []inventory.Blind {
	if w := c.watched(); w != nil {
		return w.watches.BlindSpots()
	}
	return nil
}

func (c *Cluster) setWatched(w *watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.relisted = w, false
}

// watched returns what is seen of the cluster; nil while it is not being watched.
func (c *Cluster) watched() *watched {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// byName files an object under its name.
func byName[T metav1.Object](object metav1.Object) (string, T) {
	whole, _ := object.(T)
	return object.GetName(), whole
}

// byNamespace files an object under its namespace.
func byNamespace[T metav1.Object](object metav1.Object) (string, T) {
	whole, _ := object.(T)
	return object.GetNamespace(), whole
}

// namespace is what is known of a Namespace.
type namespace struct {
	labels      map[string]string
	terminating bool
}

// standsAs reports whether a Namespace that has changed is still the same to a sync.
func (n namespace) standsAs(before namespace) bool {
	return n.terminating == before.terminating && maps.Equal(n.labels, before.labels)
}

func reduceNamespace(live metav1.Object) (string, namespace) {
	return live.GetName(), namespace{live.GetLabels(), live.GetDeletionTimestamp() != nil}
}

// namespaceSeen receives a Namespace that changed: application repos may need rights
// in it, and pending objects may have waited for it, or for it to be gone. While it is being
// deleted it changes when what keeps it does, which is reported.
func (c *Cluster) namespaceSeen(name string, live metav1.Object) {
	c.requestHousekeeping()
	if live == nil || live.GetDeletionTimestamp() != nil {
		c.wakeIn(name)
	}
	if live != nil && live.GetDeletionTimestamp() == nil {
		c.wakePending()
		c.watched().corrector.retry(func(id manifest.ID) bool { return id.Namespace == name })
	}
}

// parentSeen receives a parent that another writer than this daemon changed: a person
// may have suspended the set, or approved what it prunes.
func (c *Cluster) parentSeen(name string, live metav1.Object) {
	repo, ok := parent.Repo(name)
	if !ok {
		return
	}
	set := c.setByName(repo)
	switch {
	case set == nil:
		c.requestHousekeeping() // it may be an unlisted one
	case set.note(live):
		set.wake()
	}
}

// namespaces returns the cluster's namespaces as they are now.
func (c *Cluster) namespaces(ctx context.Context) (liveNamespaces, error) {
	w := c.watched()
	if w == nil {
		return c.listNamespaces(ctx)
	}
	if err := w.namespaces.Await(ctx, inventory.Patience, apierrors.IsForbidden); err != nil {
		return liveNamespaces{}, err
	}
	found := liveNamespaces{labels: map[string]map[string]string{}, terminating: map[string]bool{}}
	w.namespaces.Each(func(name string, ns namespace) {
		found.labels[name] = ns.labels
		if ns.terminating {
			found.terminating[name] = true
		}
	})
	return found, nil
}

// parentOf returns a set's parent as it is now, nil if there is none.
func (c *Cluster) parentOf(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	w := c.watched()
	if w == nil {
		return c.getParent(ctx, name)
	}
	if err := w.parents.Await(ctx, inventory.Patience, apierrors.IsForbidden); err != nil {
		return nil, err
	}
	if live, there := w.parents.Get(name); there {
		return live, nil
	}
	return c.getParent(ctx, name) // one that lost its label is not among them
}

// getParent reads a parent, nil if there is none.
func (c *Cluster) getParent(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	live, err := c.typed.CoreV1().ConfigMaps(c.options.OwnNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case kube.DoesNotExist(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", c.options.OwnNamespace, name, err)
	}
	return live, kube.CheckName(live, c.options.OwnNamespace, name)
}

// keepParent notes a parent that was just written.
func (c *Cluster) keepParent(saved *corev1.ConfigMap) {
	if w := c.watched(); w != nil {
		w.parents.Put(saved)
	}
}

// inventoryOf finds the labelled objects that matter where a set is or is to be.
func (s *Set) inventoryOf(ctx context.Context, k *kube.Kinds, in inventory.Scope, of inventory.Interest) (*inventory.Inventory, error) {
	w := s.cluster.watched()
	if w == nil {
		return inventory.Lister{Own: s.cluster.own, As: s.client}.List(ctx, k, in, of)
	}
	w.members.Use(s.user, k, in)
	found, err := w.members.Look(ctx, s.user, in, k, of)
	if err != nil {
		return nil, err
	}
	if current, _, problem := w.namespaces.State(); len(found.Blind) > 0 && !current {
		problem = cmp.Or(problem, errors.New("the Namespaces could not be listed in time"))
		return nil, fmt.Errorf("what there is in the cluster is not known: %w", problem) // of any kind
	}
	return found, nil
}

// interestOf is what a plan of the set has to know.
func (p *Plan) interestOf() inventory.Interest {
	return inventory.Interest{Set: p.set.id, Declared: p.declared, Deleting: p.set.ledger.Deleting()}
}
