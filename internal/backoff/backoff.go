package backoff

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Wait returns how long to wait after so many failures in a row, without jitter: first after
// one, twice as long after each other, longest at most.
func Wait(failures int, first, longest time.Duration) time.Duration {
	wait := first
	for range failures - 1 {
		if wait >= longest {
			break
		}
		wait *= 2
	}
	return min(wait, longest)
}

// Jitter returns d give or take a tenth.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// Sleep waits for d, or less if woken; false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// longestRetryAfter bounds what a server may ask for: seconds of more would not fit a
// time.Duration.
const longestRetryAfter = 24 * time.Hour

// RetryAfter reads the header Retry-After, seconds or a date (RFC 9110, section 10.2.3): how
// long the server wants to be left alone from now on, a day at most; 0 if it does not say.
func RetryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(seconds, int(longestRetryAfter/time.Second)))) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(date), longestRetryAfter))
	}
	return 0
}
