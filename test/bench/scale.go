package main

import (
	"fmt"
	"time"
)

// scale is how much of everything a run has to do.
type scale struct {
	name   string
	rounds int // of what is compared, at mixed objects
	mixed  int // objects of several kinds

	configs      int // ConfigMaps
	configRounds int

	fewConfigs int // the smaller of the two sets that commits are made to
	commits    int

	window time.Duration // of watching a daemon that has nothing to do
	poll   time.Duration // its interval
	idle   time.Duration // of watching it for what it costs

	drifted     int // objects, at once
	driftRounds int
	patience    time.Duration // for drift to be healed

	repoFiles  int // of the large repo
	fileBytes  int
	manifests  int // of these files
	moreFiles  int // how many times as many files there are in the largest one
	cloneRound int

	fewRefs, manyRefs int
	repos             int // of one daemon
	amongRepos        int // of one daemon, beside the ConfigMaps of others
}

// scaleNamed returns full, which is what the targets are for, or small, which is
// for working on the bench.
func scaleNamed(name string) (scale, error) {
	switch name {
	case "full":
		return scale{
			name: name, rounds: 5, mixed: 1000,
			configs: 10_000, configRounds: 3,
			fewConfigs: 1000, commits: 7,
			window: 30 * time.Second, poll: 3 * time.Second, idle: 5 * time.Minute,
			drifted: 100, driftRounds: 3, patience: time.Minute,
			repoFiles: 20_000, fileBytes: 5 << 10, manifests: 200, moreFiles: 10, cloneRound: 3,
			fewRefs: 10, manyRefs: 10_000, repos: 100, amongRepos: 500,
		}, nil
	case "small":
		return scale{
			name: name, rounds: 1, mixed: 100,
			configs: 500, configRounds: 1,
			fewConfigs: 100, commits: 2,
			window: 4 * time.Second, poll: time.Second, idle: 8 * time.Second,
			drifted: 20, driftRounds: 1, patience: 5 * time.Second,
			repoFiles: 1000, fileBytes: 5 << 10, manifests: 50, moreFiles: 10, cloneRound: 1,
			fewRefs: 10, manyRefs: 500, repos: 10, amongRepos: 30,
		}, nil
	}
	return scale{}, fmt.Errorf("-size %s: want small or full", name)
}
