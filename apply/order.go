package apply

import "k8s.io/apimachinery/pkg/runtime/schema"

// step is a place in the order of writing. Each step is finished before the next
// begins; pruning goes the other way.
type step int

const (
	stepFoundations step = iota // Namespaces and CRDs: without them the rest cannot exist
	stepReferred                // what others refer to
	stepBindings                // bindings, after the Roles and ServiceAccounts they name
	stepWorkloads               // workloads and custom resources
	stepAdmission               // what can refuse or answer requests: last, once its workloads are there
	stepCount
)

// stepOf returns the step in which a kind is written.
func stepOf(kind schema.GroupKind) step {
	switch kind {
	case namespaceKind,
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return stepFoundations
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:
		return stepBindings
	}
	switch kind.Group {
	case "":
		switch kind.Kind {
		case "Pod", "PodTemplate", "ReplicationController", "Event", "Binding":
			return stepWorkloads
		}
		return stepReferred
	case "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io", "resource.k8s.io",
		"flowcontrol.apiserver.k8s.io":
		return stepReferred
	case "networking.k8s.io":
		if kind.Kind == "IngressClass" || kind.Kind == "NetworkPolicy" {
			return stepReferred
		}
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return stepAdmission
	}
	return stepWorkloads
}

// inSteps sorts objects into the steps in which they are written, keeping their order inside one.
func inSteps(objects []Object) [stepCount][]Object {
	var steps [stepCount][]Object
	for _, object := range objects {
		at := stepOf(object.ID().GroupKind())
		steps[at] = append(steps[at], object)
	}
	return steps
}
