package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubesync/kubesync/internal/limits"
)

// FuzzLoad feeds Load what it may find in a file. It must never panic, must say
// the same when asked again, must name lines that exist, and what both it and
// kubectl accept must mean the same to both.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		fmt.Sprintf(configMap, "a"),
		"---\n# c\n" + fmt.Sprintf(configMap, "a") + "---\r\n" + fmt.Sprintf(configMap, "b"),
		"{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"a\"},\"n\":[1,1.0,1e3,-0,12345678901234567890]}{}",
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: X, metadata: {name: a}}\n",
		"apiVersion: v1\nkind: XList\nitems:\n- metadata: {name: a}\n- metadata: {name: b, labels: {x: null}}\n",
		"apiVersion: v1\nkind: X\nmetadata: {name: &a n}\nd: {<<: {x: 1}, x: *a, y: yes, on: 0x1F, 1: 010, 1.5: 1_000, z: 2001-01-01}\n",
		"apiVersion: v1\nkind: X\nmetadata: {name: n}\nd: !!binary aGk=\ne: !!str 1\nf: 1e400\ng: 0.1\nh: |\n  a\n  ---\n  b\n",
		"a: &a [*a]\n", "a: *b\n", "{{x}}: y\n", "? [a]\n: b\n", "\ufeff# x\n", "a: 1\na: 2\n", "\xff", "...\n", "--- x\n", "%YAML 1.1\n---\na: b\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		loaded, err := NewLoader(limits.Limits{}).Load(manifests("m.yaml", string(data)))
		got := lines(loaded, err)
		if again := lines(NewLoader(limits.Limits{}).Load(manifests("m.yaml", string(data)))); again != got {
			t.Fatalf("first:\n%s\nthen:\n%s", got, again)
		}
		var problems Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatalf("an error of type %T", err)
		}
		for _, p := range problems {
			if last := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")); p.Origin.Line < 1 || p.Origin.Line > last {
				t.Fatalf("%v: the file has %d lines", p, last)
			}
		}
		if len(problems) > 0 || len(loaded.Skipped) > 0 || !knownAlike(data) {
			return
		}
		sameAsKubectl(t, data, loaded.Objects)
	})
}

// knownAlike leaves out where Load knows better than kubectl: end markers, behind
// which kubectl loses documents, and byte order marks before JSON.
func knownAlike(data []byte) bool {
	return !bytes.Contains(data, []byte("...")) && !bytes.Contains(data, []byte(byteOrderMark)) && !bytes.Contains(data, []byte("\r"))
}

// sameAsKubectl holds objects against what kubectl reads from the same file.
func sameAsKubectl(t *testing.T, data []byte, objects []Object) {
	t.Helper()
	want, err := kubectlObjects(data)
	if err != nil {
		return // kubectl is stricter about tabs in blank lines, for example
	}
	if len(want) != len(objects) {
		t.Fatalf("%d objects, kubectl reads %d", len(objects), len(want))
	}
	for i, o := range objects {
		if !reflect.DeepEqual(numbers(o.Tree().Object), numbers(want[i])) {
			t.Fatalf("object %d: got\n%#v\nkubectl reads\n%#v", i, o.Tree().Object, want[i])
		}
	}
}

// kubectlObjects reads a file with the decoders that kubectl reads files with.
func kubectlObjects(data []byte) ([]map[string]any, error) {
	var objects []map[string]any
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		text := bytes.TrimSpace(raw.Raw)
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, text)
		if err != nil {
			return nil, err
		}
		if objects, err = flatten(decoded, objects); err != nil {
			return nil, err
		}
	}
}

// flatten adds an object, or the objects of a list.
func flatten(decoded runtime.Object, objects []map[string]any) ([]map[string]any, error) {
	list, ok := decoded.(*unstructured.UnstructuredList)
	if !ok {
		o := decoded.(*unstructured.Unstructured)
		if !o.IsList() {
			if o.GetKind() == "List" && o.Object["items"] == nil {
				return objects, nil // kubectl fails later, for want of a name
			}
			return append(objects, o.Object), nil
		}
		var err error
		if list, err = o.ToList(); err != nil {
			return nil, err
		}
	}
	var err error
	for i := range list.Items {
		if objects, err = flatten(&list.Items[i], objects); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// numbers makes numbers comparable: 1.0 is a float in JSON and an integer in
// YAML, depending on which of both kubectl takes the text for.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		same := make(map[string]any, len(v))
		for key, item := range v {
			same[key] = numbers(item)
		}
		return same
	case []any:
		same := make([]any, len(v))
		for i, item := range v {
			same[i] = numbers(item)
		}
		return same
	case int64:
		return float64(v)
	case string:
		return strings.ToValidUTF8(v, "\ufffd")
	default:
		return v
	}
}
