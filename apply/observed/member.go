package observed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
)

// member is a live object that carries an apply set's label, reduced to what is
// needed of it: there may be tens of thousands.
type Member struct {
	ID              manifest.ID
	GVR             schema.GroupVersionResource
	UID             types.UID
	ResourceVersion string
	Set             string // the apply set the label names
	Entry           Entry  // what we have applied
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
	Claimed     bool // see managedfields.go
	Finished    bool // a Job that is Complete or Failed
	Gated       bool // annotations say when it is current or has failed (package health)

	Health *health.Health // nil where what was seen says nothing of it
}

// newMember reduces a live object, or its metadata, to what is needed of it.
func NewMember(gk schema.GroupKind, gvr schema.GroupVersionResource, live metav1.Object) Member {
	return (*Reader)(nil).Member(gk, gvr, live)
}

// member is newMember for whoever sees many objects.
func (r *Reader) Member(gk schema.GroupKind, gvr schema.GroupVersionResource, live metav1.Object) Member {
	own := r.read(ownFields(live.GetManagedFields()))
	annotations := live.GetAnnotations()
	m := Member{
		ID:              manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: live.GetNamespace(), Name: live.GetName()},
		GVR:             gvr,
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Set:             live.GetLabels()[manifest.PartOfLabel],
		Entry:           own.entry,
		Generation:      live.GetGeneration(),
		Finalizers:      live.GetFinalizers(),
		Applied:         own.sound,
		Owned:           len(live.GetOwnerReferences()) > 0,
		Terminating:     live.GetDeletionTimestamp() != nil,
		Suspended:       annotations[manifest.SuspendAnnotation] == "true",
		Kept:            annotations[manifest.PruneAnnotation] == "false",
		Claimed:         IsClaimed(live.GetManagedFields()),
		Gated:           health.Annotated(annotations),
	}
	if m.Generation != 0 {
		m.Labels, m.Annotations = live.GetLabels(), annotations
	}
	m.Health = healthOf(live)
	if whole, ok := live.(*unstructured.Unstructured); ok && gk == manifest.JobKind {
		m.Finished = jobFinished(whole)
	}
	return m
}

// suspended reports whether a person has stopped every write to the object. What
// our own apply wrote and git no longer says is no such stop: else it could
// never be taken back through git.
func (m Member) Stopped(declared map[string]string) bool {
	if !m.Suspended {
		return false
	}
	_, inGit := declared[manifest.SuspendAnnotation]
	return inGit || !m.applies(manifest.SuspendAnnotation)
}

// standsAs reports whether a member that has changed is still the same to a sync: whose it
// is, who has written it, and what stops a write or a deletion. Its status is not, nor are
// the fields of others.
func (m Member) StandsAs(before Member) bool {
	return m.UID == before.UID && m.Set == before.Set && m.Entry == before.Entry && m.Applied == before.Applied &&
		m.Owned == before.Owned && m.Terminating == before.Terminating && m.Suspended == before.Suspended &&
		m.Kept == before.Kept && m.Claimed == before.Claimed && m.Finished == before.Finished
}

// applies reports whether our own entry owns an annotation.
func (m Member) applies(annotation string) bool {
	fields, err := FieldsOf(m.Entry.Value())
	return err == nil && fields.Has(fieldpath.MakePathOrDie("metadata", "annotations", annotation)) // an entry that cannot be read proves nothing
}

// jobFinished reports whether a Job is Complete or Failed.
func jobFinished(job *unstructured.Unstructured) bool {
	for _, condition := range manifest.MapsAt(job.Object, "status", "conditions") {
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return true
		}
	}
	return false
}
