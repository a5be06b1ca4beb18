package parent

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/prune"
)

// Memory is what a parent is to remember.
type Memory struct {
	Data     map[string]string // "" takes a key away
	Binaries map[string][]byte // all of them; none of nothing
	// Spend takes what was used up out of an approval; nil for nothing.
	Spend func(prune.Approval) prune.Approval
}

// Next returns the parent of a set as it is to be written: with a scope and what to remember.
// What a person put on it stays, but for what was used up of an approval, and the request to
// delete the set: that was said of an unlisted one, and kept, it would delete this one as soon
// as the repo is missing in the configuration by mistake.
func (p Parent) Next(namespace, name string, is inventory.Scope, now Memory) *corev1.ConfigMap {
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if p.Live != nil {
		next = p.Live.DeepCopy()
	}
	namespaces := maps.Clone(is.Namespaces)
	delete(namespaces, namespace) // the parent's own is never an additional one
	setAll(&next.Labels, map[string]string{manifest.ParentIDLabel: ID(namespace, name), "app.kubernetes.io/managed-by": kube.FieldManager})
	setAll(&next.Annotations, map[string]string{
		tooling:              ours,
		groupKinds:           formatGroupKinds(is.Kinds),
		additionalNamespaces: strings.Join(slices.Sorted(maps.Keys(namespaces)), ","),
	})
	spend(next.Annotations, now.Spend)
	delete(next.Annotations, DeleteAnnotation)
	setAll(&next.Data, now.Data)
	maps.DeleteFunc(next.Data, func(_, value string) bool { return value == "" })
	next.BinaryData = maps.Clone(now.Binaries)
	maps.DeleteFunc(next.BinaryData, func(_ string, value []byte) bool { return len(value) == 0 })
	return next
}

// Says reports whether a parent says the same as another.
func (p Parent) Says(next *corev1.ConfigMap) bool {
	is := p.Live
	return is != nil && maps.Equal(is.Labels, next.Labels) && maps.Equal(is.Annotations, next.Annotations) && maps.Equal(is.Data, next.Data) &&
		maps.EqualFunc(is.BinaryData, next.BinaryData, bytes.Equal)
}

// spend takes what was used up out of the approval on a parent; what cannot be read stays.
func spend(annotations map[string]string, what func(prune.Approval) prune.Approval) {
	text, given := annotations[ApproveAnnotation]
	approval, err := prune.ParseApproval(text)
	if what == nil || !given || err != nil {
		return
	}
	left := what(approval)
	switch {
	case left.String() == approval.String():
	case left.String() == "":
		delete(annotations, ApproveAnnotation)
	default:
		annotations[ApproveAnnotation] = left.String()
	}
}

// setAll sets keys of a map that may be nil.
func setAll(target *map[string]string, values map[string]string) {
	if *target == nil {
		*target = map[string]string{}
	}
	maps.Copy(*target, values)
}
