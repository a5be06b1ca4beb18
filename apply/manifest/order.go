package manifest

import "k8s.io/apimachinery/pkg/runtime/schema"

// Step is a place in the order of writing. Each step is finished before the next
// begins; pruning goes the other way.
type Step int

const (
	StepFoundations Step = iota // Namespaces and CRDs: without them the rest cannot exist
	StepReferred                // what others refer to
	StepBindings                // bindings, after the Roles and ServiceAccounts they name
	StepWorkloads               // workloads and custom resources
	StepAdmission               // what can refuse or answer requests: last, once its workloads are there
	StepCount
)

// StepOf returns the step in which a kind is written.
func StepOf(kind schema.GroupKind) Step {
	switch kind {
	case NamespaceKind, CRDKind:
		return StepFoundations
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:
		return StepBindings
	}
	switch kind.Group {
	case "":
		switch kind.Kind {
		case "Pod", "PodTemplate", "ReplicationController", "Event", "Binding":
			return StepWorkloads
		}
		return StepReferred
	case "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io", "resource.k8s.io",
		"flowcontrol.apiserver.k8s.io":
		return StepReferred
	case "networking.k8s.io":
		if kind.Kind == "IngressClass" || kind.Kind == "NetworkPolicy" {
			return StepReferred
		}
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return StepAdmission
	}
	return StepWorkloads
}

// InSteps sorts objects into the steps in which they are written, keeping their order inside one.
func InSteps(objects []Object) [StepCount][]Object {
	var steps [StepCount][]Object
	for _, object := range objects {
		at := StepOf(object.ID().GroupKind())
		steps[at] = append(steps[at], object)
	}
	return steps
}
