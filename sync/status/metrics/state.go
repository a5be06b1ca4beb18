package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/status"
)

// Board is where the state comes from.
type Board interface {
	Overview() status.Overview
}

// State words a board's snapshot as gauges. It implements [prometheus.Collector].
type State struct {
	board Board

	leading, listError, staleness, unlisted *prometheus.Desc

	repo, revision, applied           *prometheus.Desc
	lastSync, lastSuccess, lastChange *prometheus.Desc
	nextSync, failures                *prometheus.Desc
	healthy, inProgress, suspended    *prometheus.Desc
	pruneHeld, objects, health        *prometheus.Desc
}

// NewState returns a collector that reads board at each scrape.
func NewState(board Board) *State {
	return &State{
		board:     board,
		leading:   gauge("leading", "Whether this process holds the Lease and writes; a standby has no metrics of repos."),
		listError: gauge("list_failing", "Whether the list of repos cannot be read, so that the last one stays in force."),
		staleness: gauge("watch_staleness_seconds", "For how long not all that matters in the cluster is being watched; 0 if all is."),
		unlisted:  gauge("unlisted_sets", "Sets of objects whose repo is listed no more."),

		repo:        gauge("repo_info", "A listed repo; always 1.", "repo", "tier"),
		revision:    gauge("revision_info", "The revision that git has, as last seen; always 1.", "repo", "revision", "ref"),
		applied:     gauge("applied_revision_info", "The revision that was applied last; always 1.", "repo", "revision", "ref"),
		lastSync:    gauge("last_sync_timestamp_seconds", "When the last sync ended, well or badly, in Unix time.", "repo"),
		lastSuccess: gauge("last_success_timestamp_seconds", "When the cluster was last found to be, or made, what git says, in Unix time.", "repo"),
		lastChange:  gauge("last_change_timestamp_seconds", "When a sync last changed an object, in Unix time.", "repo"),
		nextSync:    gauge("next_sync_timestamp_seconds", "When the next sync is due, in Unix time.", "repo"),
		failures:    gauge("consecutive_failures", "Syncs in a row that did not end in sync.", "repo"),
		healthy:     gauge("healthy", "Whether a person can look elsewhere: synced, watched, and all objects healthy.", "repo"),
		inProgress:  gauge("sync_in_progress", "Whether a sync is under way.", "repo"),
		suspended:   gauge("suspended", "Whether a person has stopped all writes.", "repo"),
		pruneHeld:   gauge("prune_held", "Whether what left git waits for a person's approval to be deleted.", "repo"),
		objects:     gauge("objects", "Objects by how they stand to what git says.", "repo", "state"),
		health:      gauge("objects_health", "Objects by how they are.", "repo", "health"),
	}
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (s *State) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		s.leading, s.listError, s.staleness, s.unlisted, s.repo, s.revision, s.applied, s.lastSync, s.lastSuccess, s.lastChange,
		s.nextSync, s.failures, s.healthy, s.inProgress, s.suspended, s.pruneHeld, s.objects, s.health,
	} {
		to <- desc
	}
}

// Collect implements [prometheus.Collector].
func (s *State) Collect(to chan<- prometheus.Metric) {
	now, view := time.Now(), s.board.Overview()
	out := gauges{to}
	out.flag(s.leading, view.Writing)
	out.flag(s.listError, view.ListError != nil)
	if !view.Writing {
		return // the process that writes knows better
	}
	stale := time.Duration(0)
	if view.Stale != nil {
		stale = max(0, now.Sub(view.Stale.Since))
	}
	out.set(s.staleness, stale.Seconds())
	out.set(s.unlisted, float64(len(view.Unlisted)))
	for i := range view.Repos {
		s.collect(out, &view.Repos[i])
	}
}

// collect words one repo.
func (s *State) collect(out gauges, r *status.Repo) {
	out.set(s.repo, 1, r.Name, r.Tier)
	out.revision(s.revision, r.Name, r.Revision)
	out.revision(s.applied, r.Name, r.Applied)
	out.time(s.lastSync, r.LastSync, r.Name)
	out.time(s.lastSuccess, r.LastVerified, r.Name)
	out.time(s.lastChange, r.LastChange, r.Name)
	out.time(s.nextSync, r.NextPoll, r.Name)
	out.set(s.failures, float64(r.Failures), r.Name)
	out.flag(s.healthy, r.Healthy, r.Name)
	out.flag(s.inProgress, r.Phase != nil, r.Name)
	out.flag(s.suspended, r.Suspended != "", r.Name)
	out.flag(s.pruneHeld, r.PruneHeld != "", r.Name)
	for _, state := range status.ObjectStates() {
		out.set(s.objects, float64(r.Objects[state]), r.Name, string(state))
	}
	if r.Health == nil {
		return // no one knows it
	}
	for _, state := range health.States() {
		out.set(s.health, float64(r.Health[state]), r.Name, string(state))
	}
}

// gauges takes the values of one scrape.
type gauges struct{ to chan<- prometheus.Metric }

func (g gauges) set(desc *prometheus.Desc, value float64, labels ...string) {
	g.to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func (g gauges) flag(desc *prometheus.Desc, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	g.set(desc, value, labels...)
}

// time sets a moment; one that has not come yet has no value.
func (g gauges) time(desc *prometheus.Desc, at time.Time, labels ...string) {
	if !at.IsZero() {
		const nanos = 1e9
		g.set(desc, float64(at.UnixNano())/nanos, labels...)
	}
}

func (g gauges) revision(desc *prometheus.Desc, name string, revision *repo.Revision) {
	if revision != nil {
		g.set(desc, 1, name, revision.Short(), revision.Ref)
	}
}
