package sync

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
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/test/golden"
	"github.com/kubesync/kubesync/transform"
)

// report returns a report of a sync that began at a minute and took two seconds.
func report(minute int, commit string, change func(*Report)) Report {
	started := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	r := Report{
		Repo: "shop", URL: "https://git.example/shop", Tier: apply.Application,
		Revision: repo.Revision{ID: commit, Ref: "refs/heads/master", Subject: "Sell more"},
		Source:   transform.Source{Kind: "YMLDIR", Dir: "deploy"},
		Stages:   []StageTime{{Resolving, 20 * time.Millisecond}, {Applying, 1980 * time.Millisecond}},
		Started:  started, Finished: started.Add(2 * time.Second), Next: started.Add(5 * time.Minute),
	}
	if change != nil {
		change(&r)
	}
	return r
}

func did(outcomes ...apply.Outcome) func(*Report) {
	return func(r *Report) { r.Result.Outcomes = outcomes }
}

func failed(stage Stage, text string) func(*Report) {
	return func(r *Report) {
		r.FailedStage, r.Err, r.Failures = stage, errors.New(text), 1
		r.Next = r.Finished.Add(5 * time.Second)
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	unchanged := did(outcome(apply.Unchanged, "a"))
	many := []apply.Outcome{}
	for i := range 13 {
		many = append(many, outcome(apply.Failed, fmt.Sprintf("object-%d", i)))
	}
	warning := outcome(apply.Unchanged, "b")
	warning.Warnings = []string{"spec.x is deprecated"}
	stories := map[string][]Report{
		"changes.json": {
			report(0, firstCommit, did(outcome(apply.Created, "a"), outcome(apply.Created, "b"), outcome(apply.Unchanged, "c"))),
			report(5, firstCommit, unchanged),
			report(10, secondCommit, unchanged), // the revision is news
			report(15, secondCommit, unchanged),
			report(20, secondCommit, did(outcome(apply.Configured, "a"), outcome(apply.Pruned, "b"))),
		},
		"failures.json": {
			report(0, firstCommit, unchanged),
			report(5, firstCommit, failed(Transforming, "exit status 1")),
			report(5, firstCommit, failed(Transforming, "exit status 1")),  // not again yet
			report(7, firstCommit, failed(Transforming, "exit status 1")),  // after a minute
			report(8, firstCommit, failed(Transforming, "exit status 1")),  // not again yet
			report(10, firstCommit, failed(Transforming, "exit status 1")), // after two minutes
			report(11, firstCommit, failed(Transforming, "exit status 2")), // something else
			report(12, firstCommit, unchanged),
		},
		"objects.json": {
			report(0, firstCommit, did(outcome(apply.Failed, "a"), outcome(apply.Refused, "b"), outcome(apply.Parked, "c"), outcome(apply.Unchanged, "d"))),
			report(1, firstCommit, did(outcome(apply.Parked, "c"))),
			report(2, firstCommit, did(many...)),
			report(3, firstCommit, func(r *Report) {
				r.Result = resultOf(outcome(apply.Blocked, "old"))
				r.Result.PruneHeld = "1 object left git: approve"
			}),
			report(4, firstCommit, func(r *Report) { r.Result.Suspended = "by an annotation" }),
			report(5, firstCommit, func(r *Report) { r.Interrupted, r.Err, r.FailedStage = true, errors.New("stopping"), Applying }),
		},
		"warnings.json": {
			report(0, firstCommit, func(r *Report) {
				r.Notes = []string{"CMD build.sh does not exist"}
				r.Result = resultOf(warning)
				r.Result.Warnings = []string{"compose.yaml is no Kubernetes object"}
			}),
			report(5, firstCommit, func(r *Report) { r.Notes = []string{"CMD build.sh does not exist"}; r.Result = resultOf(warning) }),
			report(10, secondCommit, func(r *Report) { r.Notes = []string{"CMD build.sh does not exist"} }),
		},
	}
	for name, reports := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			observer := NewLog(zerolog.New(&lines).Level(zerolog.InfoLevel), false)
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
	observer := NewLog(zerolog.New(&lines).Level(zerolog.InfoLevel), true)
	for minute := range 3 {
		observer.Observe(report(minute, firstCommit, did(outcome(apply.Created, "a"))))
	}
	if got := strings.Count(lines.String(), "\n"); got != 1 || !strings.Contains(lines.String(), "planned") {
		t.Errorf("want one line that says planned, got:\n%s", lines.String())
	}
}

func TestLogHeartbeatAndEnd(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	observer := NewLog(zerolog.New(&lines), false)
	observer.Observe(report(0, firstCommit, nil))
	other := report(0, firstCommit, failed(Resolving, "no route"))
	other.Repo = "other"
	observer.Observe(other)
	lines.Reset()
	observer.beat()
	observer.Abandon("other")
	observer.beat()
	golden.Check(t, filepath.Join("testdata", "heartbeat.json"), lines.String())
}

func TestLogTellsWhereAPanicHappenedAtDebugLevelOnly(t *testing.T) {
	t.Parallel()
	for level, want := range map[zerolog.Level]bool{zerolog.InfoLevel: false, zerolog.DebugLevel: true} {
		var lines bytes.Buffer
		NewLog(zerolog.New(&lines).Level(level), false).Observe(report(0, firstCommit, func(r *Report) {
			r.FailedStage, r.Err = Planning, &PanicError{Value: "index out of range", Stack: []byte("goroutine 7")}
		}))
		if got := strings.Contains(lines.String(), "goroutine 7"); got != want {
			t.Errorf("level %s tells the stack: %v, want %v", level, got, want)
		}
		if !strings.Contains(lines.String(), "index out of range") {
			t.Errorf("the panic's value is missing in %s", lines.String())
		}
	}
}

func TestEchoIsSaidEverMoreRarely(t *testing.T) {
	t.Parallel()
	var said []time.Duration
	var e echo
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for passed := time.Duration(0); passed < 5*time.Hour; passed += time.Second {
		if e.again("the same", start.Add(passed)) {
			said = append(said, passed)
		}
	}
	minutes := []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243}
	if len(said) != len(minutes) {
		t.Fatalf("said %d times: %v", len(said), said)
	}
	for i, want := range minutes {
		if said[i] != time.Duration(want)*time.Minute {
			t.Errorf("said after %s, want %d minutes", said[i], want)
		}
	}
}
