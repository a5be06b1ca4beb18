package inventory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
)

// Scope is where members of a set can be.
type Scope struct {
	Kinds      map[schema.GroupKind]bool
	Namespaces map[string]bool
	Absent     map[string]bool // those of the namespaces that are not there, as far as is known
	// Gated are those of the kinds of which an object is annotated to be healthy by what is in
	// it, so that they have to be seen whole.
	Gated map[schema.GroupKind]bool
}

// ScopeOf returns the scope that holds all the objects.
func ScopeOf(ids []manifest.ID) Scope {
	found := Scope{Kinds: map[schema.GroupKind]bool{}, Namespaces: map[string]bool{}}
	var last manifest.ID // most are of the kind and in the namespace of the one before
	for _, id := range ids {
		if id.Kind != last.Kind || id.Group != last.Group {
			found.Kinds[id.GroupKind()] = true
		}
		if id.Namespace != last.Namespace && id.Namespace != "" {
			found.Namespaces[id.Namespace] = true
		}
		last = id
	}
	return found
}
