// Package sync runs the pipeline: one loop per repo, in the process that leads (package lease).
//
// # Flow
//
//  1. The [Manager] reads the list of repos at every interval, and starts and stops one [Loop]
//     per repo. Application repos start after the first sync of every system repo.
//
//  2. [Loop.Run] syncs, waits and syncs again. A sync takes the repo through the stages
//
//     open -> resolve -> files -> transform -> plan -> apply -> health
//
//     of a [Pipeline], which main builds from the packages repo, transform and apply. A stage
//     that fails ends the sync.
//
//  3. A [Report] of the sync goes to every [Observer]: log, plan, status page, metrics, Events and
//     notifications, all in sync/status.
//
// [Once] runs each repo once instead, and [Offline] is the applier of a dry run without a
// cluster.
//
// # Time
//
// A repo in sync is synced again after its interval, with a jitter of 10 %. A repo that is
// not (a stage failed, or objects failed, were refused or are pending) is retried after 5 s,
// then twice as long each time, up to its interval; a new revision starts from 5 s again.
// Each loop has its own goroutine: a repo that fails or hangs delays no other. When a sync
// created a Namespace or a CRD, repos with pending objects are synced at once.
//
// # Safety rules
//
//   - The context of every write descends from the one that the package lease hands to the
//     leader. The Lease is released after all loops have returned.
//   - Nothing is applied or pruned for a revision that could not be read, transformed, or
//     checked as a whole.
//   - A panic in a stage fails that sync and no other repo. The pipeline is closed and built
//     again. Pruning is the last step of the last writing stage, so nothing is pruned after
//     a panic. A panic in a goroutine that a stage started ends the process.
//   - The objects of a repo that leaves the list stay. A list that cannot be read, or is out
//     of date, removes no repo: a new leader reads the list first, and until that succeeds
//     the last list stays in force.
package sync
