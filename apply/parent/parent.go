package parent

import (
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/revision"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Keys of a parent's data.
const (
	DataURL       = "url"
	DataDirectory = "directory"
	DataSource    = "source"
	DataWriter    = "writer"
	DataRevision  = "revision"
	DataRef       = "ref"
	DataTier      = "tier"
	DataSubject   = "subject" // of the commit
	DataWritten   = "written" // when the parent was written last, RFC 3339
	DataResult    = "result"
	DataPruned    = "pruned"    // the last revision of which nothing was left to prune
	DataFinished  = "finished"  // the Jobs that have ended, with their content
	DataMode      = "mode"      // that selected the revision, as VERSION_MODE has it
	DataRendering = "rendering" // what decides over the manifests besides the revision, JSON; see prune.Rendering
	DataTrailer   = "trailer"   // the last revision whose trailer was found to count
	DataUsed      = "used"      // the revisions whose trailers were used, the last 100
	DataApproved  = "approval"  // the revision that BinaryApproved is for

	BinaryProofs   = "proofs"   // what is known to be as it was sent; see package ledger
	BinaryMembers  = "members"  // the UIDs that the answers to our writes named; see package ledger
	BinaryApproved = "approved" // of these, what a person has approved to be deleted
)

// Parent is the ConfigMap that remembers a set across restarts: where its
// objects may be, where they came from, and who writes them.
type Parent struct {
	Live *corev1.ConfigMap // nil if there is none yet
}

// Data returns one value of the parent's data, "" if there is none.
func (p Parent) Data(key string) string {
	if p.Live == nil {
		return ""
	}
	return p.Live.Data[key]
}

// Binary returns one value of the parent's binary data, nil if there is none.
func (p Parent) Binary(key string) []byte {
	if p.Live == nil {
		return nil
	}
	return p.Live.BinaryData[key]
}

// Annotation returns one of the parent's annotations, "" if there is none.
func (p Parent) Annotation(key string) string {
	if p.Live == nil {
		return ""
	}
	return p.Live.Annotations[key]
}

// Kinds returns the kinds in which the set may have members.
func (p Parent) Kinds() map[schema.GroupKind]bool {
	return parseGroupKinds(p.Annotation(groupKinds))
}

// Namespaces returns the namespaces, besides the parent's own, in which the set
// may have members.
func (p Parent) Namespaces() []string { return SplitList(p.Annotation(additionalNamespaces)) }

// Suspended reports whether a person has stopped the set.
func (p Parent) Suspended() bool { return p.Annotation(manifest.SuspendAnnotation) == "true" }

// Revision is the revision that was applied last, as far as it is recorded.
func (p Parent) Revision() revision.Revision {
	return revision.Revision{ID: p.Data(DataRevision), Ref: p.Data(DataRef), Subject: p.Data(DataSubject)}
}
