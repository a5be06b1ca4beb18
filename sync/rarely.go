package sync

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rarely has something done at once, but not again and again: beyond a number of times
// it is postponed, and what is asked for meanwhile is done with that. Safe for concurrent
// use.
type rarely struct {
	limit *rate.Limiter

	mu        sync.Mutex // guards what follows
	postponed bool
}

// newRarely allows so many times at once, and one more each interval.
func newRarely(times int, interval time.Duration) *rarely {
	return &rarely{limit: rate.NewLimiter(rate.Every(interval), times)}
}

// do calls now, or else later after the wait that it returns; neither, and 0, if later is
// to be called anyway.
func (r *rarely) do(now, later func()) (wait time.Duration) {
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
