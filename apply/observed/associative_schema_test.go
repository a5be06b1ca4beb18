package observed

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kubesync/kubesync/apply/kube"
)

// openAPI is as much of an OpenAPI v3 document as tells where associative lists are.
type openAPI struct {
	Components struct {
		Schemas map[string]*openAPISchema `json:"schemas"`
	} `json:"components"`
}

type openAPISchema struct {
	Ref        string                                  `json:"$ref"`
	AllOf      []*openAPISchema                        `json:"allOf"`
	Properties map[string]*openAPISchema               `json:"properties"`
	Additional json.RawMessage                         `json:"additionalProperties"`
	Items      *openAPISchema                          `json:"items"`
	ListType   string                                  `json:"x-kubernetes-list-type"`
	MapType    string                                  `json:"x-kubernetes-map-type"`
	Kinds      []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
}

// associativeLists returns, for each kind of the API server's own, the paths of those lists
// whose items are known by key or value, such as .spec.ports[]. Status is left out: it is
// never applied.
func associativeLists(t *testing.T, client discovery.DiscoveryInterface, served map[schema.GroupVersionKind]kube.ServedKind) map[schema.GroupVersionKind][]string {
	t.Helper()
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	found := map[schema.GroupVersionKind][]string{}
	for path, group := range paths {
		if strings.Count(path, "/") < 1 || !strings.HasPrefix(path, "api") {
			continue
		}
		text, err := group.Schema("application/json")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var document openAPI
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, kind := range document.Components.Schemas {
			if len(kind.Kinds) != 1 {
				continue // DeleteOptions and the like
			}
			gvk := schema.GroupVersionKind(kind.Kinds[0])
			if serves, known := served[gvk]; known && serves.Lasting {
				lists := map[string]bool{}
				document.collect(kind, "", lists, nil)
				found[gvk] = slices.Sorted(maps.Keys(lists))
			}
		}
	}
	return found
}

// collect adds the associative lists below a schema. Those of an atomic list or map are
// owned as a whole, with it.
func (d *openAPI) collect(s *openAPISchema, path string, lists map[string]bool, above []string) {
	refs := s.AllOf
	if s.Ref != "" {
		refs = append(refs, &openAPISchema{Ref: s.Ref})
	}
	for _, ref := range refs {
		if ref.Ref == "" {
			continue
		}
		name := ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
		if slices.Contains(above, name) {
			continue // JSONSchemaProps
		}
		d.collect(d.Components.Schemas[name], path, lists, append(slices.Clone(above), name))
	}
	if s.MapType == "atomic" {
		return
	}
	for name, property := range s.Properties {
		if path != "" || name != "status" {
			d.collect(property, path+"."+name, lists, above)
		}
	}
	var additional openAPISchema
	if json.Unmarshal(s.Additional, &additional) == nil {
		d.collect(&additional, path+".*", lists, above)
	}
	if s.Items != nil && (s.ListType == "map" || s.ListType == "set") {
		lists[path+"[]"] = true
		d.collect(s.Items, path+"[]", lists, above)
	}
}
