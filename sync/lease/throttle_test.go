package lease

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestThrottle asks each second for an hour, then after two hours of silence.
func TestThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newThrottle(3, 10*time.Minute)
		var done atomic.Int32 // timers call, each from a goroutine of its own
		postponed := 0
		ask := func() {
			act := func() { done.Add(1) }
			if r.do(act, act) > 0 {
				postponed++
			}
			synctest.Wait()
		}
		for range 3 {
			ask()
		}
		if done.Load() != 3 || postponed != 0 {
			t.Errorf("at first: done %d, postponed %d", done.Load(), postponed)
		}
		for range 3600 {
			time.Sleep(time.Second)
			ask()
		}
		if done.Load() != 9 || postponed != 7 { // the last is still to come
			t.Errorf("in an hour: done %d, postponed %d", done.Load(), postponed)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if done.Load() != 10 {
			t.Errorf("what was asked for was not done: %d", done.Load())
		}
		if ask(); done.Load() != 11 || postponed != 7 {
			t.Errorf("after a while: done %d, postponed %d", done.Load(), postponed)
		}
	})
}
