// Package metrics counts for Prometheus what kubesync does.
//
// # Flow
//
// [Metrics] counts: it observes every sync as a sync.Observer, every request to the
// API server as what wraps the transport, and of the traffic with git servers as each
// repo's meter. [State] counts nothing: at each scrape it words the status board's
// snapshot as gauges, so metrics, page and API agree, and what the board forgets has
// no series any more. Both are registered with the registry that the caller gives;
// [Handler] answers /metrics from it.
//
// # Labels
//
// A label's values are a closed set (action, code, result, stage, state, verb), or as
// many as there are repos, or kinds in use. No metric has the name of an object, a
// namespace, a URL or a text of anybody's as a label, so neither cost nor secrets can
// come in that way. Of a revision only the newest of a repo is there. The series of a
// repo that has left the list go, and a process on standby has none about repos
// but counters, which nothing moves: the leader has them.
//
// # Safety
//
// The methods only count, and never wait for a scrape. A scrape reads the board and
// changes nothing.
package metrics
