package lease

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// throttle limits how often a function is called: beyond a number of calls at once, a call is
// postponed, and calls meanwhile are merged into it. It may be used concurrently.
type throttle struct {
	limit *rate.Limiter

	mu        sync.Mutex // guards what follows
	postponed bool
}

// newThrottle allows so many times at once, and one more each interval.
func newThrottle(times int, interval time.Duration) *throttle {
	return &throttle{limit: rate.NewLimiter(rate.Every(interval), times)}
}

// do calls now, or else later after the wait that it returns; neither, and 0, if later is
// to be called anyway.
func (r *throttle) do(now, later func()) (wait time.Duration) {
	r.mu.Lock()
	if r.postponed {
		r.mu.Unlock()
		return 0
	}
	wait = r.limit.Reserve().Delay()
	r.postponed = wait > 0
	r.mu.Unlock()
	if wait == 0 {
		now()
		return 0
	}
	time.AfterFunc(wait, func() {
		r.mu.Lock()
		r.postponed = false
		r.mu.Unlock()
		later()
	})
	return wait
}
