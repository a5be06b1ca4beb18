package health

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// No object, however odd, ends the process, and none whose status is not what a status looks like
// is current, unless its own annotations do not look there.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Job","apiVersion":"batch/v1","status":{"conditions":[{"type":"Complete","status":true}]}}`,
		`{"kind":"Pod","apiVersion":"v1","status":{"phase":"Running","containerStatuses":[{"name":1,"state":[]}]}}`,
		`{"kind":"Rollout","apiVersion":"argoproj.io/v1alpha1","metadata":{"generation":1},"status":{"phase":"Healthy","observedGeneration":{}}}`,
		`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"annotations":{"kubesync.io/wait-for":"jsonpath={.status[0:1:9223372036854775807]}"}},"status":[1,2]}`,
		`{"kind":"Thing","apiVersion":"a/b/c","metadata":{"annotations":[]},"status":"fine"}`,
	} {
		f.Add([]byte(seed))
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			seed, err := yaml.YAMLToJSON(document)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(seed)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]any
		if json.Unmarshal(text, &content) != nil || content == nil {
			return
		}
		live := &unstructured.Unstructured{Object: content}
		var whole unstructured.Unstructured
		if whole.UnmarshalJSON(text) == nil {
			live = &whole // with integers, as the API server's answers are decoded
		}
		found := Of(live)
		if found == nil {
			t.Fatal("nothing is said of a whole object")
		}
		_, waits := annotation(live, WaitForAnnotation)
		if found.State == Current && !waits && !readable(live.Object) {
			t.Errorf("current, with a status that cannot be read: %s", text)
		}
	})
}

// readable reports whether a status is a mapping with conditions as Kubernetes has them.
func readable(object map[string]any) bool {
	value, there := object["status"]
	if !there || value == nil {
		return true
	}
	status, ok := value.(map[string]any)
	if !ok {
		return false
	}
	switch conditions := status["conditions"].(type) {
	case nil:
		return true
	case []any:
		for _, item := range conditions {
			fields, ok := item.(map[string]any)
			if !ok {
				return false
			}
			for _, name := range []string{"type", "status"} {
				if value := fields[name]; value != nil {
					if _, ok := value.(string); !ok {
						return false
					}
				}
			}
		}
		return true
	}
	return false
}

// No value of an annotation, however odd, ends the process, when it is read or when an object is
// judged by it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"condition=Ready", "condition=Ready=False;jsonpath={.status.phase}=Running", `jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`,
		"jsonpath={.status.list[-1:]}", "jsonpath={.status.list[0:9:2]}", `jsonpath={.status.list[?(@.a>1)].b}`, "jsonpath={.status['a.b']}", `jsonpath={.a\.b}`, "jsonpath={[?(", "jsonpath={.a[?('')]}",
	} {
		f.Add(seed)
	}
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{"phase": "Running", "nothing": nil, "list": []any{map[string]any{"a": int64(2), "b": "c"}, "text", 0.5, true, nil, []any{}}},
	}}
	f.Fuzz(func(t *testing.T, value string) {
		if _, err := Parse(value); err != nil {
			return
		}
		live.SetAnnotations(map[string]string{WaitForAnnotation: value, FailOnAnnotation: value})
		if found := Of(live); found == nil || found.State == Current {
			t.Errorf("%q holds, so it has failed, and is %+v", value, found)
		}
	})
}
