package manifest

import (
	"encoding/base64"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What stands for a Secret's values, in kubectl's words.
const (
	Masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// MaskSecret returns a copy of a Secret without its values, and anything else as
// it is.
func MaskSecret(o *unstructured.Unstructured) *unstructured.Unstructured {
	shown, _ := maskSecrets(o, nil)
	return shown
}

// maskSecrets returns copies of two states of a Secret without its values: equal
// masks stand for equal values, different ones for different values. Either may
// be nil. What is no Secret is returned as it is.
func maskSecrets(before, after *unstructured.Unstructured) (shownBefore, shownAfter *unstructured.Unstructured) {
	if !IsSecret(before) && !IsSecret(after) {
		return before, after
	}
	secrets := append(SecretValues(before), SecretValues(after)...)
	shownBefore, shownAfter = before.DeepCopy(), after.DeepCopy()
	left, right := contentOf(shownBefore), contentOf(shownAfter)
	for _, field := range []string{"data", "stringData"} {
		maskField(left, right, field, func(any) bool { return true })
	}
	maskField(MapAt(left, "metadata"), MapAt(right, "metadata"), "annotations", func(value any) bool {
		text, _ := value.(string)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				return true
			}
		}
		return false
	})
	return shownBefore, shownAfter
}

// IsSecret reports whether an object is a Secret.
func IsSecret(o *unstructured.Unstructured) bool {
	return o != nil && o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// contentOf returns an object's content; nil for no object.
func contentOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

// SecretValues returns the values of a Secret, encoded and plain.
func SecretValues(o *unstructured.Unstructured) []string {
	var values []string
	for _, field := range []string{"data", "stringData"} {
		for _, value := range MapAt(contentOf(o), field) {
			text, _ := value.(string)
			if text == "" {
				continue
			}
			values = append(values, text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && len(plain) > 0 {
				values = append(values, string(plain))
			} else {
				values = append(values, base64.StdEncoding.EncodeToString([]byte(text)))
			}
		}
	}
	return values
}

// maskField masks those values of a map, in two states of an object, that are
// secret in either. A field that is no map is masked whole.
func maskField(before, after map[string]any, field string, secret func(any) bool) {
	left, leftIsMap := before[field].(map[string]any)
	right, rightIsMap := after[field].(map[string]any)
	if before[field] != nil && !leftIsMap {
		before[field] = Masked
	}
	if after[field] != nil && !rightIsMap {
		after[field] = Masked
	}
	for key, old := range left {
		value, stays := right[key]
		switch {
		case !secret(old) && !secret(value):
		case !stays:
			left[key] = Masked
		case reflect.DeepEqual(old, value):
			left[key], right[key] = Masked, Masked
		default:
			left[key], right[key] = maskedBefore, maskedAfter
		}
	}
	for key, value := range right {
		if _, had := left[key]; !had && secret(value) {
			right[key] = Masked
		}
	}
}
