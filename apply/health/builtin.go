package health

import (
	"fmt"
	"strconv"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtIn judges an object by its kind.
func builtIn(live *unstructured.Unstructured) Health {
	if read := readerOf(live.GroupVersionKind().GroupKind()); read != nil {
		return read(live)
	}
	return byKstatus(live)
}

// readerOf returns the reader of a kind that kstatus reads wrongly, nil for the others.
func readerOf(gk schema.GroupKind) func(*unstructured.Unstructured) Health {
	switch gk {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return job
	case schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}:
		return argoRollout
	case schema.GroupKind{Group: "argoproj.io", Kind: "AnalysisRun"}:
		return argoAnalysisRun
	case schema.GroupKind{Group: "flagger.app", Kind: "Canary"}:
		return flaggerCanary
	}
	return nil
}

// byKstatus judges an object as kstatus does.
func byKstatus(live *unstructured.Unstructured) Health {
	result, err := status.Compute(live)
	if err != nil {
		return unreadable("%v", err)
	}
	switch result.Status {
	case status.CurrentStatus:
		return Health{State: Current}
	case status.InProgressStatus:
		return Health{State: InProgress, Message: result.Message}
	case status.FailedStatus:
		return Health{State: Failed, Message: result.Message}
	case status.TerminatingStatus:
		return Health{State: Terminating, Message: result.Message}
	}
	return Health{State: Unknown, Message: result.Message}
}

// unreadable is the health of an object whose status is not what its kind has.
func unreadable(format string, args ...any) Health {
	return Health{State: Unknown, Message: "its status cannot be read: " + fmt.Sprintf(format, args...)}
}

// condition is one of status.conditions.
type condition struct {
	kind, status, reason, message string
	generation                    any // observedGeneration; nil if it has none
}

// statusOf returns the status of an object and its conditions; the status is nil if there is
// none.
func statusOf(live *unstructured.Unstructured) (map[string]any, []condition, error) {
	value, there := live.Object["status"]
	if !there || value == nil {
		return nil, nil, nil
	}
	found, ok := value.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("status is %T, not a mapping", value)
	}
	list, there := found["conditions"]
	if !there || list == nil {
		return found, nil, nil
	}
	items, ok := list.([]any)
	if !ok {
		return nil, nil, fmt.Errorf("status.conditions is %T, not a list", list)
	}
	conditions := make([]condition, len(items))
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("status.conditions[%d] is %T, not a mapping", i, item)
		}
		c := &conditions[i]
		for name, to := range map[string]*string{"type": &c.kind, "status": &c.status, "reason": &c.reason, "message": &c.message} {
			value, there := fields[name]
			if !there || value == nil {
				continue
			}
			if *to, ok = value.(string); !ok {
				return nil, nil, fmt.Errorf("status.conditions[%d].%s is %T, not a string", i, name, value)
			}
		}
		c.generation = fields["observedGeneration"]
	}
	return found, conditions, nil
}

// word returns a field that holds a word, "" if it is not there.
func word(fields map[string]any, name string) (string, error) {
	value, there := fields[name]
	if !there || value == nil {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("status.%s is %T, not a string", name, value)
	}
	return text, nil
}

// generation reads the number of a generation, which Argo Rollouts writes as a string.
func generation(value any) (number int64, known bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case string:
		number, err := strconv.ParseInt(value, 10, 64)
		return number, err == nil
	}
	return 0, false
}

// reasoned joins what a controller says, reason and message, of which either may be missing,
// and which may be the same.
func reasoned(reason, message string) string {
	switch {
	case reason == "" || reason == message:
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}
