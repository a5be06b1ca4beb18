package sync

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
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

// State is the result of a sync.
type State string

// The states. A repo whose pruning waits for approval is Synced: all that git declares is
// in the cluster.
const (
	Synced      State = "synced"
	Partial     State = "partial"     // applied, but objects failed, were refused, or are pending
	Progressing State = "progressing" // applied, and not all is healthy yet
	Unhealthy   State = "unhealthy"   // applied, and not all was healthy in time
	Failed      State = "failed"      // a stage failed, nothing after it ran
	Suspended   State = "suspended"   // nothing may be written, and nothing was
	Interrupted State = "interrupted" // the process is stopping or has lost the lease
)

// States lists every state.
func States() []State {
	return []State{Synced, Partial, Progressing, Unhealthy, Failed, Suspended, Interrupted}
}

// Report is the result of one sync of one repo.
type Report struct {
	Repo string
	URL  string // without credentials
	Tier manifest.Tier

	Revision repo.Revision    // zero if none could be resolved
	Source   transform.Source // zero if the transform was not reached
	Stages   []StageTime      // those that ran, in order
	Notes    []string         // of the transform, for the user

	// FailedStage and Err say which stage failed and why; Result is what was done until
	// then.
	FailedStage Stage
	Err         error
	Result      apply.Result
	// Health is that of the objects; zero without WAIT.
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
		return Partial
	case r.Health.Waiting:
		return Progressing
	case r.Health.Problem() != nil:
		return Unhealthy
	}
	return Synced
}

// InSync reports whether nothing has to be retried.
func (r Report) InSync() bool {
	state := r.State()
	return state == Synced || state == Suspended || state == Progressing
}

// settled reports whether a sync of another repo can change nothing for this one.
func (r Report) settled() bool { return r.InSync() && r.Result.Waits == "" }

// Problem returns why the repo is not in sync, nil if it is.
func (r Report) Problem() error {
	switch {
	case r.Err == nil && r.Health.Waiting:
		return r.Result.Err() // what is progressing is no problem yet
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

// Changed reports whether the sync has written an object, or deleted one.
func (r Report) Changed() bool { return r.Did(apply.Created, apply.Configured, apply.Pruned) }

// Did reports whether the sync had an outcome of one of the actions.
func (r Report) Did(actions ...apply.Action) bool {
	counts := r.Result.Counts()
	for _, action := range actions {
		if counts[action] > 0 {
			return true
		}
	}
	return false
}

// Reason says why an object is as it is after a sync, "" if nothing needs to be said.
func Reason(o apply.Outcome) string {
	switch {
	case o.Err == nil:
		return o.Reason
	case o.Reason == "" || o.Reason == o.Err.Error():
		return o.Err.Error()
	}
	return o.Reason + ": " + o.Err.Error()
}

// Progress is the stage of a sync under way.
type Progress struct {
	Repo     string
	Revision repo.Revision // zero until it is resolved
	Stage    Stage         // that begins now
	Began    time.Time
}

// Unreadable is an object of which a sync that waits cannot know whether it is healthy.
type Unreadable struct {
	Repo     string
	Revision repo.Revision
	Object   apply.NotReady
}

// Observer receives every report. Its methods are called from the loops' goroutines,
// concurrently, and should not wait.
type Observer interface {
	// Begin reports that a stage of a sync begins.
	Begin(Progress)
	// Unreadable reports an object whose status cannot be read, as soon as a sync that waits for
	// it finds out: once per object and reason for a revision.
	Unreadable(Unreadable)
	// Observe reports a sync that has ended.
	Observe(Report)
	// Drift reports an object that another writer changed, and what was done.
	Drift(apply.Drift)
	// Unlist reports a repo that left the list; its objects stay.
	Unlist(repo string)
}

// Observers passes everything on to each.
type Observers []Observer

// Begin passes progress on.
func (o Observers) Begin(progress Progress) {
	for _, observer := range o {
		observer.Begin(progress)
	}
}

// Unreadable passes an object on.
func (o Observers) Unreadable(object Unreadable) {
	for _, observer := range o {
		observer.Unreadable(object)
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

// Unlist passes the end of a repo on.
func (o Observers) Unlist(repo string) {
	for _, observer := range o {
		observer.Unlist(repo)
	}
}
