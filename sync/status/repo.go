package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

// Waiting is the state of a repo that was never synced by this process.
const Waiting sync.State = "waiting"

// Overview is all repos at one moment.
type Overview struct {
	Version string    `json:"version"` // of kubesync
	Started time.Time `json:"started"` // this process
	// Writing says that this process is the leader; else Holder is, if known.
	Writing   bool       `json:"writing"`
	Holder    string     `json:"holder,omitempty"`
	Healthy   bool       `json:"healthy"` // all repos are
	Stale     *Stale     `json:"stale,omitempty"`
	ListError *Trouble   `json:"listError,omitempty"`
	Repos     []Repo     `json:"repos"`
	Unlisted  []Unlisted `json:"unlisted"`
}

// Trouble is something that went wrong and has been so since.
type Trouble struct {
	Error string    `json:"error"`
	Since time.Time `json:"since"`
}

// Stale says that no one knows how the cluster is now, since when, and why.
type Stale struct {
	Since   time.Time `json:"since"`
	Reasons []string  `json:"reasons"`
}

// Unlisted is a set of objects whose repo is listed no more.
type Unlisted struct {
	Repo     string `json:"repo"`
	URL      string `json:"url,omitempty"`
	Revision string `json:"revision,omitempty"` // that was synced last
	Delete   string `json:"deleteCommand"`
	Deleting bool   `json:"deleting"`
}

// Phase is what is going on.
type Phase struct {
	Stage sync.Stage `json:"stage"`
	Since time.Time  `json:"since"`
}

// Repo is what is known of a repo at one moment.
type Repo struct {
	Name  string     `json:"name"`
	URL   string     `json:"url"`
	Tier  string     `json:"tier"`
	State sync.State `json:"state"` // what the last sync came to
	// Healthy says that the last sync came to its end, all objects are as declared
	// and, where that is known, current, and no one else writes them.
	Healthy bool   `json:"healthy"`
	Stale   *Stale `json:"stale,omitempty"`

	Revision *repo.Revision `json:"revision,omitempty"` // what git says
	Applied  *repo.Revision `json:"applied,omitempty"`  // what the cluster was made
	Phase    *Phase         `json:"phase,omitempty"`    // nil between two syncs

	Counts  map[apply.Action]int `json:"counts"`  // what was done, in the last sync that got as far as the objects
	Objects map[ObjectState]int  `json:"objects"` // how they stand now
	Health  map[health.State]int `json:"health,omitempty"`

	LastSync     time.Time `json:"lastSync,omitzero"`     // when the last one ended
	LastVerified time.Time `json:"lastVerified,omitzero"` // when the cluster was last found to be, or made, what git says
	LastChange   time.Time `json:"lastChange,omitzero"`   // when a sync last changed an object
	NextPoll     time.Time `json:"nextPoll,omitzero"`

	FailedStage sync.Stage `json:"failedStage,omitempty"`
	Error       string     `json:"error,omitempty"`
	Failures    int        `json:"failures"` // syncs in a row that did not end in sync

	PruneHeld string `json:"pruneHeld,omitempty"` // why what left git is not deleted
	Approve   string `json:"approveCommand,omitempty"`
	Waits     string `json:"waits,omitempty"` // for which other repos pruning waits
	Suspended string `json:"suspended,omitempty"`
}

// Detail is a repo with its history.
type Detail struct {
	Repo
	Source   string    `json:"source,omitempty"`    // of the manifests: CMD, YMLDIR, kubernetes/ or root
	Dir      string    `json:"directory,omitempty"` // in it
	Problems []Problem `json:"problems,omitempty"`  // of the manifests, for which nothing was applied
	Warnings []string  `json:"warnings,omitempty"`
	Syncs    []Sync    `json:"syncs"` // newest first
}

// Problem is a reason why a revision's manifests were not applied.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Object  string `json:"object,omitempty"`
	Text    string `json:"text"`
	Refused bool   `json:"refused"` // by the configuration, as opposed to a mistake
}

// healthy reports whether a person can look elsewhere.
func (r Repo) healthy() bool {
	for _, state := range objectStates {
		if r.Objects[state] > 0 && state.wrong() {
			return false
		}
	}
	for state, n := range r.Health {
		if n > 0 && state != health.Current {
			return false
		}
	}
	return r.Stale == nil && (r.State == sync.Synced || r.State == sync.Suspended)
}

// record is what the board keeps of a repo. The board's mutex guards it.
type record struct {
	report   *sync.Report   // the last one that was not interrupted
	problem  string         // of that, in words
	progress *sync.Progress // nil between two syncs
	revision repo.Revision  // the last that was resolved
	applied  repo.Revision  // the last of which the objects were applied
	result   apply.Result   // of the last sync that got as far as the objects
	outcomes []apply.Outcome
	tracks   map[manifest.ID]track
	verified time.Time
	changed  time.Time
	syncs    []Sync // newest first
	ended    bool   // with the leadership, and not begun again
}

// never reports that there was no sync yet.
func (r *record) never() bool { return r.report == nil && r.progress == nil }

// observe takes a report in.
func (r *record) observe(report sync.Report, redact func(string) string) {
	r.progress = nil
	if report.State() == sync.Interrupted {
		return
	}
	if report.Revision.ID != "" {
		r.revision = report.Revision
	}
	r.report, r.problem = &report, problemOf(report, redact)
	r.note(report, redact)
	if report.Err == nil && report.Result.Err() == nil && report.Result.Suspended == "" {
		r.verified = report.Finished
	}
	if len(changesOf(report.Result.Outcomes)) > 0 {
		r.changed = report.Finished
	}
	if reached := report.Err == nil || report.FailedStage == sync.Applying; !reached || report.State() == sync.Suspended {
		return // the objects were not looked at
	}
	r.keep(report)
}

