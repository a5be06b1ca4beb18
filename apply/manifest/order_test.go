package manifest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]Step{
		"Namespace": StepFoundations,
		"CustomResourceDefinition.apiextensions.k8s.io": StepFoundations,
		"ConfigMap":                             StepReferred,
		"PersistentVolumeClaim":                 StepReferred,
		"Role.rbac.authorization.k8s.io":        StepReferred,
		"RoleBinding.rbac.authorization.k8s.io": StepBindings,
		"IngressClass.networking.k8s.io":        StepReferred,
		"Ingress.networking.k8s.io":             StepWorkloads,
		"Deployment.apps":                       StepWorkloads,
		"Pod":                                   StepWorkloads,
		"Widget.example.org":                    StepWorkloads,
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io": StepAdmission,
		"APIService.apiregistration.k8s.io":                           StepAdmission,
	} {
		if got := StepOf(schema.ParseGroupKind(kind)); got != want {
			t.Errorf("%s is written in step %d, not %d", kind, got, want)
		}
	}
}
