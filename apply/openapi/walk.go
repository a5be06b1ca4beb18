package openapi

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// intOrString is the format of values such as a target port or a share.
const intOrString = "int-or-string"

// walk goes through an object beside its schema.
type walk struct {
	schemas *Schemas
	custom  bool // the schema is of a CustomResourceDefinition
	open    bool // the schema is joined to one that says which fields there are
	faults  []Fault
}

func (w *walk) fault(at Path, format string, args ...any) {
	w.faults = append(w.faults, Fault{at, fmt.Sprintf(format, args...)})
}

// root looks at a custom resource, or at an object that is embedded in one: their
// schemas need not declare what all objects have.
func (w *walk) root(s *spec.Schema, object map[string]any, at Path) {
	rest := maps.Clone(object)
	for _, field := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, field)
	}
	builtin := walk{schemas: w.schemas}
	builtin.value(w.schemas.definition(objectMeta), object["metadata"], at.with("metadata"))
	w.faults = append(w.faults, builtin.faults...)
	declared := *s
	declared.Required = slices.DeleteFunc(slices.Clone(s.Required), func(field string) bool { return object[field] != nil })
	w.value(&declared, rest, at)
}

// value looks at one value. Null says that there is none.
func (w *walk) value(s *spec.Schema, value any, at Path) {
	s = w.schemas.resolve(s)
	if value == nil {
		return
	}
	if s.Format == intOrString || s.Extensions["x-kubernetes-int-or-string"] == true {
		w.number(s, value, at)
		return
	}
	if !w.custom && isQuantity(s) {
		w.quantity(value, at)
		return
	}
	if want, fits := typed(s, value); !fits {
		w.fault(at, "%s", Mismatch(want, exactly(want, value)))
		return
	}
	w.rules(s, value, at)
	switch v := value.(type) {
	case map[string]any:
		w.fields(s, v, at)
	case []any:
		w.items(s, v, at)
	}
}

// typed reports whether a value is of the type that a schema wants, and which that is.
func typed(s *spec.Schema, value any) (want string, fits bool) {
	if len(s.Type) != 1 {
		return "", true
	}
	switch s.Type[0] {
	case "object":
		_, fits = value.(map[string]any)
		return "a mapping", fits
	case "array":
		_, fits = value.([]any)
		return "a list", fits
	case "string":
		_, fits = value.(string)
		return "a string", fits
	case "boolean":
		_, fits = value.(bool)
		return "a boolean", fits
	case "integer":
		return "an integer", isInteger(value)
	case "number":
		return "a number", Describe(value) == "a number"
	}
	return "", true
}

// exactly is Describe, and distinguishes numbers that are no integers.
func exactly(want string, value any) string {
	number, isFloat := value.(float64)
	switch {
	case !isFloat || want != "an integer":
		return Describe(value)
	case number == math.Trunc(number):
		return "so large a number"
	}
	return "a fraction"
}

// isInteger reports whether a value is a whole number.
func isInteger(value any) bool {
	if number, isFloat := value.(float64); isFloat {
		return number == math.Trunc(number) && math.Abs(number) < math.MaxInt64
	}
	_, isInt := value.(int64)
	return isInt
}

// number looks at an integer or the string that stands for one: a name, or a share.
func (w *walk) number(s *spec.Schema, value any, at Path) {
	if _, isText := value.(string); !isText && !isInteger(value) {
		w.fault(at, "%s", Mismatch("an integer or a string", exactly("an integer", value)))
		return
	}
	w.rules(s, value, at)
}

// isQuantity finds the definition of amounts such as 100m, which alone is either a
// number or a string.
func isQuantity(s *spec.Schema) bool {
	return len(s.Type) == 0 && len(s.OneOf) == 2 && len(s.OneOf[1].Type) == 1 && s.OneOf[1].Type[0] == "number"
}

// quantity looks at an amount.
func (w *walk) quantity(value any, at Path) {
	switch v := value.(type) {
	case int64, float64:
	case string:
		if _, err := resource.ParseQuantity(v); err != nil {
			w.fault(at, "is no quantity: numbers such as 2 and 0.5 are, and with a unit 100m and 2Gi")
		}
	default:
		w.fault(at, "%s", Mismatch("a quantity", Describe(value)))
	}
}

// fields looks at the fields of a mapping.
func (w *walk) fields(s *spec.Schema, object map[string]any, at Path) {
	open := w.open || s.Extensions["x-kubernetes-preserve-unknown-fields"] == true ||
		len(s.Properties) == 0 && s.AdditionalProperties == nil && !w.custom
	for _, key := range slices.Sorted(maps.Keys(object)) {
		property, declared := s.Properties[key]
		more := s.AdditionalProperties
		switch {
		case declared:
			w.field(&property, object[key], at.with(key))
		case more != nil && more.Schema != nil:
			w.value(more.Schema, object[key], at.with(key))
		case open, more != nil && more.Allows:
		default:
			w.fault(at.with(key), "field not declared in schema")
		}
	}
	for _, key := range s.Required {
		if object[key] == nil {
			w.fault(at.with(key), "is required")
		}
	}
}

// field looks at a declared field, which may hold a whole object.
func (w *walk) field(s *spec.Schema, value any, at Path) {
	if embedded, isMapping := value.(map[string]any); isMapping && s.Extensions["x-kubernetes-embedded-resource"] == true {
		w.root(s, embedded, at)
		return
	}
	w.value(s, value, at)
}

// items looks at the items of a list, and for items that stand twice in one that is
// a set or has keys.
func (w *walk) items(s *spec.Schema, list []any, at Path) {
	if s.Items == nil || s.Items.Schema == nil {
		return
	}
	item := w.schemas.resolve(s.Items.Schema)
	keys := listKeys(s)
	seen := map[string]int{}
	for i, value := range list {
		w.value(item, value, at.with(i))
		key := keyOf(item, keys, value)
		if s.Extensions["x-kubernetes-list-type"] != "set" && len(keys) == 0 || key == "" {
			continue
		}
		if first, twice := seen[key]; twice {
			w.fault(at.with(i), "duplicate entry: item %d %s", first, same(keys))
		}
		seen[key] = i
	}
}

// same words how an item is the same as another.
func same(keys []string) string {
	if len(keys) == 0 {
		return "is the same"
	}
	return "has the same " + strings.Join(keys, " and ")
}

// listKeys returns the fields by which the items of a list are distinguished.
func listKeys(s *spec.Schema) (keys []string) {
	if s.Extensions["x-kubernetes-list-type"] != "map" {
		return nil
	}
	named, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	for _, one := range named {
		if key, isText := one.(string); isText {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyOf returns what an item is distinguished by: in a set, all of it; "" if it lacks
// the fields for it.
func keyOf(item *spec.Schema, keys []string, value any) string {
	parts := []any{value}
	if len(keys) > 0 {
		fields, isMapping := value.(map[string]any)
		if !isMapping {
			return ""
		}
		parts = nil
		for _, key := range keys {
			part := fields[key]
			if part == nil {
				part = item.Properties[key].Default
			}
			if part == nil || reflect.ValueOf(part).IsZero() {
				return ""
			}
			parts = append(parts, part)
		}
	}
	return encoded(parts)
}
