package manifest

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope reports where the objects of a kind live.
type Scope int

const (
	ScopeUnknown    Scope = iota // the kind is not served
	ScopeNamespaced              // in namespaces
	ScopeCluster                 // beside them
)

// builtinKinds lists the kinds of Kubernetes itself, one a line: group version,
// kind, scope, whether the status is a subresource, and of those that are not served
// any more since when and which group version has them now. A test writes it from
// the typed clients of client-go, and holds it against them.
//
//go:embed builtin_kinds.txt
var builtinKinds string

// builtin is what the list says of a kind.
type builtin struct {
	scope     Scope
	hasStatus bool
	removed   string // the version of Kubernetes that removed it; "" for none
	now       string // the group version that has it now; "" if the list does not know
}

// OfflineScope knows the kinds of Kubernetes itself, for checks without a cluster.
func OfflineScope(gvk schema.GroupVersionKind) Scope { return builtinKind(gvk).scope }

// OfflineHasStatus reports of the kinds of Kubernetes itself whether their status
// is a subresource, for checks without a cluster.
func OfflineHasStatus(gvk schema.GroupVersionKind) bool { return builtinKind(gvk).hasStatus }

// builtinKind looks a kind up in the list.
func builtinKind(gvk schema.GroupVersionKind) builtin {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	_, rest, found := strings.Cut(builtinKinds, "\n"+apiVersion+" "+kind+" ")
	if !found {
		return builtin{}
	}
	line, _, _ := strings.Cut(rest, "\n")
	words := strings.Fields(line)
	known := builtin{scope: ScopeNamespaced}
	if words[0] == "cluster" {
		known.scope = ScopeCluster
	}
	for i, word := range words {
		switch word {
		case "status":
			known.hasStatus = true
		case "removed":
			known.removed, known.now = words[i+1], strings.Join(words[i+2:], "")
		}
	}
	return known
}

// definedKind is a kind that a CustomResourceDefinition of the set defines.
type definedKind struct {
	scope    Scope
	origin   Origin
	versions map[string]bool // served versions, and whether they have a status subresource
}

// setKinds are the kinds that the set brings along.
type setKinds map[schema.GroupKind]definedKind

// definition is what a CustomResourceDefinition says of its kind.
type definition struct {
	kind schema.GroupKind
	definedKind
}

// definitions finds the CustomResourceDefinitions among the objects. What is
// wrong with one is for the API server to say. Those that are known are not read
// again; what is known now is returned too.
func definitions(objects []Object, before map[*Content]definition) (setKinds, map[*Content]definition) {
	kinds, known := setKinds{}, map[*Content]definition{}
	for _, o := range objects {
		if o.ID().GroupKind() != CRDKind {
			continue
		}
		found, read := before[o.Content]
		if !read {
			found = define(o.Tree().Object)
		}
		known[o.Content] = found
		found.origin = o.Origin
		kinds[found.kind] = found.definedKind
	}
	return kinds, known
}

// define reads a CustomResourceDefinition.
func define(crd map[string]any) definition {
	spec := MapAt(crd, "spec")
	group, _ := spec["group"].(string)
	kind, _ := MapAt(spec, "names")["kind"].(string)
	defined := definedKind{scope: ScopeNamespaced, versions: map[string]bool{}}
	if spec["scope"] == "Cluster" {
		defined.scope = ScopeCluster
	}
	for _, v := range MapsAt(spec, "versions") {
		if name, ok := v["name"].(string); ok && v["served"] == true {
			defined.versions[name] = MapAt(v, "subresources")["status"] != nil
		}
	}
	return definition{schema.GroupKind{Group: group, Kind: kind}, defined}
}

// Defines returns the kinds that a CustomResourceDefinition serves, in no order.
func Defines(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	found := define(crd.Object)
	kinds := make([]schema.GroupVersionKind, 0, len(found.versions))
	for version := range found.versions {
		kinds = append(kinds, found.kind.WithVersion(version))
	}
	return kinds
}

// lookup returns the definition of a kind, if it serves that version.
func (k setKinds) lookup(gvk schema.GroupVersionKind) (defined definedKind, hasStatus, served bool) {
	defined = k[gvk.GroupKind()]
	hasStatus, served = defined.versions[gvk.Version]
	return defined, hasStatus, served
}

// MapAt returns the mapping at a path of fields; nil if there is none.
func MapAt(object map[string]any, path ...string) map[string]any {
	for _, field := range path {
		object, _ = object[field].(map[string]any)
	}
	return object
}

// MapsAt returns those items of the list at a path that are mappings.
func MapsAt(object map[string]any, path ...string) []map[string]any {
	last := len(path) - 1
	items, _ := MapAt(object, path[:last]...)[path[last]].([]any)
	var found []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}
