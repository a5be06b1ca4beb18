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

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
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
	plan  *Plan
	kinds *kube.Kinds // no older than the prune: a kind it lacks would be overlooked
	// recreates says that the object is declared, and is to be created again at once.
	recreates bool
	// going are objects that count as gone although they are still there: what a
	// dry run would have deleted by then. What a real prune deletes is gone.
	going map[types.UID]bool
}

// newGuard takes a fresh look at what the API server serves if what leaves can
// hold objects of kinds that no manifest of ours names.
func newGuard(ctx context.Context, plan *Plan, candidates []observed.Member) (guard, error) {
	g := guard{plan: plan, kinds: plan.kinds, going: map[types.UID]bool{}}
	if !slices.ContainsFunc(candidates, func(m observed.Member) bool { return manifest.StepOf(m.ID.GroupKind()) == manifest.StepFoundations }) {
		return g, nil
	}
	var err error
	if g.kinds, err = plan.set.cluster.refreshKinds(ctx); err != nil {
		return g, fmt.Errorf("before Namespaces or CRDs are pruned: %w", err)
	}
	return g, nil
}

// dataRisk says why an object may not be deleted for the data that would go with it; the zero
// value that it may.
type dataRisk struct {
	reason     string
	approvable bool // a person's approval lets it go
}

// outcome is that of an object that may not be deleted.
func (r dataRisk) outcome(m observed.Member) Outcome {
	if r.approvable {
		return needsApproval(m, r.reason)
	}
	return blocked(m, r.reason)
}

// check decides whether an object may be deleted as far as data is concerned.
func (g guard) check(ctx context.Context, m observed.Member) (dataRisk, error) {
	gk := m.ID.GroupKind()
	if g.approved(m) && gk != manifest.NamespaceKind {
		return dataRisk{}, nil
	}
	switch {
	case holdsData(gk):
		return g.waits(m, fmt.Sprintf("deleting a %s can destroy its data", m.ID.Kind)), nil
	case gk == statefulSetKind:
		return g.checkStatefulSet(ctx, m)
	case gk == manifest.CRDKind:
		return g.checkCRD(ctx, m)
	case gk == manifest.NamespaceKind:
		return g.checkNamespace(ctx, m)
	}
	return dataRisk{}, nil
}

// holdsData reports whether objects of a kind are data, or stand for it.
func holdsData(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Kind: "PersistentVolume"}, claimKind,
		schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"},
		schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotContent"},
		schema.GroupKind{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshot"},
		schema.GroupKind{Group: "groupsnapshot.storage.k8s.io", Kind: "VolumeGroupSnapshotContent"}:
		return true
	}
	return false
}

