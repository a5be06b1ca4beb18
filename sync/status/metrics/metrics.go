package metrics

import (
	"runtime"
	stdsync "sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
)

// Metrics counts what happens. It implements [sync.Observer]. Its methods may be
// called concurrently.
type Metrics struct {
	syncs        *prometheus.CounterVec // repo, state
	stages       *prometheus.HistogramVec
	outcomes     *prometheus.CounterVec // repo, action
	drift        *prometheus.CounterVec // repo, kind, result
	conflicts    *prometheus.CounterVec // repo, kind
	pruneHolds   *prometheus.CounterVec // repo
	apiRequests  *prometheus.CounterVec // verb, code
	apiDurations *prometheus.HistogramVec
	gitRequests  *prometheus.CounterVec // repo, code
	gitReceived  *prometheus.CounterVec // repo
	gitSent      *prometheus.CounterVec // repo

	mu   stdsync.Mutex
	held map[string]string // the revision of which each repo's prune was held last
}

// New returns metrics that registry gathers, which may have none of these names yet.
func New(registry prometheus.Registerer, version string) *Metrics {
	m := &Metrics{
		syncs: counter("syncs_total",
			"Syncs that have ended, by what they came to.", "repo", "state"),
		stages: histogram("sync_stage_duration_seconds",
			"How long the stages of syncs took.", stageBuckets(), "stage"),
		outcomes: counter("sync_objects_total",
			"What syncs did about objects; one object counts once a sync.", "repo", "action"),
		drift: counter("drift_total",
			"Objects that another writer changed, by what was done about it.", "repo", "kind", "result"),
		conflicts: counter("conflict_corrections_total",
			"Corrections of objects that drift again and again, which back off.", "repo", "kind"),
		pruneHolds: counter("prunes_held_total",
			"Revisions whose prune was refused until a person approves it.", "repo"),
		apiRequests: counter("api_requests_total",
			"Requests to the Kubernetes API server; code is error where none was answered.", "verb", "code"),
		apiDurations: histogram("api_request_duration_seconds",
			"How long the API server took to begin its answer, watches left out.", prometheus.DefBuckets, "verb"),
		gitRequests: counter("git_requests_total",
			"Requests to git servers; code is that of http, ok over ssh, error where none was answered.", "repo", "code"),
		gitReceived: counter("git_received_bytes_total",
			"Bytes received from git servers, protocols below git included.", "repo"),
		gitSent: counter("git_sent_bytes_total",
			"Bytes sent to git servers, protocols below git included.", "repo"),
		held: map[string]string{},
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info",
		Help:        "The running program; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	registry.MustRegister(m.syncs, m.stages, m.outcomes, m.drift, m.conflicts, m.pruneHolds,
		m.apiRequests, m.apiDurations, m.gitRequests, m.gitReceived, m.gitSent, build)
	return m
}

// namespace is what the name of every metric begins with.
const namespace = "kubesync"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// stageBuckets reach from a poll on the same network to a rollout, in seconds.
func stageBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
}

// Results of drift.
const (
	driftCorrected = "corrected"
	driftFailed    = "failed"
	driftLeft      = "left" // as DRIFT says
)

// Unreadable does nothing: the health of objects is a metric already.
func (m *Metrics) Unreadable(sync.Unreadable) {}

// Begin has the counters of a new repo start at 0, so that the first that happens is an
// increase.
func (m *Metrics) Begin(progress sync.Progress) {
	repo := progress.Repo
	for _, state := range sync.States() {
		m.syncs.WithLabelValues(repo, string(state))
	}
	for _, action := range apply.Actions() {
		m.outcomes.WithLabelValues(repo, string(action))
	}
	m.pruneHolds.WithLabelValues(repo)
}

// Observe counts a sync.
func (m *Metrics) Observe(report sync.Report) {
	m.syncs.WithLabelValues(report.Repo, string(report.State())).Inc()
	for _, stage := range report.Stages {
		m.stages.WithLabelValues(string(stage.Stage)).Observe(stage.Duration.Seconds())
	}
	for action, n := range report.Result.Counts() {
		m.outcomes.WithLabelValues(report.Repo, string(action)).Add(float64(n))
	}
	if report.Result.PruneHeld != "" && m.firstHeld(report.Repo, report.Revision.ID) {
		m.pruneHolds.WithLabelValues(report.Repo).Inc()
	}
}

// firstHeld reports whether it is news that a revision's prune is held.
func (m *Metrics) firstHeld(repo, revision string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[repo] == revision {
		return false
	}
	m.held[repo] = revision
	return true
}

// Drift counts an object that another writer changed.
func (m *Metrics) Drift(drift apply.Drift) {
	kind, result := drift.ID.GroupKind().String(), driftLeft
	switch {
	case drift.Err != nil:
		result = driftFailed
	case drift.Corrected:
		result = driftCorrected
	}
	m.drift.WithLabelValues(drift.Repo, kind, result).Inc()
	if drift.Conflict {
		m.conflicts.WithLabelValues(drift.Repo, kind).Inc()
	}
}

// Unlist drops the series of a repo.
func (m *Metrics) Unlist(repo string) {
	of := prometheus.Labels{"repo": repo}
	for _, vec := range []*prometheus.CounterVec{m.syncs, m.outcomes, m.drift, m.conflicts, m.pruneHolds, m.gitRequests, m.gitReceived, m.gitSent} {
		vec.DeletePartialMatch(of)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.held, repo)
}
