package lease

import (
	"testing"
	"time"
)

func TestLasting(t *testing.T) {
	t.Parallel()
	timing := DefaultTiming()
	for slowest, want := range map[time.Duration]time.Duration{
		0:                       15 * time.Second,
		100 * time.Millisecond:  15 * time.Second,
		timing.slowFrom():       15 * time.Second,
		3 * time.Second:         30 * time.Second,
		5 * time.Second:         30 * time.Second,
		7 * time.Second:         time.Minute,
		10 * time.Second:        time.Minute,
		12 * time.Second:        time.Minute,
		20 * time.Second:        2 * time.Minute,
		30 * time.Second:        4 * time.Minute,
		50 * time.Second:        4 * time.Minute,
		takeTimeout:             4 * time.Minute,
		24 * time.Hour:          4 * time.Minute,
		timing.slowFrom() + 100: 30 * time.Second,
	} {
		if got := timing.lasting(slowest); got != want {
			t.Errorf("writes of %s: the Lease lasts %s, want %s", slowest, got, want)
		}
		if timing.slow(slowest) != (want > timing.Duration) {
			t.Errorf("writes of %s: slow is %v", slowest, timing.slow(slowest))
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	if p.slowest() != 0 {
		t.Errorf("the slowest of no writes took %s", p.slowest())
	}
	p = p.with(10 * time.Second)
	for i := range paceMemory - 1 {
		if p = p.with(time.Millisecond); p.slowest() != 10*time.Second {
			t.Fatalf("a slow write is forgotten after %d quick ones", i+1)
		}
	}
	if p = p.with(2 * time.Millisecond); p.slowest() != 2*time.Millisecond || len(p) != paceMemory {
		t.Errorf("after %d quick writes, the slowest of %d took %s", paceMemory, len(p), p.slowest())
	}
}

func TestReleaseTime(t *testing.T) {
	t.Parallel()
	for slowest, want := range map[time.Duration]time.Duration{
		0:                      releaseTimeout,
		500 * time.Millisecond: releaseTimeout,
		3 * time.Second:        5 * time.Second,
		10 * time.Second:       12 * time.Second,
		20 * time.Second:       0,
	} {
		if got, useful := releaseTime(slowest); useful != (want > 0) || useful && got != want {
			t.Errorf("writes of %s: %s, worth it: %v; want %s", slowest, got, useful, want)
		}
	}
}

// What a renewal says may hold even if it is never known whether it was stored: a
// process that was granted a long time and asks for a short one may use the short one.
func TestNoWritesBeyondWhatMayBeStored(t *testing.T) {
	t.Parallel()
	l := &Lease{options: Options{Timing: DefaultTiming()}, leading: true}
	now := time.Now()
	check := func(what string, want time.Duration) {
		t.Helper()
		if got := l.mayWriteUntil().Sub(now); got != want {
			t.Errorf("%s: writes until %s, want %s", what, got, want)
		}
	}
	l.renewed("a", now, time.Minute)
	check("a long one is granted", 48*time.Second)
	l.sending(now.Add(2*time.Second), 15*time.Second)
	check("a short one is asked for", 14*time.Second)
	l.renewed("a", now.Add(2*time.Second), 15*time.Second)
	check("it is granted", 14*time.Second)
	give := l.sending(now.Add(4*time.Second), time.Minute)
	check("a long one is asked for", 14*time.Second)
	if give.After(l.mayWriteUntil()) {
		t.Error("a renewal is waited for beyond the time in which it is of use")
	}
	l.leading = false
	if give := l.sending(now.Add(5*time.Second), 15*time.Second); give.Sub(now) != 5*time.Second+takeTimeout {
		t.Errorf("taking the lease is given up after %s", give.Sub(now))
	}
}
