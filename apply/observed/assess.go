package observed

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// HealthState is how an object is, as opposed to how it is declared. The set is
// closed, and worded as kstatus does (github.com/fluxcd/cli-utils).
type HealthState string

// The states.
const (
	Current       HealthState = "current"     // as its controller was asked to have it
	InProgress    HealthState = "in progress" // its controller is at it
	HealthFailed  HealthState = "failed"      // its controller gave up, or says that it cannot
	Terminating   HealthState = "terminating" // deleted, and not gone yet
	HealthUnknown HealthState = "unknown"     // not seen yet, or nothing says so
)

// HealthStates lists every state, those first that need a person's attention.
func HealthStates() []HealthState {
	return []HealthState{HealthFailed, Terminating, InProgress, HealthUnknown, Current}
}

// Health is how an object is.
type Health struct {
	State   HealthState
	Message string    // what is waited for or wrong, as kstatus words it; may be empty
	Since   time.Time // when it came to this state, as far as this process saw
}

// hasHealth reports whether the objects of a kind say how they are, so that they have
// to be seen whole. A Namespace is there or terminating, which its metadata says; of a
// CustomResourceDefinition, which can be huge, it counts that its kind is served.
func HasHealth(gk schema.GroupKind, served kube.ServedKind) bool {
	return served.HasStatus && gk != manifest.NamespaceKind && gk != manifest.CRDKind
}

// healthOf returns how a live object is, nil if only its metadata is known and that says
// nothing of it.
func HealthOf(live metav1.Object) *Health {
	var found Health
	if whole, ok := live.(*unstructured.Unstructured); ok {
		found = assess(whole)
	}
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		found = Health{State: Terminating, Since: deleted.Time}
		if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
			found.Message = "waits for its finalizers: " + strings.Join(finalizers, ", ")
		}
	}
	if found == (Health{}) {
		return nil
	}
	return &found
}

// assess judges a live object by its status.
func assess(live *unstructured.Unstructured) Health {
	assessed := Health{State: HealthUnknown, Since: time.Now()}
	result, err := status.Compute(live)
	if err != nil {
		assessed.Message = fmt.Sprintf("its status cannot be read: %v", err)
		return assessed
	}
	switch result.Status {
	case status.CurrentStatus:
		assessed.State = Current
		return assessed
	case status.InProgressStatus:
		assessed.State = InProgress
	case status.FailedStatus:
		assessed.State = HealthFailed
	case status.TerminatingStatus:
		assessed.State = Terminating
	}
	assessed.Message = result.Message
	return assessed
}

// health returns how a member is.
func (m Member) AssessedHealth(whole bool) Health {
	switch {
	case m.Health != nil:
		return *m.Health
	case whole:
		return Health{State: HealthUnknown, Message: "its status has not been seen yet"}
	}
	return Health{State: Current}
}
