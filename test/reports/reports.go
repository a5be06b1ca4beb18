// Package reports makes reports of syncs for tests of what observes them.
package reports

import (
	"errors"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/transform"
)

// Revisions to report.
const (
	First  = "1111111111111111111111111111111111111111"
	Second = "2222222222222222222222222222222222222222"
)

// At returns a report of a sync that began at a minute and took two seconds.
func At(minute int, commit string, change func(*sync.Report)) sync.Report {
	started := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	r := sync.Report{
		Repo: "shop", URL: "https://git.example/shop", Tier: manifest.Application,
		Revision: repo.Revision{ID: commit, Ref: "refs/heads/master", Subject: "Sell more"},
		Source:   transform.Source{Kind: "YMLDIR", Dir: "deploy"},
		Stages:   []sync.StageTime{{Stage: sync.Resolving, Duration: 20 * time.Millisecond}, {Stage: sync.Applying, Duration: 1980 * time.Millisecond}},
		Started:  started, Finished: started.Add(2 * time.Second), Next: started.Add(5 * time.Minute),
	}
	if change != nil {
		change(&r)
	}
	return r
}

// Did has a report say what became of objects.
func Did(outcomes ...apply.Outcome) func(*sync.Report) {
	return func(r *sync.Report) { r.Result.Outcomes = outcomes }
}

// Outcome returns an outcome about a ConfigMap.
func Outcome(action apply.Action, name string) apply.Outcome {
	o := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name}, Action: action}
	switch action {
	case apply.Failed, apply.Refused:
		o.Err = errors.New("the API server said no")
	case apply.Pending, apply.Blocked:
		o.Reason = "it waits"
	}
	return o
}
