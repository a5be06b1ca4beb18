package sync

import (
	"context"
	"math/rand/v2"
	"time"
)

// firstRetry is the wait after a first failure; it doubles up to the interval.
const firstRetry = 5 * time.Second

// backoff is the wait after so many failures in a row, without jitter.
func backoff(failures int, limit time.Duration) time.Duration {
	wait := firstRetry
	for range failures - 1 {
		if wait >= limit {
			break
		}
		wait *= 2
	}
	return min(wait, limit)
}

// jitter returns d give or take a tenth, so that many loops do not beat in time.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// Sleep waits for d; false says that ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool { return sleep(ctx, d, nil) }

// sleep waits for d, or less if woken; false says that ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
