package main

import (
	"testing"

	"github.com/kubesync/kubesync/sync"
)

func TestConclusion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		came    sync.Pass
		dryRun  bool
		want    string
		differs bool
	}{
		"all":                      {sync.Pass{InSync: true}, false, "all repos are in sync", false},
		"changed":                  {sync.Pass{InSync: true, Changes: true}, false, "all repos are in sync", true},
		"one waits":                {sync.Pass{InSync: true, WaitingPrunes: 1}, false, "all repos are in sync, but 1 prune waits", true},
		"two wait":                 {sync.Pass{InSync: true, WaitingPrunes: 2}, false, "all repos are in sync, but 2 prunes wait", true},
		"not all":                  {sync.Pass{}, false, "not all repos are in sync", false},
		"not all, and two wait":    {sync.Pass{WaitingPrunes: 2}, false, "not all repos are in sync, and 2 prunes wait", true},
		"planned":                  {sync.Pass{InSync: true}, true, "all repos are planned", false},
		"planned, would change":    {sync.Pass{InSync: true, Changes: true}, true, "all repos are planned", true},
		"planned, one would wait":  {sync.Pass{InSync: true, WaitingPrunes: 1}, true, "all repos are planned, but 1 prune would wait", true},
		"planned, some would wait": {sync.Pass{InSync: true, WaitingPrunes: 3}, true, "all repos are planned, but 3 prunes would wait", true},
		"not planned":              {sync.Pass{Changes: true}, true, "not all repos are planned", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := conclusion(test.came, test.dryRun); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := differs(test.came); got != test.differs {
				t.Errorf("differs: %v, want %v", got, test.differs)
			}
		})
	}
}
