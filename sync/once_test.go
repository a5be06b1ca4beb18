package sync

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
)

func TestOnceTakesSystemReposFirstAndTheRestAsListed(t *testing.T) {
	t.Parallel()
	seen := &recorder{}
	kept := 0
	repos := []Repo{
		(&stages{}).repo("b", manifest.Application), (&stages{}).repo("d", manifest.System),
		(&stages{}).repo("a", manifest.Application), (&stages{}).repo("c", manifest.System),
	}
	pass := Once(t.Context(), repos, OnceOptions{Observer: seen, Log: quiet(), Housekeeping: func(context.Context) error {
		kept++
		if got := seen.order(); !slices.Equal(got, []string{"d", "c"}) {
			t.Errorf("housekeeping came after %v, want it after the system repos", got)
		}
		return nil
	}})
	if got, want := seen.order(), []string{"d", "c", "b", "a"}; !pass.InSync || kept != 1 || !slices.Equal(got, want) {
		t.Errorf("in sync %v, kept %d times, order %v, want %v", pass.InSync, kept, got, want)
	}
}

// results returns an apply stage that comes to one result after the other, the
// last one for good.
func results(all ...apply.Result) func(context.Context) (apply.Result, error) {
	return func(context.Context) (apply.Result, error) {
		next := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return next, nil
	}
}

func resultOf(outcomes ...apply.Outcome) apply.Result { return apply.Result{Outcomes: outcomes} }

func TestOnceRetriesWhatIsLeftAsLongAsItHelps(t *testing.T) {
	t.Parallel()
	one, two := resultOf(outcome(apply.Pending, "a")), resultOf(outcome(apply.Pending, "a"), outcome(apply.Failed, "b"))
	tests := map[string]struct {
		repos  map[string]*stages
		dryRun bool
		ok     bool
		tries  map[string]int
	}{
		"all in sync": {
			repos: map[string]*stages{"a": {}, "b": {}},
			ok:    true, tries: map[string]int{"a": 1, "b": 1},
		},
		"pending, then there": {
			repos: map[string]*stages{"a": {apply: results(one, resultOf())}, "b": {}},
			ok:    true, tries: map[string]int{"a": 2, "b": 1},
		},
		"one object at a time": {
			repos: map[string]*stages{"a": {apply: results(two, one, resultOf())}, "b": {}},
			ok:    true, tries: map[string]int{"a": 3, "b": 1},
		},
		"pending for good": {
			repos: map[string]*stages{"a": {apply: results(one)}, "b": {}},
			ok:    false, tries: map[string]int{"a": 2, "b": 1},
		},
		"a failed repo is not tried again, the others go on": {
			repos: map[string]*stages{"a": {resolve: failingResolve("no route")}, "b": {apply: results(one, resultOf())}},
			ok:    false, tries: map[string]int{"a": 1, "b": 2},
		},
		"nothing changes between dry runs": {
			repos:  map[string]*stages{"a": {apply: results(one, resultOf())}, "b": {}},
			dryRun: true,
			ok:     false, tries: map[string]int{"a": 1, "b": 1},
		},
		"suspended is as it shall be": {
			repos: map[string]*stages{"a": {apply: results(apply.Result{Suspended: "by the configuration"})}, "b": {}},
			ok:    true, tries: map[string]int{"a": 1, "b": 1},
		},
		"a prune that waits for approval": {
			repos: map[string]*stages{"a": {apply: results(apply.Result{PruneHeld: "3 objects"})}, "b": {}},
			ok:    true, tries: map[string]int{"a": 1, "b": 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos := []Repo{test.repos["a"].repo("a", manifest.System), test.repos["b"].repo("b", manifest.System)}
			if pass := Once(t.Context(), repos, OnceOptions{Observer: &recorder{}, DryRun: test.dryRun, Log: quiet()}); pass.InSync != test.ok {
				t.Errorf("in sync: %v, want %v", pass.InSync, test.ok)
			}
			for repo, want := range test.tries {
				if got := test.repos[repo].count(Resolving); got != want {
					t.Errorf("%s was tried %d times, want %d", repo, got, want)
				}
			}
		})
	}
}

func TestOnceTellsOfChangesAndOfWhatWaits(t *testing.T) {
	t.Parallel()
	exempt := outcome(apply.Blocked, "kept")
	exempt.Exempt = true
	tests := map[string]struct {
		a, b apply.Result
		want Pass
	}{
		"nothing":           {resultOf(), resultOf(outcome(apply.Unchanged, "a")), Pass{InSync: true}},
		"kept for good":     {resultOf(exempt), resultOf(), Pass{InSync: true}},
		"one is created":    {resultOf(), resultOf(outcome(apply.Created, "a")), Pass{InSync: true, Changes: true}},
		"one is configured": {resultOf(outcome(apply.Configured, "a")), resultOf(), Pass{InSync: true, Changes: true}},
		"one is pruned":     {resultOf(), resultOf(outcome(apply.Pruned, "a")), Pass{InSync: true, Changes: true}},
		"three wait": {resultOf(outcome(apply.Blocked, "a"), exempt), resultOf(outcome(apply.Blocked, "a"), outcome(apply.Blocked, "b")),
			Pass{InSync: true, WaitingPrunes: 3}},
		"one fails": {resultOf(outcome(apply.Failed, "a")), resultOf(outcome(apply.Created, "a")), Pass{Changes: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := &stages{apply: results(test.a)}, &stages{apply: results(test.b)}
			repos := []Repo{a.repo("a", manifest.System), b.repo("b", manifest.System)}
			if got := Once(t.Context(), repos, OnceOptions{Observer: &recorder{}, DryRun: true, Log: quiet()}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestOnceCutShortIsNotInSync(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopping := &stages{apply: func(context.Context) (apply.Result, error) {
		cancel(errors.New("signal"))
		return apply.Result{}, nil
	}}
	next := &stages{}
	if Once(ctx, []Repo{stopping.repo("a", manifest.System), next.repo("b", manifest.System)}, OnceOptions{Observer: &recorder{}, Log: quiet()}).InSync {
		t.Error("a pass that was cut short calls itself in sync")
	}
	if next.count(Resolving) != 0 {
		t.Error("the next repo was begun")
	}
}

func TestOnceFailsWithItsHousekeeping(t *testing.T) {
	t.Parallel()
	app := &stages{}
	forbidden := func(context.Context) error { return errors.New("forbidden") }
	if Once(t.Context(), []Repo{app.repo("a", manifest.Application)}, OnceOptions{Observer: &recorder{}, Housekeeping: forbidden, Log: quiet()}).InSync {
		t.Error("in sync without its RoleBindings")
	}
	if app.count(Applying) != 1 {
		t.Error("the repo was not tried")
	}
}
