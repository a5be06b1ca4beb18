package curl

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/internal/backoff"
)

const (
	// longestRetrying bounds the retries of one reading without --retry-max-time. curl
	// has no such bound; the list is asked for again at the next interval anyway.
	longestRetrying = 5 * time.Minute
	// firstRetryDelay and longestRetryDelay are curl's own.
	firstRetryDelay   = time.Second
	longestRetryDelay = 10 * time.Minute
)

// retries is what --retry and its like say.
type retries struct {
	most    int
	delay   time.Duration // 0: one second, and twice as long each time
	maxTime time.Duration // from the first attempt on
	refused bool          // --retry-connrefused
	all     bool          // --retry-all-errors
}

// wait returns how long to wait before attempt number retry+1, retry counted from 1, and
// whether there is one. passed is the time since the first attempt began, and failure
// what became of the last one.
func (r retries) wait(retry int, passed time.Duration, failure error) (time.Duration, bool) {
	if retry > r.most || !r.passing(failure) {
		return 0, false
	}
	delay := r.delay
	if delay == 0 {
		delay = backoff.Wait(retry, firstRetryDelay, longestRetryDelay)
	}
	var answered *statusFailure
	if errors.As(failure, &answered) && answered.retryAfter > 0 {
		delay = answered.retryAfter
	}
	return delay, passed+delay <= r.maxTime
}

// passing reports whether curl would try again after a failure.
func (r retries) passing(failure error) bool {
	var answered *statusFailure
	var network net.Error
	var lookup *net.DNSError
	switch {
	case r.all:
		return true
	case errors.As(failure, &answered):
		return answered.passing()
	case errors.Is(failure, syscall.ECONNREFUSED):
		return r.refused
	case errors.As(failure, &lookup), errors.Is(failure, context.DeadlineExceeded):
		return true
	default:
		return errors.As(failure, &network) && network.Timeout()
	}
}

// statusFailure is an answer that is not the list.
type statusFailure struct {
	error
	status     int
	retryAfter time.Duration // 0: the server does not say
}

// Unwrap returns the reason.
func (s *statusFailure) Unwrap() error { return s.error }

// passing reports whether curl takes the status for one that may pass.
func (s *statusFailure) passing() bool {
	switch s.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
