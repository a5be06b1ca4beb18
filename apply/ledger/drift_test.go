package ledger

import (
	"testing"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// sent is a ledger with one ConfigMap that was sent, and the live object as the answer had it.
func sent(t *testing.T) (*Ledger, manifest.Object, observed.Member) {
	t.Helper()
	l := written(t, 1)
	o := numbered(t, 0, "old")
	return l, o, observed.Member{ID: o.ID(), Set: "mine", UID: "uid0", Entry: unique.Make("{}")}
}

// TestSaw has an event about an object that was sent come to drift, or to nothing.
func TestSaw(t *testing.T) {
	t.Parallel()
	is := func(change func(*observed.Member)) func(observed.Member) (observed.Member, bool) {
		return func(m observed.Member) (observed.Member, bool) {
			change(&m)
			return m, true
		}
	}
	gone := func(observed.Member) (observed.Member, bool) { return observed.Member{}, false }
	tests := map[string]struct {
		now      func(observed.Member) (observed.Member, bool)
		corrects bool
		drift    bool
		want     Condition
	}{
		"as sent":                  {is(func(*observed.Member) {}), true, false, AsSent},
		"deleted":                  {gone, true, true, Missing},
		"a field lost":             {is(func(m *observed.Member) { m.Entry = unique.Make(`{"f:data":{}}`) }), true, true, Changed},
		"made anew by another":     {is(func(m *observed.Member) { m.UID = "other" }), true, true, Changed},
		"claimed client-side":      {is(func(m *observed.Member) { m.Claimed = true }), true, true, Claimed},
		"another set's":            {is(func(m *observed.Member) { m.Set = "theirs" }), true, true, Elsewhere},
		"being deleted":            {is(func(m *observed.Member) { m.Terminating = true }), true, false, Terminating},
		"suspended":                {is(func(m *observed.Member) { m.Suspended, m.UID = true, "other" }), true, false, Changed},
		"deleted, and not ours to": {gone, false, false, Missing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, o, live := sent(t)
			now, there := test.now(live)
			for again := range 2 {
				event := l.Saw(o.ID(), now, there, nil, test.corrects)
				if want := test.drift && again == 0; (event.Drift != nil) != want {
					t.Errorf("event %d: drift %v, want %v", again+1, event.Drift, want)
				}
				if event.Drift != nil && event.Drift.Is != test.want {
					t.Errorf("drift is %s, want %s", event.Drift.Is, test.want)
				}
			}
			if stands := l.Standing(o, now, there, time.Now()); stands.Is != test.want || !stands.Sent {
				t.Errorf("stands %+v, want %s", stands, test.want)
			}
			if settled := l.Settled(time.Now()); settled == test.drift {
				t.Errorf("settled: %v", settled)
			}
		})
	}
}

// TestStirred has an event come in while the object is being written: it is looked at when
// the answer is there, and never lost.
func TestStirred(t *testing.T) {
	t.Parallel()
	l, o, _ := sent(t)
	e := l.Entry(o.ID())
	if err := e.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	by := []metav1.ManagedFieldsEntry{{Manager: "someone"}}
	if event := l.Saw(o.ID(), observed.Member{}, false, by, true); event.Drift != nil {
		t.Error("drift was found before the answer was there")
	}
	id, stirred, entries := l.End(e)
	if id != o.ID() || !stirred || len(entries) != 1 {
		t.Errorf("%s: stirred %v, by %v", id, stirred, entries)
	}
	if err := e.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, stirred, _ = l.End(e); stirred {
		t.Error("said twice")
	}
}

// TestDue has a correction's turn come when there may be nothing to correct any more.
func TestDue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		meanwhile func(t *testing.T, l *Ledger, o manifest.Object, live observed.Member)
		due       bool
	}{
		"nothing happened": {func(*testing.T, *Ledger, manifest.Object, observed.Member) {}, true},
		"it is as sent again": {func(_ *testing.T, l *Ledger, o manifest.Object, live observed.Member) {
			l.Saw(o.ID(), live, true, nil, true)
		}, false},
		"a sync wrote it": {func(_ *testing.T, l *Ledger, o manifest.Object, live observed.Member) {
			l.Wrote(l.Entry(o.ID()), o, live)
		}, false},
		"other content is declared": {func(t *testing.T, l *Ledger, _ manifest.Object, _ observed.Member) {
			l.Declare(Declaration{Objects: []manifest.Object{numbered(t, 0, "new")}})
		}, false},
		"it is declared no more": {func(_ *testing.T, l *Ledger, _ manifest.Object, _ observed.Member) {
			l.Declare(Declaration{})
		}, false},
		"the set was closed": {func(_ *testing.T, l *Ledger, _ manifest.Object, _ observed.Member) { l.Close() }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, o, live := sent(t)
			e := l.Entry(o.ID())
			if l.Saw(o.ID(), observed.Member{}, false, nil, true).Drift == nil {
				t.Fatal("a deletion is no drift")
			}
			test.meanwhile(t, l, o, live)
			if is := l.Drifted(e, observed.Member{}, false, nil, time.Now()); is.Due != test.due {
				t.Errorf("due: %v, want %v", is.Due, test.due)
			}
		})
	}
}
