package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// job judges a Job: it is current when it is Complete and failed when it is Failed, which are
// the two ends that its controller has (k8s.io/api/batch/v1). kstatus calls a Job current as
// soon as it has started.
//
// FailureTarget and SuccessCriteriaMet announce an end: pods may still run, and the end may be
// the other one if the first is not reached. So they only say what is waited for.
func job(live *unstructured.Unstructured) Health {
	fields, conditions, err := statusOf(live)
	if err != nil {
		return unreadable("%v", err)
	}
	holds := map[string]condition{}
	for _, c := range conditions {
		if c.status == "True" {
			holds[c.kind] = c
		}
	}
	if failed, is := holds["Failed"]; is {
		return Health{State: Failed, Message: cmp.Or(reasoned(failed.reason, failed.message), "it is Failed")}
	}
	if _, is := holds["Complete"]; is {
		return Health{State: Current}
	}
	for _, kind := range []string{"FailureTarget", "SuccessCriteriaMet"} {
		if c, is := holds[kind]; is {
			return Health{State: InProgress, Message: "its pods are ended: " + cmp.Or(reasoned(c.reason, c.message), kind)}
		}
	}
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	if _, is := holds["Suspended"]; is || suspended {
		return Health{State: InProgress, Message: "it is suspended: spec.suspend is true"}
	}
	if start, err := word(fields, "startTime"); err != nil {
		return unreadable("%v", err)
	} else if start == "" {
		return Health{State: InProgress, Message: "it is not started"}
	}
	return Health{State: InProgress, Message: fmt.Sprintf("it is not complete: pods active: %d, ready: %d, succeeded: %d, failed: %d",
		count(fields, "active"), count(fields, "ready"), count(fields, "succeeded"), count(fields, "failed"))}
}

// count returns a number of pods for a message, 0 if it is not there.
func count(fields map[string]any, name string) int64 {
	number, _ := fields[name].(int64)
	return number
}
