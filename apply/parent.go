package apply

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/internal/revision"
)

// parentTooling marks our parents, so that other tools refuse to touch them (KEP-3659).
const parentTooling = "kubesync/v1"

// parentTries bounds how often a write of the parent starts over because a user
// else wrote it at the same time.
const parentTries = 5

// Keys of a parent's data.
const (
	dataURL       = "url"
	dataDirectory = "directory"
	dataSource    = "source"
	dataWriter    = "writer"
	dataRevision  = "revision"
	dataRef       = "ref"
	dataTier      = "tier"
	dataSubject   = "subject" // of the commit
	dataWritten   = "written" // when the parent was written last, RFC 3339
	dataResult    = "result"
	dataPruned    = "pruned"    // the last revision of which nothing was left to prune
	dataFinished  = "finished"  // the Jobs that have ended, with their content
	dataMode      = "mode"      // that selected the revision, as VERSION_MODE has it
	dataRendering = "rendering" // what decides over the manifests besides the revision, JSON; see source.go
	dataTrailer   = "trailer"   // the last revision whose trailer was found to count
	dataUsed      = "used"      // the revisions whose trailers were used, the last 100
	dataApproved  = "approval"  // the revision that binaryApproved is for

	binaryProofs   = "proofs"   // what is known to be as it was sent; see proof.go
	binaryMembers  = "members"  // the UIDs that the answers to our writes named; see record.go
	binaryApproved = "approved" // of these, what a person has approved to be deleted
)

// memory is what a parent is to remember.
type memory struct {
	data     map[string]string // "" takes a key away
	binaries map[string][]byte // all of them; none of nothing
	// spend takes what was used up out of an approval; nil for nothing.
	spend func(prune.Approval) prune.Approval
}

// parent is the ConfigMap that remembers a set across restarts: where its
// objects may be, where they came from, and who writes them.
type parent struct {
	live *corev1.ConfigMap // nil if there is none yet
}

// readParent returns a set's parent as it is now.
func (s *Set) readParent(ctx context.Context) (parent, error) {
	live, err := s.cluster.parentOf(ctx, s.parentName)
	if err != nil {
		return parent{}, fmt.Errorf("read the set's parent: %w", err)
	}
	return s.usable(live)
}

// reread reads the parent from the API server, after another writer wrote it.
func (s *Set) reread(ctx context.Context) (parent, error) {
	live, err := s.cluster.getParent(ctx, s.parentName)
	if err != nil {
		return parent{}, fmt.Errorf("read the set's parent again: %w", err)
	}
	return s.usable(live)
}

// usable refuses a parent that is not ours to use.
func (s *Set) usable(live *corev1.ConfigMap) (parent, error) {
	if s.noteParent(live) {
		// A person who steers while a sync is under way may want more than that sync
		// will still do: it has polled git already, and may be past pruning. The event
		// brings nothing new when it comes.
		s.wake()
	}
	if live == nil {
		return parent{}, nil
	}
	switch {
	case live.Labels[manifest.ParentIDLabel] == "":
		return parent{}, fmt.Errorf("ConfigMap %s exists and is no apply set's parent: delete it, or give the repo another name", s.parentRef())
	case live.Annotations[toolingAnnotation] != parentTooling:
		return parent{}, fmt.Errorf("ConfigMap %s is the parent of an apply set of %q: delete it, or give the repo another name",
			s.parentRef(), live.Annotations[toolingAnnotation])
	case live.Labels[manifest.ParentIDLabel] != s.id:
		return parent{}, fmt.Errorf("ConfigMap %s carries the apply set ID %s instead of %s: it was copied or edited; put the label back",
			s.parentRef(), live.Labels[manifest.ParentIDLabel], s.id)
	}
	return parent{live: live}, nil
}

// parentRef names a set's parent for a person.
func (s *Set) parentRef() string { return s.cluster.options.OwnNamespace + "/" + s.parentName }

// data returns one value of the parent's data, "" if there is none.
func (p parent) data(key string) string {
	if p.live == nil {
		return ""
	}
	return p.live.Data[key]
}

// binary returns one value of the parent's binary data, nil if there is none.
func (p parent) binary(key string) []byte {
	if p.live == nil {
		return nil
	}
	return p.live.BinaryData[key]
}

// annotation returns one of the parent's annotations, "" if there is none.
func (p parent) annotation(key string) string {
	if p.live == nil {
		return ""
	}
	return p.live.Annotations[key]
}

// kinds returns the kinds in which the set may have members.
func (p parent) kinds() map[schema.GroupKind]bool {
	return parseGroupKinds(p.annotation(groupKindsAnnotation))
}

// namespaces returns the namespaces, besides the parent's own, in which the set
// may have members.
func (p parent) namespaces() []string { return splitList(p.annotation(additionalNamespacesAnnotation)) }

// suspended reports whether a person has stopped the set.
func (p parent) suspended() bool { return p.annotation(manifest.SuspendAnnotation) == "true" }

// widen makes the parent name everything that is about to be written, besides
// all that it names already, puts our Lease on it, and takes off the record the proofs of
// what is about to change. It comes before the first write, so that a crash at any
// moment leaves nothing the parent does not name, and no proof that is wrong.
func (s *Set) widen(ctx context.Context, plan *Plan) error {
	data := map[string]string{dataWriter: s.cluster.options.Writer}
	if plan.parent.data(dataTrailer) != plan.Revision.ID {
		data[dataTrailer] = "" // it was for a step that ends here
	}
	return s.saveParent(ctx, plan, plan.scope(), s.memory(plan, true, data, nil))
}

