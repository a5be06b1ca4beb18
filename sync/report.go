package sync

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// Stage is a step of the pipeline.
type Stage string

// The stages in the order they run.
const (
	Opening      Stage = "open" // only before the first sync
	Resolving    Stage = "resolve"
	Reading      Stage = "files"
	Transforming Stage = "transform"
	Planning     Stage = "plan"
	Applying     Stage = "apply"
	Waiting      Stage = "health" // only where health is waited for
)

// StageTime is how long a stage took.
type StageTime struct {
	Stage    Stage
	Duration time.Duration
}

// State is what a sync came to.
type State string

// The states. A set whose pruning waits for approval is Synced: what git says is
// there, and the rest waits for a person.
const (
	Synced      State = "synced"
	Incomplete  State = "incomplete"  // applied, but objects failed, were refused, or are parked
	Progressing State = "progressing" // applied, and not all is healthy yet
	Unhealthy   State = "unhealthy"   // applied, and not all was healthy in time
	Failed      State = "failed"      // a stage failed, nothing after it ran
	Suspended   State = "suspended"   // nothing may be written, and nothing was
	Interrupted State = "interrupted" // the process is stopping or has lost the lease
)

// States lists every state that a sync can come to.
func States() []State {
	return []State{Synced, Incomplete, Progressing, Unhealthy, Failed, Suspended, Interrupted}
}

// Report tells of one sync of one repo.
type Report struct {
	Repo string
	URL  string // without credentials
	Tier apply.Tier

	Revision repo.Revision    // zero if none could be resolved
	Source   transform.Source // zero if the transform was not reached
	Stages   []StageTime      // those that ran, in order
	Notes    []string         // of the transform, for a person

	// FailedStage and Err say which stage failed and why; Result is then what was
	// done until then.
	FailedStage Stage
	Err         error
	Result      apply.Result
	// Health is how the objects are; zero where that is not waited for.
	Health Health

	Interrupted bool
	Failures    int // syncs in a row that did not end in sync, this one included
	Started     time.Time
	Finished    time.Time
	Next        time.Time // when the next sync is due; zero if none is
}

// State sums the report up.
func (r Report) State() State {
	switch {
	case r.Interrupted:
		return Interrupted
	case r.Err != nil:
		return Failed
	case r.Result.Suspended != "":
		return Suspended
	case r.Result.Err() != nil:
		return Incomplete
	case r.Health.Waiting:
		return Progressing
	case r.Health.Problem() != nil:
		return Unhealthy
	}
	return Synced
}

// InSync tells whether there is nothing to try again.
func (r Report) InSync() bool {
	state := r.State()
	return state == Synced || state == Suspended || state == Progressing
}

// settled tells whether there is nothing that another repo's sync could get further.
func (r Report) settled() bool { return r.InSync() && r.Result.Waits == "" }

// Problem returns why the repo is not in sync, nil if it is.
func (r Report) Problem() error {
	switch {
	case r.Err == nil && r.Health.Waiting:
		return r.Result.Err() // what is on its way is no problem yet
	case r.Err == nil:
		return errors.Join(r.Result.Err(), r.Health.Problem())
	}
	if r.Revision.ID == "" {
		return fmt.Errorf("%s: %s: %w", r.Repo, r.FailedStage, r.Err)
	}
	return fmt.Errorf("%s: %s %s: %w", r.Repo, r.FailedStage, r.Revision.Short(), r.Err)
}

// Duration is how long the sync took.
func (r Report) Duration() time.Duration { return r.Finished.Sub(r.Started) }

// Changed tells whether the sync has written an object, or deleted one.
func (r Report) Changed() bool { return r.did(apply.Created, apply.Configured, apply.Pruned) }

// did tells whether the sync had an outcome of one of the actions.
func (r Report) did(actions ...apply.Action) bool {
	counts := r.Result.Counts()
	for _, action := range actions {
		if counts[action] > 0 {
			return true
		}
	}
	return false
}

// Progress tells how far a sync under way has come.
type Progress struct {
	Repo     string
	Revision repo.Revision // zero until it is resolved
	Stage    Stage         // that begins now
	Began    time.Time
}

// Observer hears of every sync. Its methods are called from the loops'
// goroutines, concurrently, and should not wait.
type Observer interface {
	// Begin tells that a stage of a sync begins; Observe will tell what came of it.
	Begin(Progress)
	// Observe tells of a sync that has ended.
	Observe(Report)
	// Drift tells of an object that somebody else changed, and what was done.
	Drift(apply.Drift)
	// Abandon tells of a repo that left the list; its objects stay.
	Abandon(repo string)
}

// Observers passes everything on to each.
type Observers []Observer

// Begin passes progress on.
func (o Observers) Begin(progress Progress) {
	for _, observer := range o {
		observer.Begin(progress)
	}
}

// Observe passes a report on.
func (o Observers) Observe(report Report) {
	for _, observer := range o {
		observer.Observe(report)
	}
}

// Drift passes drift on.
func (o Observers) Drift(drift apply.Drift) {
	for _, observer := range o {
		observer.Drift(drift)
	}
}

// Abandon passes the end of a repo on.
func (o Observers) Abandon(repo string) {
	for _, observer := range o {
		observer.Abandon(repo)
	}
}
