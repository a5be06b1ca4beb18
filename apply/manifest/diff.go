package manifest

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Diff returns the unified diff of what a person cares about in two states of an
// object: without what the API server and kubesync write into it themselves, and
// with a Secret's values masked, so that only their change is visible. Live is
// nil for an object that will be created, next for one that will be deleted. It
// returns "" if there is no difference.
func Diff(live, next *unstructured.Unstructured) string {
	before, after := maskSecrets(readable(live), readable(next))
	named := after
	if named == nil {
		named = before
	}
	if named == nil {
		return ""
	}
	id := IDOf(named)
	return udiff.Unified("live/"+id.String(), "merged/"+id.String(), toYAML(before), toYAML(after))
}

// Changes returns the unified diff of an object's manifests in two revisions, with a
// Secret's values masked as Diff does.
func Changes(before, after *Content) string {
	was, is := maskSecrets(readable(before.Tree()), readable(after.Tree()))
	id := after.id.String()
	return udiff.Unified("before/"+id, "after/"+id, toYAML(was), toYAML(is))
}

// YAML returns an object for a person, a Secret's values masked.
func YAML(o Object) string { return toYAML(MaskSecret(o.Tree())) }

// readable returns a copy of an object without what no one wrote by hand.
func readable(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	o = o.DeepCopy()
	delete(o.Object, "status")
	metadata := MapAt(o.Object, "metadata")
	for _, field := range serverMetadata() {
		delete(metadata, field)
	}
	leaveOutKey(metadata, "labels", PartOfLabel)
	leaveOutKey(metadata, "annotations", LastAppliedAnnotation)
	return o
}

// leaveOutKey removes a key from a map, and the map if nothing is left in it. It
// reports whether the key was there.
func leaveOutKey(parent map[string]any, field, key string) bool {
	values := MapAt(parent, field)
	_, had := values[key]
	delete(values, key)
	if had && len(values) == 0 {
		delete(parent, field)
	}
	return had
}

// toYAML writes an object with sorted keys; nothing for nil.
func toYAML(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return fmt.Sprintf("# cannot be shown as YAML: %v\n", err)
	}
	return string(text)
}
