// Package retry tells which failures of a request to somebody else's server another try
// may mend, and when the server wants to be asked again.
package retry

import (
	"net/http"
	"strconv"
	"time"
)

// longestWait is how long a server may ask to be left alone.
const longestWait = 5 * time.Minute

// Later is a failure that another try may mend.
type Later struct {
	Err   error
	After time.Duration // that the server asks for; 0 if it does not
}

// Error is the failure's.
func (e *Later) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Later) Unwrap() error { return e.Err }

// Judge returns nil for an answer that says that all is well, else err: as a *Later
// where the server is busy or broken (408, 429, 5xx), with its Retry-After in seconds
// (RFC 9110, section 10.2.3), five minutes at most.
func Judge(answer *http.Response, err error) error {
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 if it is none
		return &Later{Err: err, After: min(time.Duration(max(seconds, 0))*time.Second, longestWait)}
	}
	return err
}
