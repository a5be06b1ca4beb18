package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"

	"github.com/kubesync/kubesync/test/golden"
	"github.com/kubesync/kubesync/test/lab/cluster"
)

// The schemas are those that the API server of the pinned Kubernetes version
// publishes, alpha and beta APIs included.
func TestSchemasAreTheAPIServers(t *testing.T) {
	t.Parallel()
	client := discovery.NewDiscoveryClientForConfigOrDie(cluster.Start(t, cluster.WithAllAPIs).Config())
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]any{}
	for _, path := range paths {
		text, err := path.Schema(runtime.ContentTypeJSON)
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		maps.Copy(published, document.Components.Schemas)
	}
	golden.Check(t, "schemas.txt", digest(t, "v"+version.Major+"."+version.Minor, published))
}

// digest writes what validation needs of the published definitions: the version,
// the kinds and where they are defined, and the definitions.
func digest(t *testing.T, version string, published map[string]any) string {
	t.Helper()
	lines, needed := []string{}, map[string]bool{}
	for name, definition := range published {
		for _, kind := range kindsOf(definition) {
			lines = append(lines, kind+" "+name)
			need(published, name, needed)
		}
	}
	slices.Sort(lines)
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		text, err := json.Marshal(slim(published[name]))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+" "+string(text))
	}
	return "\nversion " + version + "\n" + strings.Join(lines, "\n") + "\n"
}

// kindsOf returns the kinds that a definition is of: those with metadata.
func kindsOf(definition any) (kinds []string) {
	fields, _ := definition.(map[string]any)
	properties, _ := fields["properties"].(map[string]any)
	if metadata, err := json.Marshal(properties["metadata"]); err != nil || !strings.Contains(string(metadata), "ObjectMeta") {
		return nil
	}
	all, _ := fields["x-kubernetes-group-version-kind"].([]any)
	for _, one := range all {
		gvk, _ := one.(map[string]any)
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%s/%s %s", gvk["group"], gvk["version"], gvk["kind"]), "/"))
	}
	return kinds
}

// need adds a definition and those that it refers to.
func need(published map[string]any, name string, needed map[string]bool) {
	if needed[name] {
		return
	}
	needed[name] = true
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				need(published, strings.TrimPrefix(ref, refPrefix), needed)
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(published[name])
}

// slim leaves out what validation does not need: a fifth stays.
func slim(value any) any {
	switch v := value.(type) {
	case map[string]any:
		slimmed := map[string]any{}
		for key, child := range v {
			_, isText := child.(string)
			switch {
			case key == "description" && isText, key == "x-kubernetes-group-version-kind",
				key == "x-kubernetes-patch-merge-key", key == "x-kubernetes-patch-strategy", key == "x-kubernetes-unions":
			default:
				slimmed[key] = slim(child)
			}
		}
		return slimmed
	case []any:
		slimmed := make([]any, len(v))
		for i, child := range v {
			slimmed[i] = slim(child)
		}
		return slimmed
	}
	return value
}
