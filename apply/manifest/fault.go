package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/openapi"
)

// newUnstructured wraps the content of an object.
func newUnstructured(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// problemOf names an object as well as may be: it need not be valid.
func problemOf(id ID, at Origin, text string) Problem {
	names := slices.DeleteFunc([]string{id.Kind, id.Name}, func(name string) bool { return name == "" })
	return Problem{Origin: at, Object: strings.Join(names, "/"), ID: id, Text: text}
}

// objectFaults finds what makes an object unfit to be declared, whatever the
// cluster and the configuration are.
func objectFaults(object map[string]any) []string {
	faults := typeFaults(object)
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		if object["metadata"] != nil {
			return append(faults, wrongType("metadata", "a mapping", object["metadata"]))
		}
		return append(faults, "metadata.name is missing")
	}
	faults = append(faults, nameFaults(metadata)...)
	for _, field := range []string{"labels", "annotations"} {
		faults = append(faults, stringMapFaults("metadata."+field, metadata[field])...)
	}
	return faults
}

// typeFaults looks at apiVersion and kind, of which at least one is there.
func typeFaults(object map[string]any) []string {
	var faults []string
	for _, field := range []string{"apiVersion", "kind"} {
		if value := object[field]; absent(value) {
			faults = append(faults, field+" is missing")
		} else if _, ok := value.(string); !ok {
			faults = append(faults, wrongType(field, "a string", value))
		}
	}
	if version, ok := object["apiVersion"].(string); ok {
		if _, err := schema.ParseGroupVersion(version); err != nil {
			faults = append(faults, fmt.Sprintf("apiVersion %q is neither version nor group/version", version))
		}
	}
	return faults
}

// nameFaults looks at the fields that make an object's identity.
func nameFaults(metadata map[string]any) []string {
	var faults []string
	switch name := metadata["name"].(type) {
	case nil:
		if absent(metadata["generateName"]) {
			faults = append(faults, "metadata.name is missing")
		} else {
			faults = append(faults, "metadata.generateName cannot be declared: every sync would create another object; give it a metadata.name")
		}
	case string:
		if name == "" {
			faults = append(faults, "metadata.name is empty")
		}
		if reasons := content.IsPathSegmentName(name); len(reasons) > 0 {
			faults = append(faults, fmt.Sprintf("metadata.name %q %s", name, strings.Join(reasons, ", ")))
		}
	default:
		faults = append(faults, wrongType("metadata.name", "a string", name))
	}
	switch namespace := metadata["namespace"].(type) {
	case nil:
	case string:
		if namespace == "" {
			break
		}
		if reasons := validation.ValidateNamespaceName(namespace, false); len(reasons) > 0 {
			faults = append(faults, fmt.Sprintf("metadata.namespace %q: %s", namespace, strings.Join(reasons, ", ")))
		}
	default:
		faults = append(faults, wrongType("metadata.namespace", "a string", namespace))
	}
	return faults
}

// stringMapFaults looks at a field that maps strings to strings. Null is allowed
// for the map and for its values, as the API server reads it.
func stringMapFaults(field string, value any) []string {
	if value == nil {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		return []string{wrongType(field, "a mapping", value)}
	}
	var faults []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if value := values[key]; value != nil {
			if _, ok := value.(string); !ok {
				faults = append(faults, wrongType(fmt.Sprintf("%s[%q]", field, key), "a string", value))
			}
		}
	}
	return faults
}

// wrongType words a value of the wrong type, without the value.
func wrongType(field, want string, got any) string {
	return field + " " + openapi.Mismatch(want, openapi.Describe(got))
}
