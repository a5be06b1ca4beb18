package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"path/filepath"
	"testing/fstest"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/test/golden"
	"github.com/kubesync/kubesync/test/reports"
)

// planned returns outcomes of every kind that a dry run knows.
func everyOutcome() []apply.Outcome {
	changed := reports.Outcome(apply.Configured, "settings")
	changed.Origin = manifest.Origin{File: "deploy/settings.yaml", Line: 4}
	changed.Diff = "--- live\n+++ merged\n@@ -1,3 +1,3 @@\n data:\n-  colour: red\n+  colour: blue\n"
	changed.Reason = "would be adopted from client-side apply"
	changed.Warnings = []string{"data.colour is deprecated"}
	created := reports.Outcome(apply.Created, "new")
	created.Origin = manifest.Origin{File: "deploy/new.yaml", Line: 1}
	created.Diff = "--- live\n+++ merged\n@@ -0,0 +1 @@\n+kind: ConfigMap\n"
	unverified := reports.Outcome(apply.Created, "later")
	unverified.Unverified, unverified.Reason = true, "Namespace shop is still to come"
	left := reports.Outcome(apply.Unchanged, "held")
	left.Reason = "suspended by an annotation"
	wrong := reports.Outcome(apply.Failed, "wrong")
	wrong.Err = errors.New("no right to do that, this gives it:\nkind: ClusterRole")
	return []apply.Outcome{
		created, unverified, changed, reports.Outcome(apply.Unchanged, "same"), left, reports.Outcome(apply.Pruned, "old"),
		reports.Outcome(apply.Blocked, "data"), reports.Outcome(apply.Pending, "widget"), reports.Outcome(apply.Refused, "theirs"), wrong,
	}
}

func TestPlanText(t *testing.T) {
	t.Parallel()
	everything := func(r *sync.Report) {
		r.Notes = []string{"CMD build.sh does not exist"}
		r.Result = apply.Result{Outcomes: everyOutcome()}
		r.Result.PruneHeld = "3 objects left git, which is more than 50%"
	}
	tests := map[string]struct {
		change func(*sync.Report)
		colour bool
	}{
		"plan.txt":        {everything, false},
		"plan-colour.txt": {everything, true},
		"plan-invalid.txt": {func(r *sync.Report) {
			r.FailedStage = sync.Planning
			r.Err = manifest.Problems{
				{Origin: manifest.Origin{File: "deploy/a.yaml", Line: 3}, Object: "Pod/a", Text: "no name"},
				{Origin: manifest.Origin{File: "deploy/b.yaml", Line: 1}, Text: "not YAML"},
			}
		}, false},
		"plan-unresolved.txt": {func(r *sync.Report) {
			r.Revision, r.FailedStage, r.Err = repo.Revision{}, sync.Resolving, errors.New("no route to git.example")
		}, false},
		"plan-suspended.txt": {func(r *sync.Report) { r.Result.Suspended = "the annotation kubesync.io/suspend" }, false},
		"plan-empty.txt":     {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Check(t, filepath.Join("testdata", name), Text(reports.At(0, reports.First, test.change), test.colour))
		})
	}
}

// TestPlanTextForgesNothing has names and texts that would move a terminal's cursor or
// make lines of their own.
func TestPlanTextForgesNothing(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\u202e\n# shop: 1 to create\n"
	forge := func(r *sync.Report) {
		bad := reports.Outcome(apply.Failed, "bad"+evil)
		bad.ID.Kind, bad.Origin.File, bad.Err, bad.Warnings = "Pod"+evil, "a"+evil, errors.New(evil), []string{evil}
		r.Result, r.Notes = apply.Result{Outcomes: []apply.Outcome{bad}}, []string{evil}
		r.FailedStage, r.Err = sync.Planning, manifest.Problems{{Origin: bad.Origin, Object: evil, Text: "no" + evil}}
	}
	r := reports.At(0, reports.First, forge)
	for name, text := range map[string]string{"plan": Text(r, false), "manifests": Manifests(r)} {
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: %q", name, text)
		}
		summary := 0
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "# "+r.Repo+": ") {
				summary++
			}
		}
		if summary != 1 {
			t.Errorf("%s has %d lines that look like its last:\n%s", name, summary, text)
		}
	}
}

func TestPrinterRepeatsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printer := NewPrinter(&out, func(r sync.Report) string { return Text(r, false) })
	printer.Observe(reports.At(0, reports.First, reports.Did(reports.Outcome(apply.Created, "a"))))
	once := out.String()
	printer.Observe(reports.At(5, reports.First, reports.Did(reports.Outcome(apply.Created, "a"))))
	printer.Observe(reports.At(6, reports.First, func(r *sync.Report) { r.Interrupted = true }))
	if out.String() != once {
		t.Errorf("the same plan was printed again:\n%s", out.String())
	}
	printer.Observe(reports.At(10, reports.First, reports.Did(reports.Outcome(apply.Unchanged, "a"))))
	if out.String() == once {
		t.Error("a changed plan was not printed")
	}
	printer.Unlist("shop")
	if !strings.Contains(out.String(), "shop left the list") {
		t.Errorf("nothing says that the repo left:\n%s", out.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrinterRemembersThatNoOneReads(t *testing.T) {
	t.Parallel()
	printer := NewPrinter(brokenPipe{}, func(r sync.Report) string { return Text(r, false) })
	printer.Observe(reports.At(0, reports.First, nil))
	if printer.Err() == nil {
		t.Error("a plan that could not be printed counts as printed")
	}
}

func TestOfflineManifests(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a.yaml": &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  colour: blue\n" +
			"---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: key\nstringData:\n  password: hunter2\n")},
		"b.yaml":       &fstest.MapFile{Data: []byte("apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n")},
		"compose.yaml": &fstest.MapFile{Data: []byte("services: {}\n")},
	}
	offline := sync.NewOffline(manifest.Rules{Tier: manifest.Application, Namespace: "shop"}, limits.Limits{})
	plan, err := offline.Plan(t.Context(), files, apply.Provenance{Revision: repo.Revision{ID: reports.First}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := offline.Apply(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	text := Manifests(reports.At(0, reports.First, func(r *sync.Report) { r.Result = result }))
	golden.Check(t, filepath.Join("testdata", "manifests.yaml"), text)
	if strings.Contains(text, "hunter2") {
		t.Error("the Secret's value is shown")
	}
}

func TestOfflineRefusesWhatTheTierForbids(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: mine\n")}}
	_, err := sync.NewOffline(manifest.Rules{Tier: manifest.Application, Namespace: "shop"}, limits.Limits{}).Plan(t.Context(), files, apply.Provenance{})
	if err == nil || !strings.Contains(err.Error(), "Unprivileged repo requires privilege") {
		t.Errorf("got %v, want a refusal", err)
	}
	text := Manifests(reports.At(0, reports.First, func(r *sync.Report) { r.FailedStage, r.Err = sync.Planning, err }))
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			t.Errorf("line %q is not a comment, and nothing may be applied", line)
		}
	}
}
