package log

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/test/golden"
	"github.com/kubesync/kubesync/test/reports"
)

func failed(stage sync.Stage, text string) func(*sync.Report) {
	return func(r *sync.Report) {
		r.FailedStage, r.Err, r.Failures = stage, errors.New(text), 1
		r.Next = r.Finished.Add(5 * time.Second)
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	unchanged := reports.Did(reports.Outcome(apply.Unchanged, "a"))
	many := []apply.Outcome{}
	for i := range 13 {
		many = append(many, reports.Outcome(apply.Failed, fmt.Sprintf("object-%d", i)))
	}
	warning := reports.Outcome(apply.Unchanged, "b")
	warning.Warnings = []string{"spec.x is deprecated"}
	stories := map[string][]sync.Report{
		"changes.json": {
			reports.At(0, reports.First, reports.Did(reports.Outcome(apply.Created, "a"), reports.Outcome(apply.Created, "b"), reports.Outcome(apply.Unchanged, "c"))),
			reports.At(5, reports.First, unchanged),
			reports.At(10, reports.Second, unchanged), // the revision is news
			reports.At(15, reports.Second, unchanged),
			reports.At(20, reports.Second, reports.Did(reports.Outcome(apply.Configured, "a"), reports.Outcome(apply.Pruned, "b"))),
		},
		"failures.json": {
			reports.At(0, reports.First, unchanged),
			reports.At(5, reports.First, failed(sync.Transforming, "exit status 1")),
			reports.At(5, reports.First, failed(sync.Transforming, "exit status 1")),  // not again yet
			reports.At(7, reports.First, failed(sync.Transforming, "exit status 1")),  // after a minute
			reports.At(8, reports.First, failed(sync.Transforming, "exit status 1")),  // not again yet
			reports.At(10, reports.First, failed(sync.Transforming, "exit status 1")), // after two minutes
			reports.At(11, reports.First, failed(sync.Transforming, "exit status 2")), // something else
			reports.At(12, reports.First, unchanged),
		},
		"objects.json": {
			reports.At(0, reports.First, reports.Did(reports.Outcome(apply.Failed, "a"), reports.Outcome(apply.Refused, "b"), reports.Outcome(apply.Pending, "c"), reports.Outcome(apply.Unchanged, "d"))),
			reports.At(1, reports.First, reports.Did(reports.Outcome(apply.Pending, "c"))),
			reports.At(2, reports.First, reports.Did(many...)),
			reports.At(3, reports.First, func(r *sync.Report) {
				r.Result = apply.Result{Outcomes: []apply.Outcome{reports.Outcome(apply.Blocked, "old")}}
				r.Result.PruneHeld = "1 object left git: approve"
			}),
			reports.At(4, reports.First, func(r *sync.Report) { r.Result.Suspended = "by an annotation" }),
			reports.At(5, reports.First, func(r *sync.Report) {
				r.Interrupted, r.Err, r.FailedStage = true, errors.New("stopping"), sync.Applying
			}),
		},
		"warnings.json": {
			reports.At(0, reports.First, func(r *sync.Report) {
				r.Notes = []string{"CMD build.sh does not exist"}
				r.Result = apply.Result{Outcomes: []apply.Outcome{warning}}
				r.Result.Warnings = []string{"compose.yaml is no Kubernetes object"}
			}),
			reports.At(5, reports.First, func(r *sync.Report) {
				r.Notes = []string{"CMD build.sh does not exist"}
				r.Result = apply.Result{Outcomes: []apply.Outcome{warning}}
			}),
			reports.At(10, reports.Second, func(r *sync.Report) { r.Notes = []string{"CMD build.sh does not exist"} }),
		},
	}
	for name, reports := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			observer := New(zerolog.New(&lines).Level(zerolog.InfoLevel), false)
			for _, r := range reports {
				fmt.Fprintf(&lines, "-- minute %d\n", r.Started.Minute())
				observer.Observe(r)
			}
			golden.Check(t, filepath.Join("testdata", name), lines.String())
		})
	}
}

func TestLogOfADryRunRepeatsNoPlan(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	observer := New(zerolog.New(&lines).Level(zerolog.InfoLevel), true)
	for minute := range 3 {
		observer.Observe(reports.At(minute, reports.First, reports.Did(reports.Outcome(apply.Created, "a"))))
	}
	if got := strings.Count(lines.String(), "\n"); got != 1 || !strings.Contains(lines.String(), "planned") {
		t.Errorf("want one line that says planned, got:\n%s", lines.String())
	}
}

func TestLogNamesWhatCannotBeJudged(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	object := apply.NotReady{ID: manifest.ID{Kind: "Thing", Namespace: "shop", Name: "odd"}, Health: health.Health{State: health.Unknown, Message: "its status cannot be read"}}
	New(zerolog.New(&lines), false).Unreadable(sync.Unreadable{Repo: "shop", Revision: reports.At(0, reports.First, nil).Revision, Object: object})
	for _, want := range []string{`"level":"warn"`, `"repo":"shop"`, `"object":"Thing/shop/odd"`, `"health":"its status cannot be read"`, `"message":"health unknown, waiting for it all the same"`} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("the line lacks %s: %s", want, lines.String())
		}
	}
}

func TestLogHeartbeatAndEnd(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	observer := New(zerolog.New(&lines), false)
	observer.Observe(reports.At(0, reports.First, nil))
	other := reports.At(0, reports.First, failed(sync.Resolving, "no route"))
	other.Repo = "other"
	observer.Observe(other)
	lines.Reset()
	observer.beat()
	observer.Unlist("other")
	observer.beat()
	golden.Check(t, filepath.Join("testdata", "heartbeat.json"), lines.String())
}

func TestLogTellsWhereAPanicHappenedAtDebugLevelOnly(t *testing.T) {
	t.Parallel()
	for level, want := range map[zerolog.Level]bool{zerolog.InfoLevel: false, zerolog.DebugLevel: true} {
		var lines bytes.Buffer
		New(zerolog.New(&lines).Level(level), false).Observe(reports.At(0, reports.First, func(r *sync.Report) {
			r.FailedStage, r.Err = sync.Planning, &sync.PanicError{Value: "index out of range", Stack: []byte("goroutine 7")}
		}))
		if got := strings.Contains(lines.String(), "goroutine 7"); got != want {
			t.Errorf("level %s logs the stack: %v, want %v", level, got, want)
		}
		if !strings.Contains(lines.String(), "index out of range") {
			t.Errorf("the panic's value is missing in %s", lines.String())
		}
	}
}
