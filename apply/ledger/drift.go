package ledger

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// driftFields is how many lost fields a drift names.
const driftFields = 5

// Drift is what is known of an object's drift while it lasts. No one changes it.
type Drift struct {
	Is       Condition
	Managers []string // that hold the fields which were lost
	Fields   []string // that were lost, some
	live     observed.Entry
}

// loss compares what we had applied with what is left of it, and returns which
// fields were lost, and to whom, judging by the managedFields of the event that
// shows the loss: our own correction will erase the claims of others.
func loss(is Condition, had observed.Entry, live observed.Member, entries []metav1.ManagedFieldsEntry) *Drift {
	found := &Drift{Is: is, live: live.Entry}
	if is != Changed && is != Claimed {
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
		if len(found.Fields) < driftFields {
			found.Fields = append(found.Fields, path.String())
		}
	})
	slices.Sort(found.Fields)
	for _, e := range entries {
		if e.Manager == kube.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		theirs, err := observed.FieldsOf(e.FieldsV1.GetRawString())
		if err == nil && !theirs.Intersection(lost).Empty() && !slices.Contains(found.Managers, e.Manager) {
			found.Managers = append(found.Managers, e.Manager)
		}
		if is == Claimed && observed.IsClaimed([]metav1.ManagedFieldsEntry{e}) && !slices.Contains(found.Managers, e.Manager) {
			found.Managers = append(found.Managers, e.Manager)
		}
	}
	return found
}

// Event is what an event about an object comes to.
type Event struct {
	Ended bool   // it is a Job, and has run
	Drift *Drift // that is news, and to be corrected or reported; nil for none
}

// Saw looks at an object of which an event came in, with the managedFields of that. Drift is
// noted only where it may be corrected now; the next sync writes the object anyway where
// nothing was sent of it yet.
func (l *Ledger) Saw(id manifest.ID, live observed.Member, there bool, entries []metav1.ManagedFieldsEntry, corrects bool) (event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.objects[id]
	event.Ended = e.ended(live, there) // whatever else is the matter: it may be gone when it is looked at again
	if e == nil || e.sent == (manifest.Digest{}) || !corrects {
		return event
	}
	if len(e.busy) > 0 {
		e.stirred, e.stirredBy = true, entries
		return event
	}
	is := l.condition(e, live, there)
	switch {
	case is == AsSent, there && live.Stopped(e.object.Annotations()):
		e.drift = nil // a suspension that ends is an event, which is looked at anew
	case is == Terminating, is == Missing && e.finished:
		// It is looked at again when it is gone; a finished Job may go.
	case e.drift == nil || e.drift.live != live.Entry || e.drift.Is != is:
		e.drift = loss(is, e.entry, live, entries)
		event.Drift = e.drift
	}
	return event
}

// Drifted is an object that has drifted, at the moment in which it is to be corrected.
type Drifted struct {
	Object manifest.Object // as it is declared
	Is     Condition       // of the live object now
	Drift  *Drift          // what is to be said of it; nil if it is not known to have drifted
	// Due says that it is still to be corrected: it is declared with the content that was
	// sent, and known to have drifted.
	Due  bool
	Wait time.Duration // for which it is to be let be, for it is in conflict
	UID  types.UID     // that was known
}

// Drifted looks at an object whose entry the caller has begun, given the managedFields of
// the live one if they were asked for.
func (l *Ledger) Drifted(e *Entry, live observed.Member, there bool, entries []metav1.ManagedFieldsEntry, now time.Time) Drifted {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Drifted{Object: e.object, Is: l.condition(e, live, there), Drift: e.drift, Wait: e.conflict.wait(now), UID: e.uid}
	d.Due = l.objects[e.object.ID()] == e && e.sent == e.object.Digest() && e.drift != nil
	if d.Drift != nil && d.Drift.Is != d.Is {
		d.Drift = loss(d.Is, e.entry, live, entries) // it was not what it looked like
	}
	return d
}

// Corrected counts a correction. It returns the UID that the object has by now, how long to
// let it be from now on, and whether it is in conflict.
func (l *Ledger) Corrected(e *Entry, now time.Time) (uid types.UID, pause time.Duration, inConflict bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause, inConflict = e.conflict.corrected(now)
	return e.uid, pause, inConflict
}