// saveParent writes the plan's parent with a scope and what to remember, unless
// it says so already. What a person put on it stays, but for an approval that is
// used up. If a user wrote the
// parent since it was read, it is read again, and left alone if a person has
// suspended it or another writer has taken it.
func (s *Set) saveParent(ctx context.Context, plan *Plan, is inventory.Scope, now memory) error {
	for range parentTries {
		saved, err := s.tryParent(ctx, plan.parent, is, now)
		if err == nil {
			plan.parent = saved
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("write the parent ConfigMap %s: %w", s.parentRef(), err)
		}
		before := plan.parent
		if plan.parent, err = s.reread(ctx); err != nil {
			return err
		}
		if before.live == nil && plan.parent.live != nil {
			// What it remembers must not be overwritten by a sync that knew nothing of it.
			return fmt.Errorf("the parent ConfigMap %s did not exist a moment ago, and does now: looking again", s.parentRef())
		}
		if reason := s.suspended(plan.parent); reason != "" {
			return fmt.Errorf("stopped: %s", reason)
		}
		if err := s.checkWriter(ctx, plan.parent); err != nil {
			return err
		}
	}
	return fmt.Errorf("write the parent ConfigMap %s: another writer keeps writing it", s.parentRef())
}

// tryParent writes the parent unless another writer has written it since p was read.
func (s *Set) tryParent(ctx context.Context, p parent, is inventory.Scope, now memory) (parent, error) {
	client := s.cluster.typed.CoreV1().ConfigMaps(s.cluster.options.OwnNamespace)
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.parentName, Namespace: s.cluster.options.OwnNamespace}}
	if p.live != nil {
		next = p.live.DeepCopy()
	}
	delete(is.Namespaces, s.cluster.options.OwnNamespace) // the parent's own is never an additional one
	setAll(&next.Labels, map[string]string{manifest.ParentIDLabel: s.id, "app.kubernetes.io/managed-by": kube.FieldManager})
	setAll(&next.Annotations, map[string]string{
		toolingAnnotation:              parentTooling,
		groupKindsAnnotation:           formatGroupKinds(is.Kinds),
		additionalNamespacesAnnotation: strings.Join(slices.Sorted(maps.Keys(is.Namespaces)), ","),
	})
	spend(next.Annotations, now.spend)
	// That was said of an unlisted set. Kept, it would delete this one as soon as the
	// repo is missing in the configuration by mistake.
	_, asked := next.Annotations[deleteAnnotation]
	delete(next.Annotations, deleteAnnotation)
	setAll(&next.Data, now.data)
	maps.DeleteFunc(next.Data, func(_, value string) bool { return value == "" })
	next.BinaryData = maps.Clone(now.binaries)
	maps.DeleteFunc(next.BinaryData, func(_ string, value []byte) bool { return len(value) == 0 })
	s.noteParent(next) // before it can be seen
	var saved *corev1.ConfigMap
	var err error
	switch {
	case p.live == nil:
		next.Data[dataWritten] = time.Now().UTC().Format(time.RFC3339)
		saved, err = client.Create(ctx, next, metav1.CreateOptions{FieldManager: kube.FieldManager})
	case sameParent(p.live, next):
		return p, nil
	default:
		next.Data[dataWritten] = time.Now().UTC().Format(time.RFC3339)
		saved, err = client.Update(ctx, next, metav1.UpdateOptions{FieldManager: kube.FieldManager})
	}
	if err == nil {
		err = kube.CheckName(saved, s.cluster.options.OwnNamespace, s.parentName)
	}
	if err != nil {
		s.noteParent(p.live) // what was to be seen will not be
		return parent{}, err
	}
	if asked {
		s.options.Log.Warn().Msgf("took the annotation %s off ConfigMap %s: it is for a repo that the configuration names no more, and this one is named", deleteAnnotation, s.parentRef())
	}
	s.cluster.keepParent(saved)
	return parent{live: saved}, nil
}

// spend takes what was used up out of the approval on a parent; what cannot be read stays.
func spend(annotations map[string]string, what func(prune.Approval) prune.Approval) {
	text, given := annotations[approvePruneAnnotation]
	approval, err := prune.ParseApproval(text)
	if what == nil || !given || err != nil {
		return
	}
	left := what(approval)
	switch {
	case left.String() == approval.String():
	case left.String() == "":
		delete(annotations, approvePruneAnnotation)
	default:
		annotations[approvePruneAnnotation] = left.String()
	}
}

// sameParent reports whether two parents say the same.
func sameParent(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && maps.Equal(a.Data, b.Data) &&
		maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
}

// setAll sets keys of a map that may be nil.
func setAll(target *map[string]string, values map[string]string) {
	if *target == nil {
		*target = map[string]string{}
	}
	maps.Copy(*target, values)
}

// Recorded returns the ID, ref and subject of the revision that was applied last; zero if
// there is no parent.
func (s *Set) Recorded(ctx context.Context) (revision.Revision, error) {
	p, err := s.readParent(ctx)
	if err != nil || p.live == nil {
		return revision.Revision{}, err
	}
	return recordedRevision(p.live.Data), nil
}
