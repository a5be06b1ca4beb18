// Command crash kills kubesync at every request that it makes, and falsifies the answer
// to every request, to see that it comes out in the same state. `make crash` runs all of
// it and rewrites RESULTS.md; scripts/crash runs some.
//
// # The story
//
// story.txtar holds the revisions of three repos, and story.go tells what else happens:
// objects in all steps of the order are created, a CRD and its objects among them;
// they change, change repos, go; a Namespace is renamed, what kubectl apply made is
// adopted, a transform is changed, a prune beyond the limit is approved; and the daemon
// is stopped, comes back to a cluster that people have edited. Two of the repos are of
// the system tier, one is of the application tier and has a CMD. In the same namespaces,
// among them objects of the same kinds, stand objects of other owners: of other appliers,
// with another set's label, and with a copied label of kubesync's own.
//
// The servers are real: etcd, kube-apiserver and kube-controller-manager, new ones for
// each run, and git http-backend. The daemon is a ServiceAccount that RBAC holds for.
//
// # Points
//
// All requests of the daemon, to the API server and to git, pass a tap (tap.go). It names
// each by what it asks for and how often that was asked in the step: names, not numbers,
// since requests that are made at the same time come in any order. An interval of an hour
// and SIGHUP keep the clock out of it; renewals of the Lease have no name, nor has what
// asks the same for more than the fifth time in a step, to wait for something.
//
// The story runs once undisturbed. That is the reference: the requests of each step,
// and what the cluster holds after it. A point is one of these requests with a fate:
//
//   - before, after: the daemon is killed (SIGKILL) just before the request is passed
//     on, or when it was carried out, before the answer arrives. Then it is started
//     again, with nothing to disturb it. Its Lease is released on its behalf, since
//     waiting for it to run out proves nothing here that the scenario lease_standby does
//     not; one run in ten waits.
//   - an HTTP status, or another false answer (false.go), once, and the daemon runs
//     on. Every other request that is refused is carried out all the same. Where
//     the daemon says that not all is in sync, it is made to poll rather than waited for.
//
// One run tries a point, or some false answers of one kind, in each step (point.go), so that
// the number of runs is that of the longest step's points, not of all.
//
// # What is checked after each step
//
//   - The daemon says, of every repo, that it is in sync with the newest commit.
//   - The cluster holds what it held in the reference: objects, with labels, annotations
//     and field ownership, and the parents; without what is particular to a run (uids,
//     versions, times, addresses, the proofs in a parent, but for their number), and
//     without what a parent names that there is not any more. Hence nothing with a label
//     of kubesync's is there that git does not declare.
//   - Objects of other owners have the uid and the resourceVersion that they had.
//   - What git declares before and after the step is the same object by its uid, as it
//     was before the step and when the daemon died: nothing was deleted and made again.
//   - The daemon has printed no value of a Secret, and not its password for git.
//
// A point that fails prints all that, the end of the daemon's log, and the command to try
// it alone.
package main
