package ledger

import (
	"testing"
	"unique"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// TestDied has a set woken once when an object that was being deleted is gone, or is there
// again.
func TestDied(t *testing.T) {
	t.Parallel()
	id := manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: "held"}
	tests := map[string]struct {
		noted bool
		live  observed.Member
		there bool
		want  bool
	}{
		"gone":                      {true, observed.Member{}, false, true},
		"still being deleted":       {true, observed.Member{Terminating: true}, true, false},
		"there again":               {true, observed.Member{}, true, true},
		"gone, and no one asked":    {false, observed.Member{}, false, false},
		"changed, and no one asked": {false, observed.Member{}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New("mine")
			if test.noted {
				l.Dying(observed.Member{ID: id})
			}
			if got := l.Died(id, test.live, test.there); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if test.want && l.Died(id, test.live, test.there) {
				t.Error("said twice")
			}
		})
	}
}

// TestResting has what is known of an object outlast a time in which it is pending: a Job
// that has run must not run again because its Namespace came back.
func TestResting(t *testing.T) {
	t.Parallel()
	o := object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, namespace: garden}\n")
	declares := func(objects []manifest.Object, pending ...manifest.ID) Declaration {
		return Declaration{Objects: objects, Pending: pending, All: map[manifest.ID]bool{o.ID(): true}, Terminating: map[string]bool{"garden": true}}
	}
	l := New("mine")
	steps := []struct {
		name           string
		declares       Declaration
		known, resting bool
	}{
		{"declared", declares([]manifest.Object{o}), true, false},
		{"pending", declares(nil, o.ID()), false, true},
		{"pending still", declares(nil, o.ID()), false, true},
		{"declared again", declares([]manifest.Object{o}), true, false},
		{"declared no more", Declaration{}, false, false},
	}
	for i, step := range steps {
		if err := AwaitIdle(t.Context(), l.Declare(step.declares)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			l.Wrote(l.Entry(o.ID()), o, observed.Member{ID: o.ID(), UID: "1", Entry: unique.Make("{}"), Finished: true})
		}
		known, resting := l.objects[o.ID()], l.resting[o.ID()]
		if (known != nil) != step.known || (resting != nil) != step.resting {
			t.Errorf("%s: declared %v, resting %v", step.name, known, resting)
		}
		if remembered := l.Finished() != ""; remembered != (step.known || step.resting) {
			t.Errorf("%s: that it has run is recorded: %v", step.name, remembered)
		}
	}
	if len(l.homes) > 0 || len(l.dying) > 0 {
		t.Errorf("what is declared no more is waited for: %v %v", l.homes, l.dying)
	}
}
