// Command model walks at random through what can happen to a kubesync, and holds what
// is live, and what the daemon says, against a simple model at every quiet point.
//
//	scripts/model                          one walk, its seed printed
//	scripts/model -for 2m                  as many as begin in that time, as CI does
//	scripts/model -seed 7 -steps 25        the same walk as in every other run
//	scripts/model -seed 7 -only 0-4,9,12   some of its steps
//	make soak SOAK=20m                     one long walk with one daemon, which must not grow
//
// # A walk
//
// Three repos (two system repos, an application repo) share some forty objects in three
// namespaces, one of which a repo declares. Steps are commits, forced pushes, reverts,
// deleted branches, revisions that cannot be loaded; objects that move between repos,
// directories and namespaces; edits, deletions and labels by hand; kubectl apply and other
// server-side appliers; objects of other owners, also such that will be declared later or
// carry our label; approvals, suspensions, exemptions; changes of the CONFIG list; daemons
// that stop, are killed, are on standby; outages of the API server and of git, lost
// answers, cut connections.
//
// Steps are drawn from a seed and from what the model allows, before any server is asked:
// the same seed gives the same walk, as long as no one changes how steps are drawn. They
// are taken without waiting for the daemon, up to four in a row. Then all outages end, and
// it has to become quiet.
//
// Every second walk polls each second. The others poll when they are made to, by one
// signal at the quiet point (repeated if nothing comes of it for ten seconds), which shows
// what no one wakes up for.
//
// # What holds at a quiet point
//
//   - Every declared object is live, with the fields declared and without those that
//     left git, under our label and with fields of ours; fields of others are still there.
//   - Nothing else is there but what may not be pruned or waits for approval, and objects of
//     other owners.
//   - An object of another owner has the uid that it had, and no one wrote it but the walk.
//   - No object was deleted and made anew, unless the walk deleted it.
//   - The status names the revision, says synced, partial, failed or suspended as it
//     is, whether a prune waits, and how many objects are blocked, pending or wrong; the parent
//     records the revision, and no approval that is used up. Once the status says that all
//     is done, the cluster has to be so within ten seconds.
//   - A sync from scratch, which a change of a Namespace brings about, writes nothing more and says
//     the same: what daemons build on the sync before has missed nothing.
//   - Application repos have their RoleBindings while one is listed, and no longer.
//   - No log tells of a panic, a data race or a mistake of kubesync's own, and neither log
//     nor status holds what stands in a Secret; daemons end with status 0.
//
// # The model
//
// world.go says what is known, act.go what a step changes of it, settle.go what is live
// when the daemon has done all that it can. It shall be obviously right rather than
// complete, so allow.go keeps walks away from where two outcomes are right, depending on
// what a daemon comes to first. Hence a repo has at most one commit, or other change that
// decides over pruning, between two quiet points; a revision that cannot be loaded comes
// alone; and nothing is approved while another repo cannot be loaded.
//
// Left out are: PRUNE_LIMIT as a share, and a changed URL, directory or source; conflicts
// (ten corrections of an object in ten minutes); Jobs; finalizers and owners; immutable
// fields; CMD and kustomizations; NAMESPACES; parents or Leases that a user deletes;
// other daemons with another Lease; deletion of unlisted sets; two repos that declare
// the same object for long. Scenarios in package test are for these. The API server itself
// keeps running, since walks share it: outages are made by a proxy of each walk's own.
//
// # The soak
//
// One walk goes on with one daemon that is never restarted, others beside it. At every
// quiet point its memory (RssAnon), goroutines, file descriptors and temporary files are
// looked at. It fails unless the last quarter of the time is flat against the first:
// the medians of its memory within 15 % and 4 MB, of its descriptors within 16, no more
// temporary files; and, as every kind in use is a watch with a connection and goroutines
// of its own, goroutines within 10 at quiet points with as many descriptors.
//
// This is a module of its own, as the bench is.
package main
