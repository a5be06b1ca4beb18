// Command bench measures kubesync against real servers and against what else
// could do the same work: bare server-side apply, fluxcd/pkg/ssa, kubectl and
// git. `make bench` runs all of it and writes RESULTS.md; while working on
// something, run a part of it:
//
//	scripts/bench -run 'drift|restart' -size small
//
// The program that is measured is the one that the tree builds. No figure fails a
// run: a target that is missed says "no" in the table. A run fails when something
// could not be measured, or when what should be in the cluster afterwards is not
// there, for a program that does less is no faster.
//
// # How to read the results
//
// Only the ratios travel. Seconds are those of one machine, where API server,
// etcd, git server and whoever is measured share the cores. Therefore whatever is
// compared was run in turns (A B A B) in the same run, each on a control plane of
// its own that was just started and had come to rest, with the same objects. A
// figure is the median of its rounds, with the smallest and the largest behind it;
// a ratio is that of two medians.
//
//   - "Wall time" of kubesync, kubectl and git is that of the whole process, from
//     its start to its exit, the discovery, the Lease and the fetch from git
//     included. Bare SSA and fluxcd/pkg/ssa run inside the bench, with their
//     clients made and their objects parsed before the clock starts, which is in
//     their favour.
//   - Everybody who talks to the API server does so as a ServiceAccount that is
//     bound to cluster-admin, with a token: the API server exempts administrators
//     with a certificate from priority and fairness. No client has a rate limit
//     of its own, except for kubectl, which comes as it is. 16 requests are in flight
//     for kubesync (its default), bare SSA and fluxcd/pkg/ssa alike.
//   - "Bare SSA" is the floor: one server-side apply PATCH an object, 16 in flight,
//     Namespaces first. It knows nothing, checks nothing and remembers nothing.
//     kubesync sends the same objects with a label, and what it keeps on them.
//   - Requests are counted in the API server's audit log, by user, and in the log
//     of the git server.
//   - Memory is VmRSS or, where it says peak, VmHWM of /proc/PID/status. The latter
//     is read every few milliseconds of processes that end by themselves, CPU time
//     from /proc/PID/stat.
//   - The git server is git http-backend, as in the tests. Its work counts for
//     kubesync and for git clone alike.
//
// Rows whose set is of mixed kinds run with kube-controller-manager, which makes
// ReplicaSets and Pods of the Deployments while the objects come; that is what a
// cluster does. Those of ConfigMaps alone run without.
//
// # How it is made
//
// main.go runs the benchmarks that benchmarks.go lists; each is a function that
// measures and returns lines of the table. They stand in files of their own:
// first.go, steady.go, commit.go, restart.go, drift.go, clone.go, poll.go and
// many.go. What they share is the lab (lab.go): clusters, a git server, the
// program, and a temporary directory that goes with it. Inputs are generated
// (objects.go, repos.go) from a seed and a size and nothing else.
//
// This is a module of its own, so that what the bench compares kubesync with never
// meets what kubesync is built from.
package main
