package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync"
)

// ObjectState is how an object stands to what git says of it. The set is closed.
type ObjectState string

// The states, those first that need a person's attention.
const (
	ObjectFailed   ObjectState = "failed"   // the API server said no
	ObjectRefused  ObjectState = "refused"  // not this repo's to write
	ObjectConflict ObjectState = "conflict" // another writer writes it again and again, too
	ObjectDrifted  ObjectState = "drifted"  // a user changed it, and it was not corrected
	ObjectPending  ObjectState = "pending"  // waits for its CRD or Namespace, or to be gone and created again
	ObjectBlocked  ObjectState = "blocked"  // left git, and is not deleted yet
	ObjectSkipped  ObjectState = "skipped"  // not written on purpose, as the reason says
	ObjectSynced   ObjectState = "synced"   // as git says
)

// objectStates are all of them in that order.
var objectStates = [...]ObjectState{ObjectFailed, ObjectRefused, ObjectConflict, ObjectDrifted, ObjectPending, ObjectBlocked, ObjectSkipped, ObjectSynced}

// ObjectStates lists every state, those first that need a person's attention.
func ObjectStates() []ObjectState { return slices.Clone(objectStates[:]) }

// wrong reports whether an object in the state is not as it should be. One that is
// blocked waits for a person or a finalizer, and one that is left alone was meant to be.
func (s ObjectState) wrong() bool {
	switch s {
	case ObjectFailed, ObjectRefused, ObjectConflict, ObjectDrifted, ObjectPending:
		return true
	}
	return false
}

// Object is what is known of an object at one moment.
type Object struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	File      string `json:"file,omitempty"` // of the manifest; empty for what left git
	Line      int    `json:"line,omitempty"`

	State   ObjectState  `json:"state"`
	Since   time.Time    `json:"since"`            // when it came to this state
	Action  apply.Action `json:"action"`           // of the last sync
	Changed time.Time    `json:"changed,omitzero"` // when a sync last created or configured it
	Reason  string       `json:"reason,omitempty"`

	Warnings []string      `json:"warnings,omitempty"`
	Health   *ObjectHealth `json:"health,omitempty"` // nil if no one knows it
	Drift    *Drift        `json:"drift,omitempty"`  // the last one; nil if there was none
}

