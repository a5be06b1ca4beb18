package backoff

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitDoublesUpToTheLongest(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 5: time.Minute, 1000: time.Minute} {
		if got := Wait(failures, 5*time.Second, time.Minute); got != want {
			t.Errorf("wait after %d failures is %s, want %s", failures, got, want)
		}
	}
	if got := Wait(1, 5*time.Second, 2*time.Second); got != 2*time.Second {
		t.Errorf("the first wait is %s, want no more than the longest", got)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // whose clock stands at 2000-01-01 00:00:00
		for text, want := range map[string]time.Duration{
			"": 0, "soon": 0, "-1": 0, "2": 2 * time.Second, "9999999999": 24 * time.Hour, "99999999999999999999": 0,
			"Sat, 01 Jan 2000 00:00:30 GMT": 30 * time.Second, "Fri, 31 Dec 1999 23:59:59 GMT": 0, "Sat, 01 Jan 2028 00:00:00 GMT": 24 * time.Hour,
		} {
			if got := RetryAfter(http.Header{"Retry-After": {text}}); got != want {
				t.Errorf("%q: got %s, want %s", text, got, want)
			}
		}
	})
}

func TestRepeatsBecomeRarer(t *testing.T) {
	t.Parallel()
	var logged []time.Duration
	var r Repeat
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for passed := time.Duration(0); passed < 5*time.Hour; passed += time.Second {
		if r.Due("the same", start.Add(passed)) {
			logged = append(logged, passed)
		}
	}
	minutes := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}
	if len(logged) != len(minutes) {
		t.Fatalf("logged %d times: %v", len(logged), logged)
	}
	for i, want := range minutes {
		if logged[i] != time.Duration(want)*time.Minute {
			t.Errorf("logged after %s, want %d minutes", logged[i], want)
		}
	}
}