var (
	claimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// approved reports whether a person has approved the deletion of an object. For one that
// is declared, the trailer of the commit that changes it is an approval, too.
func (g guard) approved(m observed.Member) bool {
	return g.plan.allows(m) || g.recreates && g.plan.consent.counts()
}

// waits adds to a reason what releases it.
func (g guard) waits(m observed.Member, reason string) dataRisk {
	revision := g.plan.Revision.ID
	text := fmt.Sprintf("%s; waits for approval of revision %s", reason, revision)
	for _, objection := range g.plan.consent.objections(revision, asObjects([]observed.Member{m})) {
		text += "; " + objection
	}
	return dataRisk{reason: text + "; " + g.plan.set.howToApprove(revision, m.ID.String()), approvable: true}
}

// checkStatefulSet holds a StatefulSet that takes its claims along: with
// persistentVolumeClaimRetentionPolicy.whenDeleted: Delete (KEP-1847) they are deleted
// with it, and the data in them.
func (g guard) checkStatefulSet(ctx context.Context, m observed.Member) (dataRisk, error) {
	live, err := g.plan.set.client.Get(ctx, m.GVR, m.ID.Namespace, m.ID.Name)
	switch {
	case kube.DoesNotExist(err):
		return dataRisk{}, nil // which is looked at again when it is deleted
	case err != nil:
		return dataRisk{}, fmt.Errorf("read the StatefulSet: %w", err)
	}
	policy, _ := manifest.MapAt(live.Object, "spec", "persistentVolumeClaimRetentionPolicy")["whenDeleted"].(string)
	if policy != "Delete" || len(manifest.MapsAt(live.Object, "spec", "volumeClaimTemplates")) == 0 {
		return dataRisk{}, nil
	}
	return g.waits(m, "its PersistentVolumeClaims, and the data in them, are deleted with it (persistentVolumeClaimRetentionPolicy.whenDeleted: Delete)"), nil
}

// checkCRD holds a CRD whose objects are still there: they would all go with it.
func (g guard) checkCRD(ctx context.Context, m observed.Member) (dataRisk, error) {
	crd, err := g.plan.set.cluster.own.Get(ctx, m.GVR, "", m.ID.Name)
	if err != nil {
		return dataRisk{}, fmt.Errorf("read the CRD: %w", err)
	}
	for _, gvk := range manifest.Defines(crd) {
		served, found := g.kinds.Served[gvk]
		if !found {
			continue
		}
		var in []string
		err := g.plan.set.cluster.own.ListMetadata(ctx, served.GVR, "", "", func(meta *metav1.PartialObjectMetadata) {
			if !g.going[meta.UID] {
				in = append(in, observed.NewMember(gvk.GroupKind(), served.GVR, meta).ID.String())
			}
		})
		if err != nil {
			return dataRisk{}, err
		}
		if len(in) > 0 {
			return g.waits(m, "it still has "+listed(in)), nil
		}
		return dataRisk{}, nil // every version lists the same objects
	}
	return dataRisk{}, nil
}

// checkNamespace holds a Namespace that has anything in it which does not go in
// the same sync. It asks for every kind that can be listed and deleted; a kind
// that cannot be looked at counts as one that has objects.
func (g guard) checkNamespace(ctx context.Context, m observed.Member) (dataRisk, error) {
	if err := g.kinds.AllUnreachable(); err != nil {
		return dataRisk{reason: fmt.Sprintf("what it still holds could not be found out: %v", err)}, nil
	}
	var all []prune.Content
	for gk, gvk := range g.kinds.Preferred {
		served := g.kinds.Served[gvk]
		if !served.Namespaced || !served.Listable {
			continue
		}
		held, err := g.holds(ctx, gvk, served, m.ID.Name)
		if err != nil {
			return dataRisk{}, err
		}
		for i := range held {
			all = append(all, g.content(observed.NewMember(gk, served.GVR, &held[i]), &held[i]))
		}
	}
	own, foreign := prune.Contents(all)
	switch {
	case len(own) > 0:
		return dataRisk{reason: fmt.Sprintf("it still holds %s that git declares, or that may not be pruned", listed(own))}, nil
	case len(foreign) > 0 && !g.approved(m):
		return g.waits(m, fmt.Sprintf("it still holds %s not from this repo", listed(foreign))), nil
	}
	return dataRisk{}, nil
}

// content is what the decision over a Namespace needs of an object in it.
func (g guard) content(m observed.Member, live metav1.Object) prune.Content {
	c := prune.Content{
		UID: m.UID, Name: m.ID.String(), Claim: m.ID.GroupKind() == claimKind,
		Own:   m.Set == g.plan.set.id && m.Applied && g.plan.set.ledger.IsRecorded(m),
		Usual: comesWithNamespace(m, live),
		Going: g.going[m.UID],
	}
	for _, owner := range live.GetOwnerReferences() {
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		served, known := g.kinds.Lookup(gvk.GroupKind())
		c.Owners = append(c.Owners, prune.Owner{UID: owner.UID, Inside: known && served.Namespaced && served.Listable})
	}
	return c
}

// holds lists the objects of one kind in a Namespace. A kind that is not there has none
// if discovery agrees, which takes it a moment: its CRD went with this very prune, say,
// and every object with it. A group that cannot be discovered may still have it.
func (g guard) holds(ctx context.Context, gvk schema.GroupVersionKind, served kube.ServedKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	for deadline := time.Now().Add(unservedWait); ; {
		var held []metav1.PartialObjectMetadata
		err := g.plan.set.cluster.own.ListMetadata(ctx, served.GVR, namespace, "", func(meta *metav1.PartialObjectMetadata) {
			held = append(held, metav1.PartialObjectMetadata{ObjectMeta: meta.ObjectMeta})
		})
		if !apierrors.IsNotFound(err) {
			return held, err
		}
		fresh, failure := g.plan.set.cluster.refreshKinds(ctx)
		if failure != nil {
			return nil, failure
		}
		if _, still := fresh.Served[gvk]; !still && len(fresh.Unreachable) == 0 {
			return nil, nil
		}
		if time.Now().After(deadline) || pause(ctx) != nil {
			return nil, err
		}
	}
}

// comesWithNamespace reports whether an object is there without anyone having
// made it: what controllers put into every Namespace, and our own RoleBinding.
func comesWithNamespace(m observed.Member, live metav1.Object) bool {
	switch m.ID.GroupKind() {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Kind: "Endpoints"}, schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return true
	case schema.GroupKind{Kind: "ConfigMap"}:
		return m.ID.Name == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return m.ID.Name == "default"
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		return m.ID.Name == manifest.BindingName && live.GetLabels()[bindingWriterLabel] != ""
	}
	return false
}

// listed says how many objects there are and names some, in order.
func listed(names []string) string {
	slices.Sort(names)
	text := fmt.Sprintf("%s (%s", prune.CountObjects(len(names)), strings.Join(names[:min(len(names), guardNames)], ", "))
	if len(names) > guardNames {
		text += ", …"
	}
	return text + ")"
}
