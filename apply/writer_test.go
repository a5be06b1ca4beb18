package apply

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

func TestJudgeLease(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	held := leaseState{holder: "a", renewed: "t1", version: "7", lasts: 15 * time.Second}
	with := func(change func(*leaseState)) leaseState {
		changed := held
		change(&changed)
		return changed
	}
	seen := observation{state: held, since: at(0)}
	for name, test := range map[string]struct {
		before          observation
		seen            leaseState
		asked, answered float64
		want            leaseVerdict
		since           float64
		rest            time.Duration
	}{
		"first seen":               {observation{}, held, 1, 2, leaseObserved, 2, 15 * time.Second},
		"first seen, released":     {observation{}, with(func(s *leaseState) { s.holder = "" }), 1, 2, leaseFree, 2, 0},
		"released since":           {seen, with(func(s *leaseState) { s.holder, s.version = "", "8" }), 1, 2, leaseFree, 2, 0},
		"unchanged, not for long":  {seen, held, 14, 14.1, leaseObserved, 0, time.Second},
		"unchanged for as long":    {seen, held, 15, 15.1, leaseFree, 0, 0},
		"a slow answer is no time": {seen, held, 14, 40, leaseObserved, 0, time.Second},
		"renewed":                  {seen, with(func(s *leaseState) { s.renewed, s.version = "t2", "8" }), 20, 21, leaseHeld, 21, 15 * time.Second},
		"taken by another":         {seen, with(func(s *leaseState) { s.holder, s.version = "b", "8" }), 20, 21, leaseHeld, 21, 15 * time.Second},
		"touched by anybody":       {seen, with(func(s *leaseState) { s.version = "8" }), 20, 21, leaseHeld, 21, 15 * time.Second},
		"made to last longer":      {seen, with(func(s *leaseState) { s.lasts, s.version = time.Minute, "8" }), 20, 21, leaseHeld, 21, time.Minute},
		"the same, made anew":      {seen, with(func(s *leaseState) { s.version = "3" }), 20, 21, leaseHeld, 21, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, verdict, rest := judgeLease(test.before, test.seen, at(test.asked), at(test.answered))
			if verdict != test.want || rest != test.rest || kept.state != test.seen || !kept.since.Equal(at(test.since)) {
				t.Errorf("verdict %d, rest %s, kept since %s; want %d, %s, %gs", verdict, rest, kept.since.Sub(start), test.want, test.rest, test.since)
			}
		})
	}
}

// FuzzJudgeLease has a writer renew whenever it likes, with a clock that says anything,
// and another writer look whenever that likes, with answers that take any time. As long as
// the writer is within the time its Lease lasts it must never be taken for dead, and a
// Lease that was left alone for so long must be free.
func FuzzJudgeLease(f *testing.F) {
	f.Add([]byte{1, 0, 0, 1, 5, 9, 0, 3, 2, 1, 15, 0, 1, 15, 0})
	f.Add([]byte{1, 0, 200, 1, 14, 1, 0, 1, 0, 1, 14, 1, 1, 16, 0})
	f.Fuzz(func(t *testing.T, moves []byte) {
		const lasts = 15 * time.Second
		now := time.Now()
		state := leaseState{holder: "a", version: "0", lasts: lasts}
		renewed, version := now, 0
		var before observation
		for len(moves) >= 3 {
			renews, pass, more := moves[0]%2 == 0, time.Duration(moves[1])*time.Second/8, time.Duration(moves[2])*time.Second/8
			moves = moves[3:]
			if now = now.Add(pass); renews {
				version++
				state.version, renewed = fmt.Sprint(version), now
				state.renewed = fmt.Sprint(binary.LittleEndian.Uint16([]byte{byte(pass), byte(more)})) // a clock of any kind
				continue
			}
			asked := now
			now = now.Add(more)
			kept, verdict, rest := judgeLease(before, state, asked, now)
			if verdict == leaseFree && asked.Sub(renewed) < lasts {
				t.Fatalf("free %s after a renewal", asked.Sub(renewed))
			}
			unchanged := before.state == state && !before.since.IsZero()
			if unchanged && verdict != leaseFree && asked.Sub(before.since) >= lasts {
				t.Fatalf("not free although seen unchanged for %s", asked.Sub(before.since))
			}
			if verdict == leaseHeld && unchanged {
				t.Fatal("held without a change")
			}
			if verdict != leaseFree && (rest <= 0 || rest > lasts) {
				t.Fatalf("to be observed for another %s", rest)
			}
			before = kept
		}
	})
}
