package web_test

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/transform"
)

// cluster is what a board asks besides the syncs.
type cluster struct {
	blind     []apply.Blind
	abandoned []apply.Abandoned
	health    map[apply.ID]apply.Health
}

func (c *cluster) Blind() []apply.Blind                    { return c.blind }
func (c *cluster) Abandoned() []apply.Abandoned            { return c.abandoned }
func (c *cluster) Health(string) map[apply.ID]apply.Health { return c.health }

// revision returns the nth revision.
func revision(n int, subject string) repo.Revision {
	return repo.Revision{
		ID: fmt.Sprintf("%x", sha1.Sum([]byte{byte(n)})), Ref: "refs/heads/main", Subject: subject, Author: "Ann Example <ann@shop.example>",
		Committed: time.Now().Add(-40 * time.Minute),
	}
}

// outcome returns what became of an object.
func outcome(action apply.Action, kind, name, reason string) apply.Outcome {
	o := apply.Outcome{ID: apply.ID{Kind: kind, Namespace: "shop", Name: name}, Action: action, Reason: reason}
	switch kind {
	case "Deployment":
		o.ID.Group = "apps"
	case "Namespace":
		o.ID.Namespace = ""
	}
	if action != apply.Blocked && action != apply.Pruned {
		o.Origin = apply.Origin{File: "kubernetes/" + name + ".yaml", Line: 1}
	}
	return o
}

// report returns a report of a sync that began so long ago and took two seconds.
func report(name string, tier apply.Tier, ago time.Duration, at repo.Revision, outcomes ...apply.Outcome) sync.Report {
	began := time.Now().Add(-ago)
	return sync.Report{
		Repo: name, URL: "https://git.example.com/team/" + name + ".git", Tier: tier, Revision: at,
		Source:  transform.Source{Kind: "kubernetes/", Dir: "kubernetes"},
		Stages:  []sync.StageTime{{Stage: sync.Resolving, Duration: 20 * time.Millisecond}, {Stage: sync.Applying, Duration: 1980 * time.Millisecond}},
		Result:  apply.Result{Outcomes: outcomes},
		Started: began, Finished: began.Add(2 * time.Second), Next: began.Add(5 * time.Minute),
	}
}

// example returns a board with a repo in each of the states that a person meets.
func example() (*status.Board, *cluster) {
	shopFront := outcome(apply.Configured, "Deployment", "front", "")
	shopFront.Diff = "--- live/Deployment/shop/front\n+++ merged/Deployment/shop/front\n@@ -1,3 +1,3 @@\n spec:\n-  replicas: 2\n+  replicas: 3\n   template:\n"
	back := outcome(apply.Created, "Deployment", "back", "")
	c := &cluster{
		abandoned: []apply.Abandoned{{Repo: "old", URL: "https://git.example.com/team/old.git", Revision: revision(9, "").ID,
			Delete: "kubectl annotate configmap --namespace kube-system kubesync-old kubesync.io/delete=old"}},
		health: map[apply.ID]apply.Health{
			shopFront.ID: {State: apply.InProgress, Message: "Waiting for rollout to finish: 1 of 3 updated replicas are available", Since: time.Now().Add(-time.Minute)},
			back.ID:      {State: apply.Current, Since: time.Now().Add(-time.Hour)},
		},
	}
	b := status.NewBoard(status.Options{Version: "v1.2.3", Cluster: c, Health: c})
	b.Lead(true)
	b.List([]status.Listed{
		{Name: "cluster", URL: "https://git.example.com/team/cluster.git", Tier: apply.System},
		{Name: "shop", URL: "https://git.example.com/team/shop.git", Tier: apply.Application},
		{Name: "billing", URL: "https://git.example.com/team/billing.git", Tier: apply.Application},
		{Name: "search", URL: "https://git.example.com/team/search.git", Tier: apply.Application},
	}, nil)

	b.Observe(report("shop", apply.Application, 2*time.Hour, revision(1, "Open the shop"), back, outcome(apply.Created, "Deployment", "front", "")))
	b.Observe(report("shop", apply.Application, 10*time.Minute, revision(2, "Run three fronts"), shopFront, outcome(apply.Unchanged, "Deployment", "back", "")))
	b.Observe(report("shop", apply.Application, 2*time.Minute, revision(2, "Run three fronts"), outcome(apply.Unchanged, "Deployment", "front", ""), outcome(apply.Unchanged, "Deployment", "back", "")))

	failed := outcome(apply.Failed, "Service", "dns", "")
	failed.Err = errors.New("spec.clusterIP: Invalid value: \"10.96.0.300\": must be a valid IP address")
	fought := outcome(apply.Unchanged, "ConfigMap", "limits", "")
	held := report("cluster", apply.System, 3*time.Minute, revision(3, "Take the backups out <again>"),
		failed, fought, outcome(apply.Parked, "Certificate", "wild", "waits for the CRD of kind Certificate (cert-manager.io/v1), which is not served yet"),
		outcome(apply.Blocked, "CronJob", "backup", "pruning waits for approval"),
		outcome(apply.Unchanged, "Namespace", "shop", ""))
	held.Failures = 3
	held.Result.PruneHeld = "pruning 1 object waits for approval of revision " + held.Revision.ID + ": 1 object could not be applied; to approve it: "
	held.Result.Approve = "kubectl annotate configmap --namespace kube-system kubesync-cluster --overwrite kubesync.io/approve-prune=" + held.Revision.ID
	held.Result.PruneHeld += held.Result.Approve
	b.Observe(held)
	b.Drift(apply.Drift{Repo: "cluster", ID: fought.ID, What: "changed", Fields: []string{".data.cpu"}, Managers: []string{"vertical-autoscaler"}, Corrected: true, Fight: true, Retry: 20 * time.Second})

	b.Observe(report("billing", apply.Application, 20*time.Minute, revision(4, "Bill"), outcome(apply.Created, "ConfigMap", "rates", "")))
	broken := report("billing", apply.Application, time.Minute, revision(5, "Bill twice"))
	broken.FailedStage, broken.Failures = sync.Planning, 2
	broken.Err = apply.Problems{
		{Origin: apply.Origin{File: "kubernetes/rates.yaml", Line: 4}, Object: "ConfigMap/rates", Text: `unknown field "dato"`},
		{Origin: apply.Origin{File: "kubernetes/node.yaml", Line: 1}, Object: "Node/one", Text: "Unprivileged repo requires privilege: a cluster-scoped object", Refused: true},
	}
	b.Observe(broken)
	b.Begin(sync.Progress{Repo: "billing", Stage: sync.Transforming, Revision: broken.Revision, Began: time.Now().Add(-3 * time.Second)})
	return b, c
}
