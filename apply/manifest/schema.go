package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/openapi"
)

// defineSchemas adds the kinds that the set brings along to those that objects are
// held against. One whose schema cannot be used stays unverified: what is wrong with
// it is for the API server to say.
func (c *check) defineSchemas(objects []Object) {
	if c.rules.Schemas == nil {
		return
	}
	for _, o := range objects {
		if o.ID().GroupKind() == CRDKind {
			_ = c.rules.Schemas.Define(o.Tree().Object)
		}
	}
}

// schema notes what the API server would not accept in an object, as it is sent.
func (c *check) schema(d draft) {
	if c.rules.Schemas == nil {
		return
	}
	faults, _ := c.rules.Schemas.Validate(d.GroupVersionKind(), d.Object)
	for _, fault := range faults {
		p := problemOf(d.ID(), d.Origin, fault.String())
		p.Field = fault.Path
		c.problems = append(c.problems, p)
	}
}

// servedNowhere says why no API server serves a kind, as far as that is known without
// asking one: the API groups of Kubernetes have the kinds that they have. Anybody may
// add others, and nothing is said of their kinds.
func (c *check) servedNowhere(gvk schema.GroupVersionKind) string {
	if _, _, defined := c.defined.lookup(gvk); defined || c.rules.Schemas == nil {
		return ""
	}
	known := builtinKind(gvk)
	switch {
	case known.removed != "" && known.now != "":
		return fmt.Sprintf("Kubernetes %s removed %s of %s: write apiVersion: %s", known.removed, gvk.Kind, gvk.GroupVersion(), known.now)
	case known.removed != "":
		return fmt.Sprintf("Kubernetes %s removed %s of %s", known.removed, gvk.Kind, gvk.GroupVersion())
	case known.scope != ScopeUnknown:
		return ""
	}
	return notInKubernetes(gvk)
}

// notInKubernetes says that Kubernetes does not have a kind, and what it has instead; nothing
// if the group is not one of Kubernetes.
func notInKubernetes(gvk schema.GroupVersionKind) string {
	version := gvk.GroupVersion()
	text := fmt.Sprintf("Kubernetes %s has no kind %s in %s", openapi.Version(), gvk.Kind, version)
	if elsewhere := openapi.GroupVersions(gvk.Group, gvk.Kind); len(elsewhere) > 0 {
		return text + ": write apiVersion: " + strings.Join(elsewhere, " or ")
	}
	if kinds := openapi.Kinds(version); len(kinds) > 0 {
		return text + "; it has " + strings.Join(kinds, ", ") + " there"
	}
	if versions := openapi.GroupVersions(gvk.Group, ""); len(versions) > 0 {
		return text + "; of that group it has " + strings.Join(versions, ", ")
	}
	if strings.Contains(builtinKinds, "\n"+gvk.Group+"/") {
		return text + ", and nothing of that group any more"
	}
	return ""
}