// ID is what the log calls the object.
func (o Object) ID() string {
	return manifest.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// Origin is where the manifest is, "file:line"; empty for what left git.
func (o Object) Origin() string { return manifest.Origin{File: o.File, Line: o.Line}.String() }

// ObjectHealth is how an object is, as opposed to how it is declared.
type ObjectHealth struct {
	State   health.State `json:"state"`
	Message string       `json:"message,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
}

// Drift is a change that another writer made.
type Drift struct {
	What      string    `json:"what"` // for example "changed"
	Fields    []string  `json:"fields,omitempty"`
	Managers  []string  `json:"managers,omitempty"` // who holds these fields
	At        time.Time `json:"at"`
	Corrected bool      `json:"corrected"`
	Conflict  bool      `json:"conflict"`
	Times     int       `json:"times"` // it drifted, since this process runs
	NextTry   time.Time `json:"nextTry,omitzero"`
	Error     string    `json:"error,omitempty"`
}

// quietAfterConflict is how long after its last correction an object is not in conflict
// any more. It is the time in which apply counts corrections.
const quietAfterConflict = 10 * time.Minute

// inConflict reports whether the object is still in conflict.
func (d *Drift) inConflict(now time.Time) bool {
	return d.Conflict && now.Before(d.At.Add(quietAfterConflict)) || d.Conflict && now.Before(d.NextTry.Add(quietAfterConflict))
}

// track is what is kept of an object from sync to sync. It is comparable.
type track struct {
	state   ObjectState
	since   time.Time
	changed time.Time
	drift   *Drift // never changed once it is here
}

// after returns the track once a sync has come to the object.
func (t track) after(o apply.Outcome, report sync.Report) track {
	switch {
	case o.Action == apply.Created, o.Action == apply.Configured:
		t.changed = report.Finished
		t = t.settled()
	case o.Action == apply.Unchanged && o.Reason == "" && t.drift != nil && t.drift.At.Before(report.Started):
		t = t.settled()
	}
	return t.in(stateOf(o, t, report.Finished), report.Finished)
}

// in returns the track of an object that is in a state at some time.
func (t track) in(state ObjectState, at time.Time) track {
	if t.state != state {
		t.state, t.since = state, at
	}
	return t
}

// settled returns the track of an object that is as git says again.
func (t track) settled() track {
	if t.drift != nil && !t.drift.Corrected {
		drift := *t.drift
		drift.Corrected, drift.Error, drift.NextTry = true, "", time.Time{}
		t.drift = &drift
	}
	return t
}

// drifted takes drift in, and returns it as it is shown.
func (r *record) drifted(seen apply.Drift, now time.Time, redact func(string) string) Drift {
	drift := Drift{What: seen.What, Fields: seen.Fields, Managers: seen.Managers, At: now, Corrected: seen.Corrected, Conflict: seen.Conflict, Times: 1}
	if seen.Err != nil {
		drift.Error = redact(seen.Err.Error())
	}
	if seen.Retry > 0 {
		drift.NextTry = now.Add(seen.Retry)
	}
	t := r.tracks[seen.ID]
	if t.drift != nil {
		drift.Times += t.drift.Times
	}
	t.drift = &drift
	state := ObjectSynced
	switch {
	case drift.inConflict(now):
		state = ObjectConflict
	case !drift.Corrected:
		state = ObjectDrifted
	}
	r.tracks[seen.ID] = t.in(state, now)
	return drift
}

// stateOf returns how an object stands, after its last outcome and the drift since.
func stateOf(o apply.Outcome, t track, now time.Time) ObjectState {
	switch o.Action {
	case apply.Failed:
		return ObjectFailed
	case apply.Refused:
		return ObjectRefused
	case apply.Pending:
		return ObjectPending
	case apply.Blocked:
		return ObjectBlocked
	}
	switch {
	case t.drift != nil && t.drift.inConflict(now):
		return ObjectConflict
	case t.drift != nil && !t.drift.Corrected:
		return ObjectDrifted
	case o.Action == apply.Unchanged && o.Reason != "":
		return ObjectSkipped
	}
	return ObjectSynced
}

// Filter chooses objects. An empty field lets all pass.
type Filter struct {
	Text   string // part of the name, file, reason or a field manager, in any case of letters
	Kind   string // in any case of letters
	State  string // an ObjectState
	Health string // an apply.HealthState
}

// passes reports whether an object passes.
func (f Filter) passes(o Object) bool {
	if f.Kind != "" && !strings.EqualFold(f.Kind, o.Kind) || f.State != "" && f.State != string(o.State) {
		return false
	}
	if f.Health != "" && (o.Health == nil || f.Health != string(o.Health.State)) {
		return false
	}
	if f.Text == "" {
		return true
	}
	texts := []string{o.ID(), o.Group, o.Origin(), o.Reason}
	if o.Drift != nil {
		texts = append(texts, o.Drift.Managers...)
	}
	if o.Health != nil {
		texts = append(texts, o.Health.Message)
	}
	wanted := strings.ToLower(f.Text)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// objects returns the objects that a filter lets pass.
func (r *record) objects(health map[manifest.ID]health.Health, filter Filter, redact func(string) string) []Object {
	objects := make([]Object, 0, len(r.outcomes))
	now := time.Now()
	for _, outcome := range r.outcomes {
		t := r.tracks[outcome.ID]
		o := Object{
			Group: outcome.ID.Group, Kind: outcome.ID.Kind, Namespace: outcome.ID.Namespace, Name: outcome.ID.Name,
			File: outcome.Origin.File, Line: outcome.Origin.Line,
			State: stateOf(outcome, t, now), Since: t.since, Action: outcome.Action, Changed: t.changed,
			Reason: redact(sync.Reason(outcome)), Drift: t.drift,
		}
		for _, warning := range outcome.Warnings {
			o.Warnings = append(o.Warnings, redact(warning))
		}
		if is, known := health[outcome.ID]; known {
			o.Health = &ObjectHealth{State: is.State, Message: redact(is.Message), Since: is.Since}
		}
		if filter.passes(o) {
			objects = append(objects, o)
		}
	}
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(a.urgency()-b.urgency(), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return objects
}

// urgency orders objects by how much they need attention, from 0.
func (o Object) urgency() int {
	at := 2 * slices.Index(objectStates[:], o.State)
	if o.State == ObjectSynced && (o.Health == nil || o.Health.State == health.Current) {
		at++
	}
	return at
}
