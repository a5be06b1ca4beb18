package openapi

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// published is what the API server publishes: a line with its version, one for each
// kind with the name of its definition, and one for each definition. A test writes
// it.
//
//go:embed schemas.txt
var published string

// refPrefix starts the references from one definition to another.
const refPrefix = "#/components/schemas/"

// objectMeta is the definition of metadata, which custom resources have too.
const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// Schemas are the kinds that objects can be held against: those of Kubernetes and
// those that were defined. One goroutine at a time may use them.
type Schemas struct {
	custom  map[schema.GroupVersionKind]*spec.Schema
	decoded map[string]*spec.Schema // definitions, by name
}

// Builtin returns the kinds of Kubernetes.
func Builtin() *Schemas {
	return &Schemas{custom: map[schema.GroupVersionKind]*spec.Schema{}, decoded: map[string]*spec.Schema{}}
}

// Version returns the version of Kubernetes whose kinds these are, such as "1.36".
func Version() string { return strings.TrimPrefix(line("version"), "v") }

// line returns the rest of the published line that starts with a word or two.
func line(start string) string {
	_, rest, _ := strings.Cut(published, "\n"+start+" ")
	found, _, _ := strings.Cut(rest, "\n")
	return found
}

// GroupVersions returns the versions of an API group of Kubernetes that have a kind,
// or any if that is empty; none if the group is another owner's.
func GroupVersions(group, kind string) []string {
	versions := map[string]bool{}
	for known := range kinds() {
		if known.Group == group && (kind == "" || known.Kind == kind) {
			versions[known.GroupVersion().String()] = true
		}
	}
	return slices.Sorted(maps.Keys(versions))
}

// Kinds returns the kinds of Kubernetes in a version of an API group.
func Kinds(version schema.GroupVersion) (names []string) {
	for kind := range kinds() {
		if kind.GroupVersion() == version {
			names = append(names, kind.Kind)
		}
	}
	return names
}

// kinds goes through the kinds of Kubernetes, in their order.
func kinds() func(yield func(schema.GroupVersionKind) bool) {
	return func(yield func(schema.GroupVersionKind) bool) {
		for text := range strings.Lines(published) {
			words := strings.Fields(text)
			if len(words) == 2 && words[0] != "version" {
				return // the definitions begin
			}
			if len(words) == 3 && !yield(schema.FromAPIVersionAndKind(words[0], words[1])) {
				return
			}
		}
	}
}

// Define adds the kinds of a CustomResourceDefinition. What is wrong with it is for
// the API server to say: a schema that cannot be used is an error, and its kind
// stays unknown.
func (s *Schemas) Define(crd map[string]any) error {
	text, err := json.Marshal(crd)
	if err != nil {
		return fmt.Errorf("encode the CustomResourceDefinition: %w", err)
	}
	var defined struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema *spec.Schema }
			}
		}
	}
	if err := json.Unmarshal(text, &defined); err != nil {
		return fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	if strings.Contains(string(text), `"$ref":`) {
		return errors.New("the CustomResourceDefinition refers to other schemas")
	}
	for _, version := range defined.Spec.Versions {
		if version.Schema.OpenAPIV3Schema != nil {
			kind := schema.GroupVersionKind{Group: defined.Spec.Group, Version: version.Name, Kind: defined.Spec.Names.Kind}
			s.custom[kind] = version.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// Validate finds what the API server would not accept in an object of a kind. Known
// is false if there is no schema for the kind.
func (s *Schemas) Validate(kind schema.GroupVersionKind, object map[string]any) (faults []Fault, known bool) {
	if custom, found := s.custom[kind]; found {
		w := walk{schemas: s, custom: true}
		w.root(custom, object, nil)
		return w.faults, true
	}
	apiVersion, name := kind.ToAPIVersionAndKind()
	definition := line(apiVersion + " " + name)
	if definition == "" {
		return nil, false
	}
	w := walk{schemas: s}
	w.value(s.definition(definition), object, nil)
	return w.faults, true
}

// definition returns a definition by its name; what is not there allows everything.
func (s *Schemas) definition(name string) *spec.Schema {
	if decoded, found := s.decoded[name]; found {
		return decoded
	}
	decoded := &spec.Schema{}
	if text := line(name); text != "" {
		if err := json.Unmarshal([]byte(text), decoded); err != nil {
			panic(fmt.Sprintf("the embedded schema %s cannot be decoded: %v", name, err))
		}
	}
	amend(name, decoded)
	s.decoded[name] = decoded
	return decoded
}

// resolve follows a reference, which stands alone or as the only item of allOf.
func (s *Schemas) resolve(at *spec.Schema) *spec.Schema {
	for range 10 { // of which the published ones need two
		switch {
		case at.Ref.String() != "":
			at = s.definition(strings.TrimPrefix(at.Ref.String(), refPrefix))
		case len(at.AllOf) == 1 && at.AllOf[0].Ref.String() != "":
			at = &at.AllOf[0]
		default:
			return at
		}
	}
	return at
}
