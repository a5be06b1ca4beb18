// Package transport answers requests in place of an API server, for tests of what a client makes
// of an answer.
package transport

import (
	"io"
	"net/http"
	"strings"
)

// Answers is a transport whose server answers JSON, and sends nothing.
type Answers func(*http.Request) (status int, body string)

// RoundTrip implements http.RoundTripper.
func (a Answers) RoundTrip(request *http.Request) (*http.Response, error) {
	status, body := a(request)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}
