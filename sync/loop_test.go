package sync

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

func TestStagesAreToldAsTheyBegin(t *testing.T) {
	t.Parallel()
	observer := &recorder{}
	newLoop((&stages{}).repo("shop", manifest.Application), observer, quiet()).sync(t.Context())
	var reported []Stage
	for _, progress := range observer.begun {
		reported = append(reported, progress.Stage)
		want := firstCommit
		if progress.Stage == Opening || progress.Stage == Resolving {
			want = "" // no one knows yet
		}
		if progress.Repo != "shop" || progress.Revision.ID != want || progress.Began.IsZero() {
			t.Errorf("%s is reported as %+v, want repo shop, revision %q and a time", progress.Stage, progress, want)
		}
	}
	if want := []Stage{Opening, Resolving, Reading, Transforming, Planning, Applying}; !slices.Equal(reported, want) {
		t.Errorf("reported %v, want %v", reported, want)
	}
}

func TestAFailedStageEndsTheSync(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		stages *stages
		stage  Stage
		ran    []Stage
	}{
		"resolve": {
			&stages{resolve: func(context.Context) (repo.Revision, error) { return repo.Revision{}, broken }},
			Resolving, []Stage{Resolving},
		},
		"files": {
			&stages{files: func() (fs.FS, error) { return nil, broken }},
			Reading, []Stage{Resolving, Reading},
		},
		"transform": {
			&stages{transform: func(context.Context, transform.Input) (transform.Result, error) { return transform.Result{}, broken }},
			Transforming, []Stage{Resolving, Reading, Transforming},
		},
		"plan": {
			&stages{plan: func(context.Context) (apply.Plan, error) { return apply.Plan{}, broken }},
			Planning, []Stage{Resolving, Reading, Transforming, Planning},
		},
		"apply": {
			&stages{apply: func(context.Context) (apply.Result, error) { return apply.Result{}, broken }},
			Applying, []Stage{Resolving, Reading, Transforming, Planning, Applying},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := newLoop(test.stages.repo("shop", manifest.Application), &recorder{}, quiet()).sync(t.Context())
			if !slices.Equal(test.stages.ran, test.ran) {
				t.Errorf("ran %v, want %v", test.stages.ran, test.ran)
			}
			if report.State() != Failed || report.FailedStage != test.stage || !errors.Is(report.Problem(), broken) {
				t.Errorf("state %s, stage %s, problem %v; want a failed stage %s", report.State(), report.FailedStage, report.Problem(), test.stage)
			}
			if text := report.Problem().Error(); !strings.HasPrefix(text, "shop: "+string(test.stage)) {
				t.Errorf("problem %q does not start with repo and stage", text)
			}
		})
	}
}

func TestASyncHandsOnWhatTheParentRecords(t *testing.T) {
	t.Parallel()
	s := &stages{}
	report := newLoop(s.repo("shop", manifest.Application), &recorder{}, quiet()).sync(t.Context())
	want := apply.Provenance{Revision: repo.Revision{ID: firstCommit, Ref: "refs/heads/master", Subject: "First"}, URL: "https://git.example/shop", Source: "root", Dir: ".", Polled: report.Started}
	if s.revision.Descends == nil {
		t.Error("planned without a way to ask for ancestors")
	}
	s.revision.Descends = nil
	if !reflect.DeepEqual(s.revision, want) {
		t.Errorf("planned %+v, want %+v", s.revision, want)
	}
	if report.State() != Synced || report.Failures != 0 || len(report.Stages) != 6 {
		t.Errorf("state %s after %d failures with stages %v", report.State(), report.Failures, report.Stages)
	}
}

func TestARepoThatFailsIsTriedAgainWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen := &recorder{}
		loop := newLoop((&stages{resolve: failingResolve("no route")}).repo("shop", manifest.System), seen, quiet())
		go loop.Run(ctx)
		time.Sleep(30 * time.Minute)
		cancel()
		synctest.Wait()

		reports := seen.of("shop")
		for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
			want *= time.Second
			got := reports[i+1].Started.Sub(reports[i].Finished)
			if got < want*9/10 || got > want*11/10 {
				t.Errorf("try %d came after %s, want %s give or take a tenth", i+2, got, want)
			}
			if due := reports[i].Next.Sub(reports[i].Finished); due != got {
				t.Errorf("report %d announced the next try in %s, it came in %s", i+1, due, got)
			}
			if reports[i].Failures != i+1 {
				t.Errorf("report %d counts %d failures", i+1, reports[i].Failures)
			}
		}
	})
}

func TestARepoInSyncIsLookedAtEveryInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen := &recorder{}
		loop := newLoop((&stages{}).repo("shop", manifest.System), seen, quiet())
		go loop.Run(ctx)
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		reports := seen.of("shop")
		waits := map[time.Duration]bool{}
		for i := range len(reports) - 1 {
			wait := reports[i+1].Started.Sub(reports[i].Finished)
			if waits[wait] = true; wait < 270*time.Second || wait > 330*time.Second {
				t.Errorf("waited %s, want 5m give or take a tenth", wait)
			}
		}
		if len(waits) < 2 {
			t.Errorf("all waits are equal: %v", waits)
		}
	})
}

func TestANewRevisionStartsTheBackoffAnew(t *testing.T) {
	t.Parallel()
	s := &stages{plan: func(context.Context) (apply.Plan, error) { return apply.Plan{}, errors.New("not YAML") }}
	loop := newLoop(s.repo("shop", manifest.System), &recorder{}, quiet())
	for want := 1; want <= 3; want++ {
		if got := loop.sync(t.Context()).Failures; got != want {
			t.Fatalf("%d failures, want %d", got, want)
		}
	}
	s.resolve = func(context.Context) (repo.Revision, error) { return repo.Revision{ID: secondCommit}, nil }
	if got := loop.sync(t.Context()).Failures; got != 1 {
		t.Errorf("%d failures after the first try of a new revision, want 1", got)
	}
}

func TestATriggerSyncsAtOnceAndOneIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen := &recorder{}
		s := &stages{resolve: func(context.Context) (repo.Revision, error) {
			time.Sleep(time.Second)
			return repo.Revision{ID: firstCommit}, nil
		}}
		loop := newLoop(s.repo("shop", manifest.System), seen, quiet())
		go loop.Run(ctx)
		time.Sleep(500 * time.Millisecond) // in the middle of the first sync
		loop.Trigger()
		loop.Trigger()
		time.Sleep(10 * time.Second)
		if got := len(seen.of("shop")); got != 2 {
			t.Errorf("%d syncs, want one more for both triggers", got)
		}
		loop.Trigger()
		time.Sleep(2 * time.Second)
		if got := len(seen.of("shop")); got != 3 {
			t.Errorf("%d syncs, want one at once for the trigger", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestAPanicFailsTheSyncAndThePipelineIsBuiltAnew(t *testing.T) {
	t.Parallel()
	s := &stages{}
	s.plan = func(context.Context) (apply.Plan, error) { panic("a nil map, say") }
	loop := newLoop(s.repo("shop", manifest.System), &recorder{}, quiet())
	report := loop.sync(t.Context())
	var panicked *PanicError
	if !errors.As(report.Err, &panicked) || report.FailedStage != Planning || !strings.Contains(string(panicked.Stack), "loop_test.go") {
		t.Fatalf("stage %s, error %v; want a panic while planning, with its stack", report.FailedStage, report.Err)
	}
	if s.count(Applying) != 0 {
		t.Error("something was applied after the panic")
	}
	s.plan = nil
	if report = loop.sync(t.Context()); report.State() != Synced {
		t.Errorf("the next sync is %s: %v", report.State(), report.Err)
	}
	if s.opened != 2 || s.closed != 1 {
		t.Errorf("the pipeline was opened %d times and closed %d times, want 2 and 1", s.opened, s.closed)
	}
}

func TestACancelledSyncIsInterruptedNotFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		seen := &recorder{}
		s := &stages{resolve: blockingResolve()}
		done := make(chan struct{})
		go func() {
			defer close(done)
			newLoop(s.repo("shop", manifest.System), seen, quiet()).Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-done
		reports := seen.of("shop")
		if len(reports) != 1 || reports[0].State() != Interrupted || reports[0].Failures != 0 {
			t.Errorf("reports %+v, want one that was interrupted", reports)
		}
		if s.closed != 1 {
			t.Error("the pipeline was not closed")
		}
	})
}

