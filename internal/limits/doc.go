// Package limits holds every bound on what a revision may cost: in time, in memory
// and on disk. Whoever may push to a repository, or answers at its address, must not
// bring down a daemon that syncs other repositories too.
//
// # Flow
//
//  1. One table ([Limit], table.go) has the name and the default of each bound, and the
//     reason for it. LIMITS sets those that a large repository meets ([Bounds]); the
//     others are fixed.
//  2. [Parse] reads LIMITS. The packages repo, transform and apply get a value,
//     [Limits], whose zero value is all defaults.
//  3. What is counted is held against [Limits.Check], or [Limits.Of] where the bound
//     itself is needed. What is over it becomes an [Exceeded] ([Limits.Exceeded]), which
//     names the limit, what was met, and what to set if LIMITS sets it.
//
// # Safety rules
//
//   - The defaults are chosen together: whatever one repository or server does, the
//     daemon takes less than 300 MB of memory (test/bombs holds it to that). CMD and
//     kustomize run in processes with limits of their own. A raised limit gives that up.
//   - To exceed a limit fails the sync of that one repository: nothing of the revision
//     is applied, and nothing pruned. It never ends the process.
package limits
