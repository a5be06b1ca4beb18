// Package limits holds every bound on what a revision may cost: in time, in memory
// and on disk. A repository is written by whoever may push to it, and served by
// whoever answers at its address; neither may bring down a daemon that syncs others'
// repositories too.
//
// # Flow
//
// Each bound is a [Limit]: its name, its default and the reason for that stand in one
// table (table.go). What was raised with the variable LIMITS ([Parse]) comes to the
// packages repo, transform and apply as a value, [Limits], whose zero value is all
// defaults. Who counts something asks [Limits.Check], or [Limits.Of] where the bound
// itself is needed, and makes of what is over it an [Exceeded] ([Limits.Exceeded]),
// which names the limit, what was met, and what to set.
//
// # Rules of safety
//
// The defaults are chosen together: whatever one repository or server does, the daemon
// takes less than 300 MB of memory (test/bombs holds it to that). Who raises one of them
// gives that up knowingly. CMD and kustomize run in processes with limits of their own.
//
// To exceed a limit fails the sync of that one repository: nothing of the revision is
// applied, and nothing pruned. It never ends the process.
package limits
