package prune_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubesync/kubesync/apply/prune"
)

func TestStep(t *testing.T) {
	t.Parallel()
	const r1, r2, r3 = "1111111", "2222222", "3333333"
	next := prune.Step{Revision: r3, Mode: "branch:master", Applied: r2, AppliedBy: "branch:master", Pruned: r1}
	with := func(change func(*prune.Step)) prune.Step {
		step := next
		change(&step)
		return step
	}
	for name, test := range map[string]struct {
		step      prune.Step
		ancestors []string
		unproven  string // the revision that is no ancestor
		void      string
	}{
		"the next commit":        {next, []string{r2, r1}, "", ""},
		"all of the last pruned": {with(func(s *prune.Step) { s.Pruned = r2 }), []string{r2}, "", ""},
		"nothing pruned yet":     {with(func(s *prune.Step) { s.Pruned = "" }), []string{r2}, "", ""},
		"a fork":                 {next, []string{r2, r1}, r2, "no ancestor"},
		"a fork before the last": {next, []string{r2, r1}, r1, "no ancestor"},
		"used":                   {with(func(s *prune.Step) { s.UsedBefore = []string{r1, r3} }), nil, "", "it was used before"},
		"used in this very step": {with(func(s *prune.Step) { s.UsedBefore, s.Counted = []string{r3}, r3 }), nil, "", "it was used before"},
		"a rollback to what was pruned": {with(func(s *prune.Step) { s.Pruned = r3 }), nil, "",
			"all that this revision prunes was pruned before"},
		"pruned, although it counted": {with(func(s *prune.Step) { s.Pruned, s.Counted = r3, r3 }), nil, "",
			"all that this revision prunes was pruned before"},
		"applied before":   {with(func(s *prune.Step) { s.Applied = r3 }), nil, "", "this revision was applied before"},
		"the step goes on": {with(func(s *prune.Step) { s.Applied, s.Counted = r3, r3 }), nil, "", ""},
		"no parent":        {prune.Step{Revision: r3, Mode: "branch:master"}, nil, "", "which revision was applied before is not known"},
		"another mode":     {with(func(s *prune.Step) { s.Mode = "branch:main" }), nil, "", "the revision applied before was selected by branch:master, this one by branch:main"},
		"a mode not known": {with(func(s *prune.Step) { s.AppliedBy = "" }), nil, "", "the revision applied before was selected by a mode that is not recorded, this one by branch:master"},
		"a tag that moves": {with(func(s *prune.Step) { s.Mode, s.AppliedBy = "tag:v1", "tag:v1" }), nil, "", "the tag moved (tag:v1)"},
		"the latest tag":   {with(func(s *prune.Step) { s.Mode, s.AppliedBy = "tag:latest", "tag:latest" }), []string{r2, r1}, "", ""},
		"a range of versions": {with(func(s *prune.Step) { s.Mode, s.AppliedBy = "semver:1.x", "semver:1.x" }), []string{r2, r1}, r1,
			"no ancestor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.step.Ancestors(); !slices.Equal(got, test.ancestors) {
				t.Errorf("asks for %v, want %v", got, test.ancestors)
			}
			unproven := map[string]string{}
			if test.unproven != "" {
				unproven[test.unproven] = "no ancestor"
			}
			if got := test.step.Void(unproven); got != test.void {
				t.Errorf("void: %q, want %q", got, test.void)
			}
		})
	}
}

// Whatever was recorded: a trailer that was used, or whose revision was pruned, never
// counts again, and none counts of which an ancestor is unproven.
func FuzzStep(f *testing.F) {
	f.Add("c", "branch:x", "b", "branch:x", "a", "", "", "b")
	f.Add("c", "tag:v", "b", "tag:v", "b", "c", "c", "")
	f.Fuzz(func(t *testing.T, revision, mode, applied, by, pruned, counted, used, unproven string) {
		step := prune.Step{Revision: revision, Mode: mode, Applied: applied, AppliedBy: by, Pruned: pruned, Counted: counted, UsedBefore: []string{used}}
		void := step.Void(map[string]string{unproven: "no ancestor"})
		if void != "" {
			return
		}
		if used == revision || pruned == revision {
			t.Errorf("%+v counts again", step)
		}
		if counted != revision && (applied == "" || applied == revision || applied == unproven || pruned != "" && pruned == unproven || by != mode) {
			t.Errorf("%+v counts without proof", step)
		}
	})
}

func TestUse(t *testing.T) {
	t.Parallel()
	var used []string
	for n := range 150 {
		used = prune.Use(used, fmt.Sprint(n))
		used = prune.Use(used, fmt.Sprint(n))
	}
	if len(used) != 100 || used[0] != "50" || used[99] != "149" {
		t.Errorf("%d are remembered, from %s to %s", len(used), used[0], used[len(used)-1])
	}
}
