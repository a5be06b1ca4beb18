package parent

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubectl "k8s.io/kubectl/pkg/cmd/apply"

	"github.com/kubesync/kubesync/apply/manifest"
)

// TestSpecification holds our copy of KEP-3659's strings and ID rule against
// kubectl's, which are the reference.
func TestSpecification(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[string]string{
		manifest.PartOfLabel:   kubectl.ApplysetPartOfLabel,
		manifest.ParentIDLabel: kubectl.ApplySetParentIDLabel,
		tooling:                kubectl.ApplySetToolingAnnotation,
		additionalNamespaces:   kubectl.ApplySetAdditionalNamespacesAnnotation,
		groupKinds:             kubectl.ApplySetGKsAnnotation,
	} {
		if ours != theirs {
			t.Errorf("%q is %q in kubectl", ours, theirs)
		}
	}
	reference := kubectl.NewApplySet(&kubectl.ApplySetParentRef{
		Name: "kubesync-shop", Namespace: "kube-system",
		RESTMapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Scope: meta.RESTScopeNamespace},
	}, kubectl.ApplySetTooling{Name: "kubesync", Version: "v1"}, nil, nil)
	if got, want := ID("kube-system", "kubesync-shop"), reference.ID(); got != want {
		t.Errorf("ID %q is %q in kubectl", got, want)
	}
}
