package observed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/health"
)

// What is seen of an object counts for its kind, or for its annotations, and what an answer to
// a write says is less than that.
func TestHealthIsOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "things"}
	member := func(live metav1.Object) Member { return NewMember(schema.GroupKind{Kind: "Thing"}, gvr, live) }
	metadata := func(annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: annotations}}
	}
	whole := func(annotations map[string]string) *unstructured.Unstructured {
		live := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}}}
		live.SetAnnotations(annotations)
		return live
	}
	gated := map[string]string{health.WaitForAnnotation: "condition=Ready=False"}
	failing := map[string]string{health.FailOnAnnotation: "condition=Ready=False"}
	deleted := whole(nil)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	deleted.SetDeletionTimestamp(&now)
	for name, test := range map[string]struct {
		live          metav1.Object
		byKind, whole bool
		want          health.State
	}{
		"metadata of a Deployment":                  {metadata(nil), true, true, health.Unknown},
		"metadata of a ConfigMap":                   {metadata(nil), false, false, health.Current},
		"metadata of a ConfigMap that is annotated": {metadata(gated), false, true, health.Unknown},
		"and that git does not annotate":            {metadata(gated), false, false, health.Current},
		"a Deployment":                              {whole(nil), true, true, health.InProgress},
		"a Deployment that waits for something":     {whole(gated), true, true, health.Current},
		"a ConfigMap beside one that is annotated":  {whole(nil), false, true, health.Current},
		"a ConfigMap that is annotated":             {whole(gated), false, true, health.Current},
		"a ConfigMap that fails":                    {whole(failing), false, true, health.Failed},
		"a ConfigMap that is being deleted":         {deleted, false, true, health.Terminating},
	} {
		m := member(test.live)
		if got := m.AssessedHealth(test.byKind, test.whole); got.State != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
		if m.Health != nil && m.Health.Since.IsZero() {
			t.Errorf("%s: since when is not said: %+v", name, m.Health)
		}
	}
}
