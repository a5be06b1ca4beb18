package apply

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope tells where the objects of a kind live.
type Scope int

const (
	ScopeUnknown    Scope = iota // the kind is not served
	ScopeNamespaced              // in namespaces
	ScopeCluster                 // beside them
)

// builtinKinds lists the kinds of Kubernetes itself, one a line: group version,
// kind, scope, and whether the status is a subresource. A test writes it from
// the typed clients of client-go, and holds it against them.
//
//go:embed builtin_kinds.txt
var builtinKinds string

// OfflineScope knows the kinds of Kubernetes itself, for checks without a cluster.
func OfflineScope(gvk schema.GroupVersionKind) Scope {
	switch scope, _ := builtinKind(gvk); scope {
	case "namespaced":
		return ScopeNamespaced
	case "cluster":
		return ScopeCluster
	default:
		return ScopeUnknown
	}
}

// OfflineHasStatus tells of the kinds of Kubernetes itself whether their status
// is a subresource, for checks without a cluster.
func OfflineHasStatus(gvk schema.GroupVersionKind) bool {
	_, status := builtinKind(gvk)
	return status
}

// builtinKind looks a kind up in the list.
func builtinKind(gvk schema.GroupVersionKind) (scope string, hasStatus bool) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	_, rest, found := strings.Cut(builtinKinds, "\n"+apiVersion+" "+kind+" ")
	if !found {
		return "", false
	}
	line, _, _ := strings.Cut(rest, "\n")
	scope, status, _ := strings.Cut(line, " ")
	return scope, status == "status"
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
func definitions(objects []Object, before map[*manifest]definition) (setKinds, map[*manifest]definition) {
	kinds, known := setKinds{}, map[*manifest]definition{}
	for _, o := range objects {
		if o.ID().GroupKind() != crdKind {
			continue
		}
		found, read := before[o.manifest]
		if !read {
			found = define(o.Tree().Object)
		}
		known[o.manifest] = found
		found.origin = o.Origin
		kinds[found.kind] = found.definedKind
	}
	return kinds, known
}

// define reads a CustomResourceDefinition.
func define(crd map[string]any) definition {
	spec := mapAt(crd, "spec")
	group, _ := spec["group"].(string)
	kind, _ := mapAt(spec, "names")["kind"].(string)
	defined := definedKind{scope: ScopeNamespaced, versions: map[string]bool{}}
	if spec["scope"] == "Cluster" {
		defined.scope = ScopeCluster
	}
	for _, v := range mapsAt(spec, "versions") {
		if name, ok := v["name"].(string); ok && v["served"] == true {
			defined.versions[name] = mapAt(v, "subresources")["status"] != nil
		}
	}
	return definition{schema.GroupKind{Group: group, Kind: kind}, defined}
}

// lookup returns the definition of a kind, if it serves that version.
func (k setKinds) lookup(gvk schema.GroupVersionKind) (defined definedKind, hasStatus, served bool) {
	defined = k[gvk.GroupKind()]
	hasStatus, served = defined.versions[gvk.Version]
	return defined, hasStatus, served
}

// mapAt returns the mapping at a path of fields; nil if there is none.
func mapAt(object map[string]any, path ...string) map[string]any {
	for _, field := range path {
		object, _ = object[field].(map[string]any)
	}
	return object
}

// mapsAt returns those items of the list at a path that are mappings.
func mapsAt(object map[string]any, path ...string) []map[string]any {
	last := len(path) - 1
	items, _ := mapAt(object, path[:last]...)[path[last]].([]any)
	var found []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}
