package apply

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/manifest"
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

// driftOf makes a drift what observers receive.
func (s *Set) driftOf(id manifest.ID, d *ledger.Drift) Drift {
	return Drift{Repo: s.options.Name, ID: id, What: d.Is.String(), Managers: d.Managers, Fields: d.Fields}
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
	if s.ledger.Died(id, live, there) {
		s.wake() // the sync creates it again, or whatever else is to be done
	}
	event := s.ledger.Saw(id, live, there, entries, s.mayCorrect())
	if event.Ended {
		s.wake() // so that it is recorded
	}
	if event.Drift == nil {
		return
	}
	switch s.options.Drift {
	case CorrectDrift:
		w.corrector.add(s, id, 0)
	case ReportDrift:
		s.report(s.driftOf(id, event.Drift))
	}
}

// report passes a drift on to what observes the set.
func (s *Set) report(d Drift) {
	if s.options.OnDrift != nil {
		s.options.OnDrift(d)
	}
}
