package apply

import (
	"testing"
	"time"
)

func TestFight(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f fight
	for i := range fightCorrections - 1 {
		if pause, fought := f.corrected(now.Add(time.Duration(i) * time.Second)); fought || pause > 0 {
			t.Fatalf("correction %d: pause %v, fought %v", i+1, pause, fought)
		}
	}
	now = now.Add(time.Minute)
	want := fightFirst
	for range 10 {
		pause, fought := f.corrected(now)
		if !fought || pause != want {
			t.Fatalf("pause %v, fought %v; want %v", pause, fought, want)
		}
		if wait := f.wait(now.Add(time.Second)); wait != want-time.Second {
			t.Fatalf("a second later %v are left of %v", wait, want)
		}
		now = now.Add(pause)
		want = min(2*want, fightLast)
	}
	// When it has been quiet for long enough, all begins anew.
	if pause, fought := f.corrected(now.Add(fightWindow + time.Second)); fought || pause > 0 {
		t.Errorf("after peace: pause %v, fought %v", pause, fought)
	}
}

// Ten corrections over a long time are none.
func TestSlowDriftIsNoFight(t *testing.T) {
	t.Parallel()
	var f fight
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 30 {
		if pause, fought := f.corrected(now); fought || pause > 0 {
			t.Fatalf("pause %v, fought %v", pause, fought)
		}
		now = now.Add(2 * time.Minute)
	}
}
