package inventory

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
		return max(0, Patience-time.Since(since))
	}
	return Patience
}

// forbidden reports whether nothing is seen there, because that is not allowed. What was
// Put there would stay as it is for ever, whatever becomes of the object.
func (v *view) forbidden() bool {
	_, _, problem := v.State()
	return apierrors.IsForbidden(problem)
}

// view returns what is known of a kind in one namespace or (namespace "") in all,
// followed from now on; nil if the kind is not served. One that was forbidden is
// tried again if that is wanted.
func (t *Tracker) view(gk schema.GroupKind, namespace string, again bool) *view {
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
	kind.views[namespace] = t.open(gk, kind.served.GVR, namespace, kind.whole)
	return kind.views[namespace]
}

// open begins to follow a kind in one namespace, as the limited user, or in all: whole
// objects, or their metadata.
func (t *Tracker) open(gk schema.GroupKind, gvr schema.GroupVersionResource, namespace string, whole bool) *view {
	var opened *view
	reduce := func(live metav1.Object) (manifest.ID, observed.Member) {
		m := t.read.Member(gk, gvr, live)
		if before, known := opened.Get(m.ID); known && before.Health != nil && m.Health != nil && before.Health.State == m.Health.State {
			m.Health.Since = before.Health.Since
		}
		return m.ID, m
	}
	what, as := gvr.GroupResource().String(), t.watches.Own
	if namespace != "" {
		what, as = what+" in namespace "+namespace, t.watches.Limited
	}
	var resource follow.Resource = as.FollowMetadata(gvr, namespace)
	if whole {
		resource = as.FollowObjects(gk, gvr, namespace)
	}
	store := follow.NewStore(what, reduce, t.changed).Grouped(setOf).Ignoring(observed.Member.StandsAs)
	opened = &view{Store: store, regained: func() { t.regained(gk) }}
	opened.stop = t.watches.Follow(what, resource, metav1.ListOptions{LabelSelector: manifest.PartOfLabel}, opened, func(err error, stop context.CancelFunc) {
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
