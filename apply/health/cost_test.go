package health

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An application repo may write the longest annotation and have the largest object that etcd
// keeps. Judging that takes no longer than others can wait.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	list := make([]any, 750_000) // of numbers: 1.5 MB
	for i := range list {
		list[i] = int64(1)
	}
	for name, test := range map[string]struct{ one, want string }{
		"filters": {"jsonpath={.status.a[?(@>1)]}", "it has more than"},
		"slices":  {"jsonpath={.status.a[0:]}", "it has more than"},
		"indices": {"jsonpath={.status.a[0]}=2", "it is"},
		"fields":  {"jsonpath={.status.b.c}", "it selects nothing yet"},
	} {
		value := strings.Repeat(test.one+";", longestCriteria/(len(test.one)+1))
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"a": list}}}
		live.SetAnnotations(map[string]string{WaitForAnnotation: value, FailOnAnnotation: value})
		started := time.Now()
		found := Of(live)
		took := time.Since(started)
		t.Logf("%s: %s", name, took)
		if took > time.Second || !strings.Contains(found.Message, test.want) || found.State == Current {
			t.Errorf("%s: took %s, %+v", name, took, found)
		}
	}
}

// What is searched with a filter may be as large as what controllers write.
func TestCostIsSufficient(t *testing.T) {
	t.Parallel()
	var list []any
	for range 1000 {
		list = append(list, map[string]any{"name": "other", "value": int64(1), "more": map[string]any{"a": "b"}})
	}
	list = append(list, map[string]any{"name": "mine", "value": int64(1)})
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"a": list}}}
	const one = `jsonpath={.status.a[?(@.name=="mine")].value}=1;`
	live.SetAnnotations(map[string]string{WaitForAnnotation: strings.Repeat(one, 10)})
	if found := Of(live); found.State != Current {
		t.Errorf("%+v", found)
	}
}
