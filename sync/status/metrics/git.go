package metrics

import "github.com/prometheus/client_golang/prometheus"

// Git returns the meter of a repo's traffic with its git server. It is a repo.Meter.
func (m *Metrics) Git(repo string) Git { return Git{metrics: m, repo: repo} }

// Git counts the traffic with one git server. The zero value is of no use: see
// [Metrics.Git].
type Git struct {
	metrics *Metrics
	repo    string
}

// Request counts a request: by the http status of its answer, 0 for an answer that has
// none, as over ssh; an error says that there was none.
func (g Git) Request(status int, err error) {
	code := "ok"
	switch {
	case err != nil:
		code = noAnswer
	case status != 0:
		code = codeOf(status)
	}
	g.metrics.gitRequests.WithLabelValues(g.repo, code).Inc()
}

// Received counts bytes.
func (g Git) Received(bytes int) { g.add(g.metrics.gitReceived, bytes) }

// Sent counts bytes.
func (g Git) Sent(bytes int) { g.add(g.metrics.gitSent, bytes) }

func (g Git) add(to *prometheus.CounterVec, bytes int) {
	to.WithLabelValues(g.repo).Add(float64(bytes))
}
