package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoRollout judges a Rollout of Argo Rollouts by its phase, which the controller writes since
// version 1.0. Its observedGeneration is a string, which kstatus cannot read; with a workloadRef
// there is a second one, of the Deployment that it refers to.
func argoRollout(live *unstructured.Unstructured) Health {
	fields, conditions, err := statusOf(live)
	if err != nil {
		return unreadable("%v", err)
	}
	if fields == nil {
		return Health{State: InProgress, Message: "its controller has not looked at it yet"}
	}
	if value, there := fields["observedGeneration"]; there && value != "" {
		seen, known := generation(value)
		if !known {
			return unreadable("status.observedGeneration is %q, not a number", fmt.Sprint(value))
		}
		if seen != live.GetGeneration() {
			return Health{State: InProgress, Message: fmt.Sprintf("its controller has seen generation %d, not %d", seen, live.GetGeneration())}
		}
	} else {
		return Health{State: InProgress, Message: "its controller has not looked at it yet"}
	}
	if _, refers, _ := unstructured.NestedMap(live.Object, "spec", "workloadRef"); refers {
		wanted := live.GetAnnotations()["rollout.argoproj.io/workload-generation"]
		if seen, err := word(fields, "workloadObservedGeneration"); err != nil {
			return unreadable("%v", err)
		} else if wanted != "" && seen != wanted {
			return Health{State: InProgress, Message: fmt.Sprintf("its controller has seen generation %s of its workload, not %s", cmp.Or(seen, "none"), wanted)}
		}
	}
	for _, c := range conditions {
		if c.kind == "InvalidSpec" && c.status == "True" {
			return Health{State: Failed, Message: reasoned(c.reason, c.message)}
		}
	}
	phase, message, err := phaseOf(fields)
	if err != nil {
		return unreadable("%v", err)
	}
	switch phase {
	case "Healthy":
		return Health{State: Current}
	case "Degraded":
		return Health{State: Failed, Message: cmp.Or(message, "it is Degraded")}
	case "Paused":
		return Health{State: InProgress, Message: reasoned("it is paused", message)}
	case "":
		return Health{State: InProgress, Message: "it has no phase yet: Argo Rollouts writes it since version 1.0"}
	}
	return Health{State: InProgress, Message: reasoned(phase, message)}
}

// argoAnalysisRun judges an AnalysisRun of Argo Rollouts. Its spec does not change while it runs. One
// that is inconclusive has ended without saying anything, so nothing is known.
func argoAnalysisRun(live *unstructured.Unstructured) Health {
	fields, _, err := statusOf(live)
	if err != nil {
		return unreadable("%v", err)
	}
	phase, message, err := phaseOf(fields)
	if err != nil {
		return unreadable("%v", err)
	}
	switch phase {
	case "Successful":
		return Health{State: Current}
	case "Failed", "Error":
		return Health{State: Failed, Message: reasoned(phase, message)}
	case "Inconclusive":
		return Health{State: Unknown, Message: reasoned("it is inconclusive", message)}
	case "":
		return Health{State: InProgress, Message: "its controller has not looked at it yet"}
	}
	return Health{State: InProgress, Message: reasoned(phase, message)}
}

// phaseOf returns the phase of a status, and the message about it.
func phaseOf(fields map[string]any) (phase, message string, err error) {
	if phase, err = word(fields, "phase"); err != nil {
		return "", "", err
	}
	message, err = word(fields, "message")
	return phase, message, err
}
