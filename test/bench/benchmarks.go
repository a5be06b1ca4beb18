package main

import "context"

// benchmark is something that is measured, on its own.
type benchmark struct {
	name     string // for -run
	measures string
	target   string
	run      func(context.Context, *lab) ([]line, error)
}

// benchmarks are all there are, in the order of the table.
func benchmarks() []benchmark {
	return []benchmark{
		{
			"first", "first sync of mixed objects into an empty cluster",
			"1,000 objects: at most 1.2 × bare SSA; at least 2 × faster than fluxcd/pkg/ssa, 10 × than kubectl apply --server-side",
			firstSync,
		},
		{
			"again", "a daemon whose repo stays at the same revision",
			"no request but watches, its Lease and one small git request a poll",
			sameRevision,
		},
		{
			"commit", "a commit that changes one file, of a small and of a large set",
			"at most 3 writes; from fetch to live equally fast at 1,000 and 10,000 objects, within 20 %; a poll a second without news at most 1 % of a core",
			oneFile,
		},
		{
			"restart", "a restart with nothing changed",
			"1,000 objects: nothing written; at most 0.5 × the time of re-applying all",
			restart,
		},
		{
			"configs", "first sync of ConfigMaps into an empty cluster",
			"10,000 ConfigMaps: at most 1.2 × bare SSA; at most 150 MB",
			manyConfigs,
		},
		{
			"drift", "objects that another writer changes or deletes, all at once",
			"100 of 10,000: 99 % healed within 1 s; no request for objects that did not drift",
			drift,
		},
		{
			"idle", "what a daemon costs that has nothing to do",
			"1,000 objects, 5 minutes: at most 50 MB, 0.2 % of a core; no request but watches, its Lease and git polls",
			idle,
		},
		{
			"clone", "manifests out of a repo that is mostly something else",
			"100 MB in 20,000 files, 200 of them manifests: at most 1.0 × a sparse partial clone, at least 20 × faster than a shallow clone, at most 40 MB; at most 1.5 × with 10 × the files",
			largeRepo,
		},
		{
			"poll", "polls of repos with few and with many refs, with nothing new",
			"the same bytes with 10 refs and with 10,000",
			polls,
		},
		{
			"many", "one daemon with many repos of ten objects",
			"100 repos: at most 120 MB; one watch a kind, not one a repo",
			manyRepos,
		},
		{
			"among", "one daemon with many repos of ten objects, among other apply sets' members",
			"500 repos beside 10,000 labelled ConfigMaps: at most 300 MB",
			amongOthers,
		},
	}
}
