package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// guardNames is how many of the objects in the way a reason names.
const guardNames = 3

// unservedWait bounds how long a kind may be in discovery and not be served.
const unservedWait = 5 * time.Second

// guard finds out whether a deletion would destroy data: what is in a
// PersistentVolume or its claim, the objects of a CRD, and what others have in a
// Namespace. Approval lets the deletion pass, but never that of a Namespace with
// objects in it that git still declares or that a person has exempted.
type guard struct {
	set      *Set
	plan     *Plan
	kinds    *kinds // no older than the prune: a kind it lacks would be overlooked
	approved bool
	// going are objects that count as gone although they are still there: what a
	// dry run would have deleted by then. What a real prune deletes is gone.
	going map[types.UID]bool
}

// newGuard takes a fresh look at what the API server serves if what leaves can
// hold objects of kinds that no manifest of ours names.
func (s *Set) newGuard(ctx context.Context, plan *Plan, candidates []member) (guard, error) {
	g := guard{set: s, plan: plan, kinds: plan.kinds, approved: plan.approved(), going: map[types.UID]bool{}}
	if !slices.ContainsFunc(candidates, func(m member) bool { return stepOf(m.ID.GroupKind()) == stepFoundations }) {
		return g, nil
	}
	var err error
	if g.kinds, err = s.cluster.refreshKinds(ctx); err != nil {
		return g, fmt.Errorf("before Namespaces or CRDs are pruned: %w", err)
	}
	return g, nil
}

// check returns why an object may not be deleted yet, "" if it may.
func (g guard) check(ctx context.Context, m member) (string, error) {
	switch m.ID.GroupKind() {
	case schema.GroupKind{Kind: "PersistentVolume"}, schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		if g.approved {
			return "", nil
		}
		return g.waits(fmt.Sprintf("deleting a %s can destroy its data", m.ID.Kind)), nil
	case crdKind:
		return g.checkCRD(ctx, m)
	case namespaceKind:
		return g.checkNamespace(ctx, m)
	}
	return "", nil
}

// waits adds to a reason what releases it.
func (g guard) waits(reason string) string {
	revision := g.plan.Revision.Revision
	return fmt.Sprintf("%s; waits for approval of revision %s; %s", reason, revision, g.set.howToApprove(revision))
}

// checkCRD holds a CRD whose objects are still there: they would all go with it.
func (g guard) checkCRD(ctx context.Context, m member) (string, error) {
	if g.approved {
		return "", nil
	}
	crd, err := g.set.cluster.own.get(ctx, m.GVR, "", m.ID.Name)
	if err != nil {
		return "", fmt.Errorf("read the CRD: %w", err)
	}
	for _, gvk := range definedKinds(crd) {
		served, found := g.kinds.served[gvk]
		if !found {
			continue
		}
		in := &contents{}
		err := g.set.cluster.own.listMetadata(ctx, served.GVR, "", "", func(meta *metav1.PartialObjectMetadata) {
			if !g.going[meta.UID] {
				in.add(newMember(gvk.GroupKind(), served.GVR, meta).ID)
			}
		})
		if err != nil {
			return "", err
		}
		if in.total > 0 {
			return g.waits("it still has " + in.String()), nil
		}
		return "", nil // every version lists the same objects
	}
	return "", nil
}

// checkNamespace holds a Namespace that has anything in it which does not go in
// the same sync. It asks for every kind that can be listed and deleted; a kind
// that cannot be looked at counts as one that has objects.
func (g guard) checkNamespace(ctx context.Context, m member) (string, error) {
	if err := g.kinds.allUnreachable(); err != nil {
		return fmt.Sprintf("what it still holds could not be found out: %v", err), nil
	}
	foreign, ours := &contents{}, &contents{}
	for gk, gvk := range g.kinds.preferred {
		served := g.kinds.served[gvk]
		if !served.Namespaced || !served.Listable {
			continue
		}
		held, err := g.holds(ctx, gvk, served, m.ID.Name)
		if err != nil {
			return "", err
		}
		for i := range held {
			found := newMember(gk, served.GVR, &held[i])
			switch {
			case g.going[found.UID], found.Owned, comesWithNamespace(found, &held[i]):
			case found.Set == g.set.id && found.Applied:
				ours.add(found.ID)
			default:
				foreign.add(found.ID)
			}
		}
	}
	switch {
	case ours.total > 0:
		return fmt.Sprintf("it still holds %s that git declares, or that may not be pruned", ours), nil
	case foreign.total > 0 && !g.approved:
		return g.waits(fmt.Sprintf("it still holds %s not from this repo", foreign)), nil
	}
	return "", nil
}

// holds lists the objects of one kind in a Namespace. A kind that is not there has none
// if discovery agrees, which takes it a moment: its CRD went with this very prune, say,
// and every object with it. A group that cannot be discovered may still have it.
func (g guard) holds(ctx context.Context, gvk schema.GroupVersionKind, served servedKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	for deadline := time.Now().Add(unservedWait); ; {
		var held []metav1.PartialObjectMetadata
		err := g.set.cluster.own.listMetadata(ctx, served.GVR, namespace, "", func(meta *metav1.PartialObjectMetadata) {
			held = append(held, metav1.PartialObjectMetadata{ObjectMeta: meta.ObjectMeta})
		})
		if !apierrors.IsNotFound(err) {
			return held, err
		}
		fresh, failure := g.set.cluster.refreshKinds(ctx)
		if failure != nil {
			return nil, failure
		}
		if _, still := fresh.served[gvk]; !still && len(fresh.unreachable) == 0 {
			return nil, nil
		}
		if time.Now().After(deadline) || pause(ctx) != nil {
			return nil, err
		}
	}
}

// comesWithNamespace tells whether an object is there without anybody having
// made it: what controllers put into every Namespace, and our own RoleBinding.
func comesWithNamespace(m member, live metav1.Object) bool {
	switch m.ID.GroupKind() {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return true
	case schema.GroupKind{Kind: "ConfigMap"}:
		return m.ID.Name == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return m.ID.Name == "default"
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		return m.ID.Name == BindingName && live.GetLabels()[bindingWriterLabel] != ""
	}
	return false
}

// contents counts objects and keeps some of their names.
type contents struct {
	total int
	names []string
}

// add counts one object.
func (c *contents) add(id ID) {
	c.total++
	if len(c.names) < guardNames {
		c.names = append(c.names, id.String())
	}
}

// String says how many objects there are and names some.
func (c *contents) String() string {
	text := fmt.Sprintf("%s (%s", countObjects(c.total), strings.Join(c.names, ", "))
	if c.total > len(c.names) {
		text += ", …"
	}
	return text + ")"
}
