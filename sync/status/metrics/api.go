package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// noAnswer is the code of a request that no one answered.
const noAnswer = "error"

// APIRequests counts the requests that go through a transport to the API server. It
// fits rest.Config.Wrap.
func (m *Metrics) APIRequests(next http.RoundTripper) http.RoundTripper {
	return counted{metrics: m, next: next}
}

type counted struct {
	metrics *Metrics
	next    http.RoundTripper
}

// RoundTrip counts a request by its answer's status.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	verb, began := verbOf(request), time.Now()
	response, err := c.next.RoundTrip(request)
	code := noAnswer
	if err == nil {
		code = codeOf(response.StatusCode)
	}
	c.metrics.apiRequests.WithLabelValues(verb, code).Inc()
	if verb != "watch" {
		c.metrics.apiDurations.WithLabelValues(verb).Observe(time.Since(began).Seconds())
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }

// codeOf returns a status as a label, of which a mad server can make only so many.
func codeOf(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status)
}

// verbOf returns the verb of a request as the API server's audit log has it. A server-side
// dry run has a label of its own, since it changes nothing.
func verbOf(request *http.Request) string {
	query := request.URL.Query()
	verb := strings.ToLower(request.Method)
	switch request.Method {
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch, http.MethodDelete:
	case http.MethodGet, http.MethodHead:
		verb = "get"
		if isCollection(request.URL.Path) {
			verb = "list"
		}
		if watch, err := strconv.ParseBool(query.Get("watch")); err == nil && watch {
			verb = "watch"
		}
	default:
		return "other"
	}
	if query.Has("dryRun") {
		return "dryrun-" + verb
	}
	return verb
}

// isCollection reports whether a path names all objects of a resource, in a namespace or
// in all: what follows the version, without the namespace, is one word.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if root < 0 {
		return false
	}
	skip := root + 2 // and a version
	if parts[root] == "apis" {
		skip++ // and a group
	}
	parts = parts[min(len(parts), skip):]
	if len(parts) >= 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) == 1
}
