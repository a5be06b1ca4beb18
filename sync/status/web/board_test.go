package web_test

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/transform"
)

// cluster is what a board asks besides the syncs.
type cluster struct {
	blind    []inventory.Blind
	unlisted []apply.Unlisted
	health   map[manifest.ID]health.Health
}

func (c *cluster) Blind() []inventory.Blind                    { return c.blind }
func (c *cluster) Unlisted() []apply.Unlisted                  { return c.unlisted }
func (c *cluster) Health(string) map[manifest.ID]health.Health { return c.health }

// revision returns the nth revision.
func revision(n int, subject string) repo.Revision {
	return repo.Revision{
		ID: fmt.Sprintf("%x", sha1.Sum([]byte{byte(n)})), Ref: "refs/heads/main", Subject: subject, Author: "Ann Example <ann@shop.example>",
		Committed: time.Now().Add(-40 * time.Minute),
	}
}

// outcome returns what became of an object.
func outcome(action apply.Action, kind, name, reason string) apply.Outcome {
	o := apply.Outcome{ID: manifest.ID{Kind: kind, Namespace: "shop", Name: name}, Action: action, Reason: reason}
	switch kind {
	case "Deployment":
		o.ID.Group = "apps"
	case "Namespace":
		o.ID.Namespace = ""
	}
	if action != apply.Blocked && action != apply.Pruned {
		o.Origin = manifest.Origin{File: "kubernetes/" + name + ".yaml", Line: 1}
	}
	return o
}

// report returns a report of a sync that began so long ago and took two seconds.
func report(name string, tier manifest.Tier, ago time.Duration, at repo.Revision, outcomes ...apply.Outcome) sync.Report {
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
		unlisted: []apply.Unlisted{{Repo: "old", URL: "https://git.example.com/team/old.git", Revision: revision(9, "").ID,
			Delete: "kubectl annotate configmap --namespace kube-system kubesync-old kubesync.io/delete=old"}},
		health: map[manifest.ID]health.Health{
			shopFront.ID: {State: health.InProgress, Message: "Available: 1/3", Since: time.Now().Add(-time.Minute)},
			back.ID:      {State: health.Current, Since: time.Now().Add(-time.Hour)},
		},
	}
	b := status.NewBoard(status.Options{Version: "v1.2.3", Cluster: c, Health: c})
	b.Lead(true)
	b.List([]status.Listed{
		{Name: "cluster", URL: "https://git.example.com/team/cluster.git", Tier: manifest.System},
		{Name: "shop", URL: "https://git.example.com/team/shop.git", Tier: manifest.Application},
		{Name: "billing", URL: "https://git.example.com/team/billing.git", Tier: manifest.Application},
		{Name: "search", URL: "https://git.example.com/team/search.git", Tier: manifest.Application},
	}, nil)

	b.Observe(report("shop", manifest.Application, 2*time.Hour, revision(1, "Open the shop"), back, outcome(apply.Created, "Deployment", "front", "")))
	b.Observe(report("shop", manifest.Application, 10*time.Minute, revision(2, "Run three fronts"), shopFront, outcome(apply.Unchanged, "Deployment", "back", "")))
	b.Observe(report("shop", manifest.Application, 2*time.Minute, revision(2, "Run three fronts"), outcome(apply.Unchanged, "Deployment", "front", ""), outcome(apply.Unchanged, "Deployment", "back", "")))

	failed := outcome(apply.Failed, "Service", "dns", "")
	failed.Err = errors.New("spec.clusterIP: Invalid value: \"10.96.0.300\": must be a valid IP address")
	inConflict := outcome(apply.Unchanged, "ConfigMap", "limits", "")
	held := report("cluster", manifest.System, 3*time.Minute, revision(3, "Take the backups out <again>"),
		failed, inConflict, outcome(apply.Pending, "Certificate", "wild", "waits for the CRD of kind Certificate (cert-manager.io/v1), which is not served yet"),
		outcome(apply.Blocked, "CronJob", "backup", "pruning waits for approval"),
		outcome(apply.Unchanged, "Namespace", "shop", ""))
	held.Failures = 3
	held.Result.PruneHeld = "pruning 1 object waits for approval of revision " + held.Revision.ID + ": 1 object could not be applied; to approve it: "
	held.Result.Approve = "kubectl annotate configmap --namespace kube-system kubesync-cluster --overwrite kubesync.io/approve-prune=" + held.Revision.ID
	held.Result.PruneHeld += held.Result.Approve
	b.Observe(held)
	b.Drift(apply.Drift{Repo: "cluster", ID: inConflict.ID, What: "changed", Fields: []string{".data.cpu"}, Managers: []string{"vertical-autoscaler"}, Corrected: true, Conflict: true, Retry: 20 * time.Second})

	b.Observe(report("billing", manifest.Application, 20*time.Minute, revision(4, "Bill"), outcome(apply.Created, "ConfigMap", "rates", "")))
	broken := report("billing", manifest.Application, time.Minute, revision(5, "Bill twice"))
	broken.FailedStage, broken.Failures = sync.Planning, 2
	broken.Err = manifest.Problems{
		{Origin: manifest.Origin{File: "kubernetes/rates.yaml", Line: 4}, Object: "ConfigMap/rates", Text: `unknown field "dato"`},
		{Origin: manifest.Origin{File: "kubernetes/node.yaml", Line: 1}, Object: "Node/one", Text: "Unprivileged repo requires privilege: a cluster-scoped object", Refused: true},
	}
	b.Observe(broken)
	b.Begin(sync.Progress{Repo: "billing", Stage: sync.Transforming, Revision: broken.Revision, Began: time.Now().Add(-3 * time.Second)})
	return b, c
}
