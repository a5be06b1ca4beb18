package status

import (
	"maps"
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

const (
	// keptSyncs is how many syncs a repo's history has.
	keptSyncs = 20
	// keptChanges is how many changed objects a sync names; the rest is counted.
	keptChanges = 50
	// keptDiffs is how many bytes the diffs of a repo have together. Only the last sync
	// that changed something has any.
	keptDiffs = 256 << 10
)

// Sync is a sync that has ended, or several in a row that came to the same and
// changed nothing.
type Sync struct {
	Runs     int                  `json:"runs"` // at least 1
	Revision *repo.Revision       `json:"revision,omitempty"`
	State    sync.State           `json:"state"`
	Started  time.Time            `json:"started"`  // the first of them
	Finished time.Time            `json:"finished"` // the last of them
	Seconds  float64              `json:"seconds"`  // that the last of them took
	Stages   []StageTime          `json:"stages"`   // of the last of them
	Counts   map[apply.Action]int `json:"counts"`
	Stage    sync.Stage           `json:"failedStage,omitempty"`
	Error    string               `json:"error,omitempty"`
	Changes  []Change             `json:"changes,omitempty"`
	More     int                  `json:"moreChanges,omitempty"` // that are not named
}

// StageTime is how long a stage took.
type StageTime struct {
	Stage   sync.Stage `json:"stage"`
	Seconds float64    `json:"seconds"`
}

// Change is an object that a sync created, configured or pruned.
type Change struct {
	Object string       `json:"object"` // Kind/namespace/name
	Action apply.Action `json:"action"`
	Origin string       `json:"origin,omitempty"` // file:line
	Reason string       `json:"reason,omitempty"`
	Diff   string       `json:"diff,omitempty"` // of the manifest, a Secret's values masked
}

// changesOf returns the outcomes that changed the cluster.
func changesOf(outcomes []apply.Outcome) []apply.Outcome {
	var changes []apply.Outcome
	for _, o := range outcomes {
		switch o.Action {
		case apply.Created, apply.Configured, apply.Pruned:
			changes = append(changes, o)
		}
	}
	return changes
}

// note adds a sync to the history.
func (r *record) note(report sync.Report, redact func(string) string) {
	next := Sync{
		Runs:     1,
		Revision: revisionOf(report.Revision, redact),
		State:    report.State(),
		Started:  report.Started,
		Finished: report.Finished,
		Seconds:  report.Duration().Seconds(),
		Counts:   report.Result.Counts(),
		Stage:    report.FailedStage,
		Error:    r.problem,
	}
	for _, s := range report.Stages {
		next.Stages = append(next.Stages, StageTime{Stage: s.Stage, Seconds: s.Duration.Seconds()})
	}
	changes := changesOf(report.Result.Outcomes)
	if len(changes) > 0 {
		r.dropDiffs()
	}
	left := keptDiffs
	for _, o := range changes[:min(len(changes), keptChanges)] {
		change := Change{Object: o.ID.String(), Action: o.Action, Reason: redact(sync.Reason(o))}
		if o.Origin.File != "" {
			change.Origin = o.Origin.String()
		}
		if len(o.Diff) <= left {
			change.Diff = redact(o.Diff)
			left -= len(o.Diff)
		}
		next.Changes = append(next.Changes, change)
	}
	next.More = len(changes) - len(next.Changes)
	if len(r.syncs) > 0 && len(next.Changes) == 0 && r.syncs[0].repeats(next) {
		next.Runs, next.Started = r.syncs[0].Runs+1, r.syncs[0].Started
		r.syncs = r.syncs[1:]
	}
	kept := min(len(r.syncs), keptSyncs-1)
	r.syncs = append([]Sync{next}, r.syncs[:kept]...)
}

// dropDiffs takes the diffs out of the history. Snapshots keep theirs.
func (r *record) dropDiffs() {
	for i := range r.syncs {
		changes := slices.Clone(r.syncs[i].Changes)
		for at := range changes {
			changes[at].Diff = ""
		}
		r.syncs[i].Changes = changes
	}
}

// repeats reports whether the next sync came to the same and neither changed anything.
func (s Sync) repeats(next Sync) bool {
	same := (s.Revision == nil) == (next.Revision == nil) && (s.Revision == nil || s.Revision.ID == next.Revision.ID)
	return same && len(s.Changes) == 0 && s.State == next.State && s.Error == next.Error && maps.Equal(s.Counts, next.Counts)
}
