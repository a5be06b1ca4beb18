package health

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is how an object is, as opposed to how it is declared. The set is closed, and worded as
// kstatus does (github.com/fluxcd/cli-utils).
type State string

// The states.
const (
	Current     State = "current"     // as its controller was asked to have it
	InProgress  State = "in progress" // its controller is at it
	Failed      State = "failed"      // its controller gave up, or says that it cannot
	Terminating State = "terminating" // deleted, and not gone yet
	Unknown     State = "unknown"     // not seen yet, or what was seen cannot be read
)

// States lists every state, those first that need a person's attention.
func States() []State {
	return []State{Failed, Terminating, InProgress, Unknown, Current}
}

// Health is how an object is.
type Health struct {
	State   State
	Message string // what is waited for, or wrong; may be empty
	// Since is when it came to this state, as far as this process saw. [Of] knows it of a
	// deletion alone.
	Since time.Time
}

// NotSeen is the health of an object of which too little was seen yet: the answer to a write
// has no status.
func NotSeen() Health { return Health{State: Unknown, Message: "its status has not been seen yet"} }

// Of returns how a live object is, nil if only its metadata is known and that says nothing
// of it.
func Of(live metav1.Object) *Health {
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		found := Health{State: Terminating, Since: deleted.Time}
		if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
			found.Message = "waits for its finalizers: " + strings.Join(finalizers, ", ")
		}
		return &found
	}
	whole, ok := live.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	found := judge(whole)
	return &found
}

// judge returns how an object is that is not being deleted.
func judge(live *unstructured.Unstructured) (found Health) {
	defer func() {
		if thrown := recover(); thrown != nil { // in a library, about an object such as no one has thought of
			found = unreadable("%v", thrown)
		}
	}()
	return byAnnotations(live)
}
