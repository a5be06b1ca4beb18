package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubectl "k8s.io/kubectl/pkg/cmd/apply"
)

// TestSpecification holds our copy of KEP-3659's strings and ID rule against
// kubectl's, which are the reference.
func TestSpecification(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[string]string{
		partOfLabel:                    kubectl.ApplysetPartOfLabel,
		parentIDLabel:                  kubectl.ApplySetParentIDLabel,
		toolingAnnotation:              kubectl.ApplySetToolingAnnotation,
		additionalNamespacesAnnotation: kubectl.ApplySetAdditionalNamespacesAnnotation,
		groupKindsAnnotation:           kubectl.ApplySetGKsAnnotation,
	} {
		if ours != theirs {
			t.Errorf("%q is %q in kubectl", ours, theirs)
		}
	}
	reference := kubectl.NewApplySet(&kubectl.ApplySetParentRef{
		Name: "kubesync-shop", Namespace: "kube-system",
		RESTMapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Scope: meta.RESTScopeNamespace},
	}, kubectl.ApplySetTooling{Name: "kubesync", Version: "v1"}, nil, nil)
	if got, want := applySetID("kube-system", "kubesync-shop"), reference.ID(); got != want {
		t.Errorf("ID %q is %q in kubectl", got, want)
	}
}

func TestPruneLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit         string
		leaving, live int
		exceeded      bool
	}{
		"half is allowed":             {"50%", 15, 30, false},
		"more than half":              {"50%", 16, 30, true},
		"up to ten, whatever share":   {"50%", 10, 10, false},
		"nothing is allowed by share": {"0%", 11, 1000, true},
		"everything is":               {"100%", 1000, 1000, false},
		"a number":                    {"20", 20, 21, false},
		"more than the number":        {"20", 21, 1000, true},
		"none":                        {"0", 1, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit, err := ParsePruneLimit(test.limit)
			if err != nil || limit.String() != test.limit || limit.exceeded(test.leaving, test.live) != test.exceeded {
				t.Errorf("%s (%v): exceeded %v", limit, err, limit.exceeded(test.leaving, test.live))
			}
		})
	}
	for _, wrong := range []string{"", "%", "-1", "101%", "half", "50 %", "1.5"} {
		if _, err := ParsePruneLimit(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]step{
		"Namespace": stepFoundations,
		"CustomResourceDefinition.apiextensions.k8s.io": stepFoundations,
		"ConfigMap":                             stepReferred,
		"PersistentVolumeClaim":                 stepReferred,
		"Role.rbac.authorization.k8s.io":        stepReferred,
		"RoleBinding.rbac.authorization.k8s.io": stepBindings,
		"IngressClass.networking.k8s.io":        stepReferred,
		"Ingress.networking.k8s.io":             stepWorkloads,
		"Deployment.apps":                       stepWorkloads,
		"Pod":                                   stepWorkloads,
		"Widget.example.org":                    stepWorkloads,
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io": stepAdmission,
		"APIService.apiregistration.k8s.io":                           stepAdmission,
	} {
		if got := stepOf(schema.ParseGroupKind(kind)); got != want {
			t.Errorf("%s is written in step %d, not %d", kind, got, want)
		}
	}
}
