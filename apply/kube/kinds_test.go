package kube

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery that knows nothing of what every API server serves is not believed.
func TestPlausible(t *testing.T) {
	t.Parallel()
	resource := func(kind string) metav1.APIResource {
		return metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind}
	}
	tests := map[string]struct {
		served []metav1.APIResource
		want   string // what is missed
	}{
		"a cluster":     {[]metav1.APIResource{resource("Namespace"), resource("ConfigMap")}, ""},
		"nothing":       {nil, "lacks kind Namespace"},
		"not all of it": {[]metav1.APIResource{resource("Namespace")}, "lacks kind ConfigMap"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &Kinds{Served: map[schema.GroupVersionKind]ServedKind{}, Preferred: map[schema.GroupKind]schema.GroupVersionKind{}}
			k.add(&metav1.APIResourceList{GroupVersion: "v1", APIResources: test.served})
			k.prefer(nil)
			err := k.plausible()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// The same trouble is reported in the same words each time.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	k := &Kinds{Unreachable: map[schema.GroupVersion]error{
		{Group: "b.example.com", Version: "v1"}: errors.New("b is down"),
		{Group: "a.example.com", Version: "v1"}: errors.New("a is down"),
	}}
	want := "the API server cannot report which kinds a.example.com/v1, b.example.com/v1 has, probably because the server behind it is down (kubectl get apiservices): a is down"
	for range 10 {
		if got := k.AllUnreachable(); got == nil || !strings.HasSuffix(got.Error(), want) {
			t.Fatalf("got %v, want %q", got, want)
		}
	}
	if err := k.GroupUnreachable("b.example.com"); err == nil || !strings.HasSuffix(err.Error(), "b is down") {
		t.Errorf("got %v", err)
	}
	if err := k.GroupUnreachable("c.example.com"); err != nil {
		t.Errorf("a group that no one has heard of: %v", err)
	}
}

// What cannot be watched and deleted is a mere request; what cannot be written at the
// moment, since its CRD is being deleted, is none.
func TestLasting(t *testing.T) {
	t.Parallel()
	verbs := map[string][]string{
		"ConfigMap":        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		"Widget":           {"delete", "deletecollection", "get", "list", "watch"}, // of a terminating CRD
		"Binding":          {"create"},
		"ComponentStatus":  {"get", "list"},
		"SelfSubjectRules": {"create"},
	}
	k := &Kinds{Served: map[schema.GroupVersionKind]ServedKind{}}
	for kind, allowed := range verbs {
		k.add(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: strings.ToLower(kind), Kind: kind, Verbs: allowed}}})
	}
	for kind := range verbs {
		want := kind == "ConfigMap" || kind == "Widget"
		if got := k.Lasting(schema.GroupVersionKind{Version: "v1", Kind: kind}); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if !k.Lasting(schema.GroupVersionKind{Version: "v1", Kind: "Unheard"}) {
		t.Error("what is not served may be so one day")
	}
}
