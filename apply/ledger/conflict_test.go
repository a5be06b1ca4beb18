package ledger

import (
	"testing"
	"time"
)

func TestConflict(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f conflict
	for i := range conflictCorrections - 1 {
		if pause, inConflict := f.corrected(now.Add(time.Duration(i) * time.Second)); inConflict || pause > 0 {
			t.Fatalf("correction %d: pause %v, inConflict %v", i+1, pause, inConflict)
		}
	}
	now = now.Add(time.Minute)
	want := conflictFirst
	for range 10 {
		pause, inConflict := f.corrected(now)
		if !inConflict || pause != want {
			t.Fatalf("pause %v, inConflict %v; want %v", pause, inConflict, want)
		}
		if wait := f.wait(now.Add(time.Second)); wait != want-time.Second {
			t.Fatalf("a second later %v are left of %v", wait, want)
		}
		now = now.Add(pause)
		want = min(2*want, conflictLast)
	}
	// When it has been quiet for long enough, all begins anew.
	if pause, inConflict := f.corrected(now.Add(conflictWindow + time.Second)); inConflict || pause > 0 {
		t.Errorf("after peace: pause %v, inConflict %v", pause, inConflict)
	}
}

// Ten corrections over a long time are none.
func TestSlowDriftIsNoConflict(t *testing.T) {
	t.Parallel()
	var f conflict
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 30 {
		if pause, inConflict := f.corrected(now); inConflict || pause > 0 {
			t.Fatalf("pause %v, inConflict %v", pause, inConflict)
		}
		now = now.Add(2 * time.Minute)
	}
}