func TestTheTransformLearnsThatTheLastSyncFailed(t *testing.T) {
	t.Parallel()
	var reruns []bool
	down := errors.New("down")
	gitErr, applyErr := error(nil), down
	s := &stages{
		resolve: func(context.Context) (repo.Revision, error) { return repo.Revision{ID: firstCommit}, gitErr },
		apply:   func(context.Context) (apply.Result, error) { return apply.Result{}, applyErr },
	}
	s.transform = func(_ context.Context, in transform.Input) (transform.Result, error) {
		reruns = append(reruns, in.Rerun)
		return transform.Result{Files: in.Files}, nil
	}
	loop := newLoop(s.repo("shop", manifest.System), &recorder{}, quiet())
	loop.sync(t.Context()) // fails in the cluster
	applyErr = nil
	loop.sync(t.Context())
	loop.sync(t.Context())
	gitErr = down
	loop.sync(t.Context()) // fails before the transform
	gitErr = nil
	loop.sync(t.Context())
	loop.sync(t.Context())
	if want := []bool{false, true, false, true, false}; !slices.Equal(reruns, want) {
		t.Errorf("Rerun was %v, want %v", reruns, want)
	}
}

func TestWhatTheTransformSaysOnceIsKeptForItsRevision(t *testing.T) {
	t.Parallel()
	revision, gitErr := repo.Revision{ID: firstCommit}, error(nil)
	var fresh []string
	s := &stages{resolve: func(context.Context) (repo.Revision, error) { return revision, gitErr }}
	s.transform = func(_ context.Context, in transform.Input) (transform.Result, error) {
		return transform.Result{Files: in.Files, Notes: fresh}, nil
	}
	loop := newLoop(s.repo("shop", manifest.System), &recorder{}, quiet())
	check := func(when string, want ...string) {
		t.Helper()
		if got := loop.sync(t.Context()).Notes; !slices.Equal(got, want) {
			t.Errorf("%s: notes %q, want %q", when, got, want)
		}
	}
	fresh = []string{"once"}
	check("first", "once")
	fresh = nil
	check("again", "once")
	revision, gitErr = repo.Revision{}, errors.New("down")
	check("without a revision")
	revision, gitErr = repo.Revision{ID: firstCommit}, nil
	check("after a failure", "once")
	fresh = []string{"another"}
	check("with more to say", "once", "another")
	revision.ID = secondCommit
	check("of the next revision", "another")
}

// TestAStandingSyncEndsThere has nothing read, transformed or planned where nothing has
// happened since the last sync; a CMD may make something else of the same revision.
func TestAStandingSyncEndsThere(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind string
		want []Stage
	}{
		"files": {transform.KindRoot, []Stage{Resolving}},
		"CMD":   {transform.KindCommand, []Stage{Resolving, Reading, Transforming, Planning, Applying}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stages{transform: func(_ context.Context, in transform.Input) (transform.Result, error) {
				return transform.Result{Files: in.Files, Source: transform.Source{Kind: test.kind}}, nil
			}}
			loop := newLoop(s.repo("shop", manifest.System), &recorder{}, quiet())
			loop.sync(t.Context())
			s.standing, s.ran = true, nil
			report := loop.sync(t.Context())
			if !slices.Equal(s.ran, test.want) || report.State() != Synced || report.Source.Kind != test.kind || report.Revision.ID != firstCommit {
				t.Errorf("ran %v, want %v: %+v", s.ran, test.want, report)
			}
		})
	}
}
