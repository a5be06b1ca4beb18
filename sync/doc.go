// Package sync runs the pipeline: one loop per repo, started and stopped by a
// [Manager] as the list of repos changes, inside a [Lease] that makes this
// process the one writer.
//
// # Flow
//
// A [Loop] takes its repo through the stages
//
//	resolve -> files -> transform -> plan -> apply
//
// each of which hands a plain value to the next, and makes one [Report] of it. A
// stage that fails ends the sync: nothing after it runs, so nothing is applied or
// pruned for a revision that could not be read, transformed, or checked as a
// whole. Reports go to an [Observer], which is told of each stage that begins as
// well; the one that writes the log is [Log], the one that prints a dry run is
// [Printer].
//
// What the stages do is not this package's business: it drives a [Pipeline] of
// three small interfaces, which main makes of the packages repo, transform and
// apply. It knows no HTTP server and no metrics.
//
// # Time
//
// A repo in sync is looked at again after its interval, give or take a tenth, so
// that many repos and many daemons spread out. A repo that is not (a stage failed,
// or objects failed, were refused or are parked) is tried again after 5 s, then
// twice as long each time, up to its interval; a new revision starts from 5 s
// again. Each loop has a goroutine of its own: a repo that fails or hangs delays no
// other, with one exception: application repos start when every system repo has
// had its first sync, or failed it. When a sync created a Namespace or a CRD, the
// repos with parked objects are tried at once.
//
// # Safety
//
// One writer: every write's context descends from the one that [Lease.Run] hands
// out, which ends when the lease is lost or the process shall stop, and
// [Lease.Fence] refuses writes at the transport if time ran out unnoticed. The
// lease is released only after all loops have returned.
//
// How long the Lease lasts stands in it, and standbys wait for as long from when they see
// it change. Its holder writes for four fifths of that from when it sent the renewal,
// which is earlier: so no two ever write. Where renewals take long, the Lease is made to
// last longer, and nobody is the writer before the next one fits in. When it is to last
// less again, that counts from the sending of the request, as it may be stored without
// the answer ever coming.
//
// A panic in a stage fails that sync and no other repo. What the pipeline holds in
// memory is not trusted after it: it is closed and built anew for the next try.
// Because pruning is the last thing the last stage does, nothing is pruned after
// a panic. A panic in a goroutine that a stage has started ends the process, as
// always in Go; the next one starts from git and the cluster alone.
//
// A repo that leaves the list stops and its objects stay: nothing is ever
// deleted because configuration went missing. Nor because it is old: who takes the
// lease over reads the list before anything else, and as long as that fails, repos are
// synced by the list that was read last, and nothing counts as having left it.
package sync