// keep takes the outcomes of a sync in that got as far as the objects.
func (r *record) keep(report sync.Report) {
	if report.Result.Others > 0 && len(report.Result.Outcomes) == 0 {
		if len(r.result.Outcomes) > 0 { // else all is as it was
			r.outcomes = unchanged(r.outcomes)
		}
		r.applied, r.result = report.Revision, report.Result
		return
	}
	outcomes := report.Result.Outcomes // no one changes them any more
	if slices.ContainsFunc(outcomes, func(o apply.Outcome) bool { return o.Action == apply.Pruned }) {
		outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o apply.Outcome) bool { return o.Action == apply.Pruned })
	}
	if report.Err != nil {
		outcomes = overlay(r.outcomes, report.Result.Outcomes, outcomes)
	} else {
		if report.Result.Others > 0 {
			outcomes = overlay(unchanged(r.outcomes), report.Result.Outcomes, outcomes)
		}
		r.applied = report.Revision
	}
	r.result, r.outcomes = report.Result, outcomes
	for _, o := range report.Result.Outcomes {
		before, known := r.tracks[o.ID]
		if now := before.after(o, report); !known || now != before {
			r.tracks[o.ID] = now
		}
	}
	if len(r.tracks) > len(outcomes) {
		r.forget()
	}
}

// unchanged returns what is known of objects once a sync had no reason to look at them again.
func unchanged(before []apply.Outcome) []apply.Outcome {
	now := slices.Clone(before)
	for i, o := range now {
		if o.Action != apply.Unchanged {
			now[i] = apply.Outcome{ID: o.ID, Origin: o.Origin, Action: apply.Unchanged}
		}
	}
	return now
}

// forget drops what is kept of objects that are not the repo's any more.
func (r *record) forget() {
	tracks := make(map[manifest.ID]track, len(r.outcomes))
	for _, o := range r.outcomes {
		tracks[o.ID] = r.tracks[o.ID]
	}
	r.tracks = tracks
}

// overlay returns what is known of objects after a sync that was cut short: what
// was found before, but for those that it got to.
func overlay(before, reached, now []apply.Outcome) []apply.Outcome {
	done := make(map[manifest.ID]bool, len(reached))
	for _, o := range reached {
		done[o.ID] = true
	}
	all := slices.Clone(now)
	for _, o := range before {
		if !done[o.ID] {
			all = append(all, o)
		}
	}
	return all
}

// fill writes what is known of a repo into its snapshot.
func (r *record) fill(to *Repo, seen map[manifest.ID]health.Health, redact func(string) string) {
	to.Revision, to.Applied = revisionOf(r.revision, redact), revisionOf(r.applied, redact)
	to.LastVerified, to.LastChange = r.verified, r.changed
	to.Counts = r.result.Counts()
	if r.progress != nil {
		to.Phase = &Phase{Stage: r.progress.Stage, Since: r.progress.Began}
	}
	now := time.Now()
	if seen != nil {
		to.Health = map[health.State]int{}
	}
	for _, o := range r.outcomes {
		state := stateOf(o, r.tracks[o.ID], now)
		to.Objects[state]++
		// An object that is left alone need not even be there: a Job may have ended.
		if is, known := seen[o.ID]; known && state != ObjectSkipped {
			to.Health[is.State]++
		}
	}
	to.PruneHeld, to.Approve = redact(r.result.PruneHeld), r.result.Approve
	to.Waits = redact(r.result.Waits)
	if r.report == nil {
		return
	}
	to.URL, to.Tier = r.report.URL, r.report.Tier.String()
	to.State, to.LastSync, to.NextPoll, to.Failures = r.report.State(), r.report.Finished, r.report.Next, r.report.Failures
	to.Suspended = redact(r.report.Result.Suspended)
	to.FailedStage, to.Error = r.report.FailedStage, r.problem
}

// problemLines is how many lines the text of a problem has at most; each object has
// its own.
const problemLines = 20

// problemOf words why a repo is not in sync, "" if it is.
func problemOf(report sync.Report, redact func(string) string) string {
	problem := report.Problem()
	if problem == nil {
		return ""
	}
	lines := strings.SplitAfterN(problem.Error(), "\n", problemLines+1)
	if len(lines) > problemLines {
		more := strings.Count(lines[problemLines], "\n") + 1
		lines[problemLines] = fmt.Sprintf("and %d more", more)
	}
	return redact(strings.Join(lines, ""))
}

// detail writes what is known besides into a snapshot.
func (r *record) detail(to *Detail, redact func(string) string) {
	to.Syncs = slices.Clone(r.syncs)
	if r.report == nil {
		return
	}
	to.Source, to.Dir = r.report.Source.Kind, r.report.Source.Dir
	for _, text := range slices.Concat(r.report.Notes, r.report.Result.Warnings) {
		to.Warnings = append(to.Warnings, redact(text))
	}
	var problems manifest.Problems
	if errors.As(r.report.Err, &problems) {
		for _, p := range problems {
			to.Problems = append(to.Problems, Problem{File: p.Origin.File, Line: p.Origin.Line, Object: p.Object, Text: redact(p.Text), Refused: p.Refused})
		}
	}
}

// revisionOf is a revision to be shown; nil if there is none.
func revisionOf(r repo.Revision, redact func(string) string) *repo.Revision {
	if r.ID == "" {
		return nil
	}
	r.Subject, r.Author, r.Message = redact(r.Subject), redact(r.Author), ""
	return &r
}
