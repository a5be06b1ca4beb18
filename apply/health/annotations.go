package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The annotations that say of an object when it is current and when it has failed.
const (
	// WaitForAnnotation takes the place of what is known of the object's kind: the object is
	// current when all that it names holds.
	WaitForAnnotation = "kubesync.io/wait-for"
	// FailOnAnnotation has the object be failed as soon as one thing that it names holds.
	FailOnAnnotation = "kubesync.io/fail-on"
)

// Annotated reports whether annotations decide about the health of their object, so that it
// has to be seen whole, whatever its kind.
func Annotated(annotations map[string]string) bool {
	_, waits := annotations[WaitForAnnotation]
	_, fails := annotations[FailOnAnnotation]
	return waits || fails
}

// byAnnotations judges an object by its annotations or, where they say nothing, by its kind.
func byAnnotations(live *unstructured.Unstructured) Health {
	if value, set := annotation(live, FailOnAnnotation); set {
		if found := failing(live, value); found != nil {
			return *found
		}
	}
	if value, set := annotation(live, WaitForAnnotation); set {
		return waiting(live, value)
	}
	return builtIn(live)
}

// annotation returns the value of an annotation. GetAnnotations would copy them all, at every
// change of every object.
func annotation(live *unstructured.Unstructured, name string) (value string, set bool) {
	metadata, _ := live.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, set = annotations[name].(string)
	return value, set
}

// failing judges by FailOnAnnotation; nil if nothing that it names holds.
func failing(live *unstructured.Unstructured, value string) *Health {
	wanted, err := Parse(value)
	if err != nil {
		return &Health{State: Unknown, Message: fmt.Sprintf("annotation %s cannot be read: %v", FailOnAnnotation, err)}
	}
	var unclear *Health
	for _, c := range wanted {
		is, err := c.check(live)
		switch {
		case err != nil && unclear == nil:
			unclear = &Health{State: Unknown, Message: fmt.Sprintf("whether it has failed, by %s, cannot be read: %v", c.text, err)}
		case err == nil && is.holds:
			return &Health{State: Failed, Message: colon(c.text+" holds", is.why)}
		}
	}
	return unclear
}

// waiting judges by WaitForAnnotation.
func waiting(live *unstructured.Unstructured, value string) Health {
	wanted, err := Parse(value)
	if err != nil {
		return Health{State: Unknown, Message: fmt.Sprintf("annotation %s cannot be read: %v", WaitForAnnotation, err)}
	}
	var missing []string
	for _, c := range wanted {
		is, err := c.check(live)
		if err != nil {
			return Health{State: Unknown, Message: fmt.Sprintf("what it waits for, %s, cannot be read: %v", c.text, err)}
		}
		if !is.holds {
			missing = append(missing, colon(c.text, is.why))
		}
	}
	if len(missing) > 0 {
		return Health{State: InProgress, Message: "waits for " + strings.Join(missing, "; ")}
	}
	return Health{State: Current}
}

// colon adds an explanation, if there is one.
func colon(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
