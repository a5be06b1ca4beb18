package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// member is a live object that carries an apply set's label, reduced to what is
// needed of it: there may be tens of thousands.
type member struct {
	ID              ID
	GVR             schema.GroupVersionResource
	UID             types.UID
	ResourceVersion string
	Set             string // the apply set the label names
	Entry           entry  // what we have applied
	Generation      int64  // 0 for kinds that do not count
	// Labels and Annotations are kept of kinds that count generations only.
	Labels      map[string]string
	Annotations map[string]string
	Finalizers  []string

	Applied     bool // a kubesync Apply entry in managedFields, which could be read: the proof that we wrote it
	Owned       bool // has ownerReferences: a controller's, not ours to delete
	Terminating bool
	Suspended   bool // the annotation that stops every write, whoever set it
	Kept        bool // the annotation that stops pruning
	Claimed     bool // see claims.go
	Finished    bool // a Job that is Complete or Failed

	Health *Health // nil where what was seen says nothing of it
}

// newMember reduces a live object, or its metadata, to what is needed of it.
func newMember(gk schema.GroupKind, gvr schema.GroupVersionResource, live metav1.Object) member {
	return (*readEntries)(nil).member(gk, gvr, live)
}

// member is newMember for whoever sees many objects.
func (r *readEntries) member(gk schema.GroupKind, gvr schema.GroupVersionResource, live metav1.Object) member {
	own := r.read(ownFields(live.GetManagedFields()))
	annotations := live.GetAnnotations()
	m := member{
		ID:              ID{Group: gk.Group, Kind: gk.Kind, Namespace: live.GetNamespace(), Name: live.GetName()},
		GVR:             gvr,
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Set:             live.GetLabels()[partOfLabel],
		Entry:           own.entry,
		Generation:      live.GetGeneration(),
		Finalizers:      live.GetFinalizers(),
		Applied:         own.sound,
		Owned:           len(live.GetOwnerReferences()) > 0,
		Terminating:     live.GetDeletionTimestamp() != nil,
		Suspended:       annotations[suspendAnnotation] == "true",
		Kept:            annotations[pruneAnnotation] == "false",
		Claimed:         isClaimed(live.GetManagedFields()),
	}
	if m.Generation != 0 {
		m.Labels, m.Annotations = live.GetLabels(), annotations
	}
	m.Health = healthOf(live)
	if whole, ok := live.(*unstructured.Unstructured); ok && gk == jobKind {
		m.Finished = jobFinished(whole)
	}
	return m
}

// suspended tells whether a person has stopped every write to the object. What
// our own apply wrote and git no longer says is no such stop: else it could
// never be taken back through git.
func (m member) suspended(declared map[string]string) bool {
	if !m.Suspended {
		return false
	}
	_, inGit := declared[suspendAnnotation]
	return inGit || !m.applies(suspendAnnotation)
}

// applies tells whether our own entry owns an annotation.
func (m member) applies(annotation string) bool {
	fields, err := fieldsOf(m.Entry.Value())
	return err == nil && fields.Has(fieldpath.MakePathOrDie("metadata", "annotations", annotation)) // an entry that cannot be read proves nothing
}

// object returns a bare manifest of the member, for messages about it.
func (m member) object() Object {
	return Object{manifest: &manifest{id: m.ID, version: m.GVR.Version}}
}
