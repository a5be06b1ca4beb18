package apply

import "time"

// HealthState is how an object is, as opposed to how it is declared. The set is
// closed, and worded as kstatus does (github.com/fluxcd/cli-utils).
type HealthState string

// The states.
const (
	Current       HealthState = "current"     // as its controller was asked to have it
	InProgress    HealthState = "in progress" // its controller is at it
	HealthFailed  HealthState = "failed"      // its controller gave up, or says that it cannot
	Terminating   HealthState = "terminating" // deleted, and not gone yet
	HealthUnknown HealthState = "unknown"     // not seen yet, or nothing tells
)

// Health is how an object is.
type Health struct {
	State   HealthState
	Message string    // what is waited for or wrong, as kubectl rollout status words it; may be empty
	Since   time.Time // when it came to this state, as far as this process saw
}
