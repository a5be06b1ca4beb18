// Package status keeps what a person wants to know of the repos: what git says,
// what the cluster has, what differs, since when, and how fresh that knowledge is.
//
// # Flow
//
// A [Board] takes in every sync as a [sync.Observer], of drift between syncs, and of
// the list of repos. It answers with snapshots, which nothing changes afterwards:
// [Overview], [Repo], [Object]. Whoever wants to know at once when something changes
// subscribes to its events. Two things it is not given but asks for at the time
// of the snapshot: what is not being watched at the moment, and the objects' health.
//
// The snapshots' JSON is the API's version 1: fields are added to it, none is
// renamed, taken away, or given another meaning. The package web serves it, and
// API.md there says what each field means.
//
// # What is true
//
// Everything on the board was in a report before: it concludes nothing.
// Where a sync did not get as far as the objects, they are shown as they were when
// one did last, and the repo shows the error. What is not being watched makes every
// repo stale, since no one knows whether its objects are still as they were; so does
// a process that is not the leader. "Since" means as far as this process has seen:
// a restart begins again.
//
// # Cost
//
// A report's outcomes belong to the board once it has them, and are not copied; per
// object it adds one entry, which a sync that changes nothing leaves alone. Reading
// costs, not syncing.
//
// # Safety
//
// Every text passes the redactor before it is kept or shown. The board can change
// nothing: it has no way to a cluster, a repo, or a loop. No observer's method waits for a
// reader: one that does not keep up with the events is dropped.
package status
