package apply

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// DriftPolicy is what to do about drift.
type DriftPolicy int

const (
	// CorrectDrift applies an object again as soon as it drifts.
	CorrectDrift DriftPolicy = iota
	// CorrectDriftLater applies it at the next sync.
	CorrectDriftLater
	// ReportDrift only reports it: it is corrected when its content changes in git.
	ReportDrift
)

// ParseDriftPolicy reads "correct", "interval" or "report".
func ParseDriftPolicy(text string) (DriftPolicy, error) {
	switch text {
	case "correct":
		return CorrectDrift, nil
	case "interval":
		return CorrectDriftLater, nil
	case "report":
		return ReportDrift, nil
	}
	return 0, fmt.Errorf(`%q is none of "correct", "report" and "interval"`, text)
}

// Drift reports that an object is no longer as its set applied it, and what was
// done about it.
type Drift struct {
	Repo string
	ID   manifest.ID
	// What says in what way: "deleted", "changed", …
	What string
	// Managers are the field managers that hold the fields which we lost, as
	// managedFields names them; empty if no one does (a field was removed).
	Managers []string
	Fields   []string // the fields that we lost, such as .spec.replicas
	// Corrected says that the object is as declared again.
	Corrected bool
	Err       error // why it could not be corrected
	// Conflict is set when the object drifts again and again: corrections back off.
	Conflict bool
	Retry    time.Duration // until the next correction, where one is to come
}

// String words it for a person.
func (d Drift) String() string {
	text := d.What
	if len(d.Fields) > 0 {
		text += ": " + strings.Join(d.Fields, ", ")
	}
	if len(d.Managers) > 0 {
		text += " by " + strings.Join(d.Managers, ", ")
	}
	return text
}

// drift is what is known of an object's drift while it lasts.
type drift struct {
	what     string
	managers []string
	fields   []string
	since    time.Time
	live     observed.Entry // what was left of our entry
}

// driftFields is how many lost fields a drift names.
const driftFields = 5

// words of a condition, for a person.
func (c condition) String() string {
	switch c {
	case asSent:
		return "as applied"
	case missing:
		return "deleted"
	case changed:
		return "changed"
	case claimed:
		return "claimed by client-side apply"
	case elsewhere:
		return "taken over by another apply set"
	case terminating:
		return "being deleted"
	}
	return fmt.Sprintf("condition(%d)", int(c))
}

// loss compares what we had applied with what is left of it, and returns which
// fields were lost, and to whom, judging by the managedFields of the event that
// shows the loss: our own correction will erase the claims of others.
func loss(c condition, had observed.Entry, live observed.Member, entries []metav1.ManagedFieldsEntry) *drift {
	found := &drift{what: c.String(), since: time.Now(), live: live.Entry}
	if c != changed && c != claimed {
		return found
	}
	before, err := observed.FieldsOf(had.Value())
	if err != nil {
		return found
	}
	now, err := observed.FieldsOf(live.Entry.Value())
	if err != nil {
		return found
	}
	lost := before.Difference(now)
	lost.Leaves().Iterate(func(path fieldpath.Path) {
		if len(found.fields) < driftFields {
			found.fields = append(found.fields, path.String())
		}
	})
	slices.Sort(found.fields)
	for _, e := range entries {
		if e.Manager == kube.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		theirs, err := observed.FieldsOf(e.FieldsV1.GetRawString())
		if err == nil && !theirs.Intersection(lost).Empty() && !slices.Contains(found.managers, e.Manager) {
			found.managers = append(found.managers, e.Manager)
		}
		if c == claimed && observed.IsClaimed([]metav1.ManagedFieldsEntry{e}) && !slices.Contains(found.managers, e.Manager) {
			found.managers = append(found.managers, e.Manager)
		}
	}
	return found
}

// driftOf makes a drift what observers receive.
func (s *Set) driftOf(id manifest.ID, d *drift) Drift {
	return Drift{Repo: s.options.Name, ID: id, What: d.what, Managers: d.managers, Fields: d.fields}
}

// observed receives every change of a labelled object, nil if it is there no more,
// and has the set that declares it look at it.
func (c *Cluster) observed(id manifest.ID, live metav1.Object) {
	var entries []metav1.ManagedFieldsEntry
	if live != nil {
		entries = live.GetManagedFields()
	}
	if name, claimed := c.claims.Holder(id); claimed {
		c.mu.Lock()
		set := c.sets[name]
		c.mu.Unlock()
		if set != nil {
			set.consider(id, entries)
		}
	}
}

// consider looks at an object of which an event came in, and has its drift put
// or reported, as the set's policy has it.
func (s *Set) consider(id manifest.ID, entries []metav1.ManagedFieldsEntry) {
	w := s.cluster.watched()
	if w == nil {
		return
	}
	live, there, known := w.members.Find(id)
	if !known && !there {
		return // nothing is known for certain; it is looked at again when it is
	}
	if s.died(id, live, there) {
		s.wake() // the sync creates it again, or whatever else is to be done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.objects[id]
	if d.ended(live, there) { // whatever else is the matter: it may be gone when it is looked at again
		s.wake() // so that it is recorded
	}
	if d == nil || d.sent == (manifest.Digest{}) || !s.corrects() {
		return // the next sync writes it
	}
	if len(d.busy) > 0 {
		d.stirred, d.stirredBy = true, entries
		return
	}
	is := s.condition(d, live, there)
	switch {
	case is == asSent, there && live.Stopped(d.object.Annotations()):
		d.drift = nil // a suspension that ends is an event, which is looked at anew
		return
	case is == terminating, is == missing && d.finished:
		return // it is looked at again when it is gone; a finished Job may go
	case d.drift == nil || d.drift.live != live.Entry || d.drift.what != is.String():
		d.drift = loss(is, d.entry, live, entries)
	default:
		return // known
	}
	switch s.options.Drift {
	case CorrectDrift:
		w.corrector.add(s, id, 0)
	case ReportDrift:
		s.report(s.driftOf(id, d.drift))
	}
}

// report passes a drift on to what observes the set.
func (s *Set) report(d Drift) {
	if s.options.OnDrift != nil {
		s.options.OnDrift(d)
	}
}
