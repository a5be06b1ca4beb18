package health

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// flaggerCanary judges a Canary of Flagger by its phase, and words it by the condition Promoted.
// There is no observedGeneration: after a change the phase is the old one until Flagger has
// looked at the workload, which it does every few seconds.
func flaggerCanary(live *unstructured.Unstructured) Health {
	fields, conditions, err := statusOf(live)
	if err != nil {
		return unreadable("%v", err)
	}
	phase, err := word(fields, "phase")
	if err != nil {
		return unreadable("%v", err)
	}
	message := ""
	for _, c := range conditions {
		if c.kind == "Promoted" {
			message = c.message
		}
	}
	switch phase {
	case "Succeeded", "Initialized":
		return Health{State: Current}
	case "Failed":
		return Health{State: Failed, Message: cmp.Or(message, "it is Failed")}
	case "":
		return Health{State: InProgress, Message: "its controller has not looked at it yet"}
	}
	return Health{State: InProgress, Message: reasoned(phase, message)}
}
