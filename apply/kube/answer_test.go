package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestAnswersAboutAnotherObject has an API server that answers about another object
// than the one it was asked about.
func TestAnswersAboutAnotherObject(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := `"apiVersion": "v1", "kind": "ConfigMap"`
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			kind = `"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"`
		}
		w.Header().Set("Content-Type", "application/json")
		name := "theirs"
		if strings.Contains(r.URL.Path, "/deployments/") {
			name = "ours" // but of another kind
		}
		_, _ = io.WriteString(w, `{`+kind+`, "metadata": {"name": "`+name+`", "namespace": "default", "uid": "1",
			"managedFields": [{"manager": "kubesync", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}}`)
	}))
	defer server.Close()
	c, err := NewClient(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	ours := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "ours", "namespace": "default"}}}
	for name, ask := range map[string]func() error{
		"apply": func() error {
			_, err := c.Apply(t.Context(), configMaps, ours, FieldManager)
			return err
		},
		"rehearse": func() error {
			_, _, err := c.DryRun(t.Context(), configMaps, ours)
			return err
		},
		"patch": func() error {
			_, err := c.Patch(t.Context(), configMaps, "default", "ours", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
			return err
		},
		"get": func() error {
			_, err := c.Get(t.Context(), configMaps, "default", "ours")
			return err
		},
		"metadata": func() error {
			_, err := c.GetMetadata(t.Context(), configMaps, "default", "ours")
			return err
		},
		"delete": func() error {
			_, err := c.Delete(t.Context(), configMaps, "default", "ours", "1", "")
			return err
		},
	} {
		err := ask()
		if err == nil || !strings.Contains(err.Error(), "asked about default/ours, the API server answered about default/theirs") {
			t.Errorf("%s: %v", name, err)
		}
	}

	deployment := ours.DeepCopy()
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	_, err = c.Apply(t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, deployment, FieldManager)
	if err == nil || !strings.Contains(err.Error(), "applied Deployment default/ours of apps/v1, the API server answered about an object of v1") {
		t.Errorf("another kind: %v", err)
	}
}
