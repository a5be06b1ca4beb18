package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

func TestWaitsForHome(t *testing.T) {
	t.Parallel()
	live := liveNamespaces{
		labels:      map[string]map[string]string{"there": nil, "dying": nil, "stuck": nil},
		terminating: map[string]bool{"dying": true, "stuck": true},
	}
	keeps := map[string]string{"stuck": "example.com/hold in 1 resource instances"}
	namespace := func(name string) manifest.ID { return manifest.ID{Kind: "Namespace", Name: name} }
	in := func(namespace string) manifest.ID {
		return manifest.ID{Kind: "ConfigMap", Namespace: namespace, Name: "a"}
	}
	tests := map[string]struct {
		id       manifest.ID
		declared bool // the Namespace
		want     string
	}{
		"cluster-scoped":                   {manifest.ID{Kind: "Node", Name: "dying"}, false, ""},
		"in a Namespace":                   {in("there"), false, ""},
		"in a declared Namespace":          {in("there"), true, ""},
		"a Namespace":                      {namespace("there"), true, ""},
		"a new Namespace":                  {namespace("absent"), true, ""},
		"in a new Namespace":               {in("absent"), true, ""},
		"in no Namespace":                  {in("absent"), false, "waits for Namespace absent, which does not exist"},
		"in a dying Namespace":             {in("dying"), false, "waits for Namespace dying, which is being deleted"},
		"in a declared Namespace, dying":   {in("dying"), true, "waits for Namespace dying, which is being deleted"},
		"in a stuck Namespace":             {in("stuck"), true, "waits for Namespace stuck, which is being deleted: example.com/hold in 1 resource instances"},
		"a dying Namespace":                {namespace("dying"), true, "waits to be created again: the Namespace is being deleted"},
		"a stuck Namespace":                {namespace("stuck"), true, "waits to be created again: the Namespace is being deleted: example.com/hold in 1 resource instances"},
		"another group's kind of the name": {manifest.ID{Group: "example.com", Kind: "Namespace", Name: "dying"}, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := waitsForHome(test.id, test.declared, live, keeps); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatRemains(t *testing.T) {
	t.Parallel()
	condition := func(kind corev1.NamespaceConditionType, status corev1.ConditionStatus, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: status, Message: message}
	}
	tests := map[string]struct {
		live corev1.Namespace
		want string
	}{
		"nothing known yet": {corev1.Namespace{}, ""},
		"all is well so far": {corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			condition(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "All resources successfully discovered"),
			condition(corev1.NamespaceFinalizersRemaining, corev1.ConditionFalse, "All content-preserving finalizers finished"),
		}}}, ""},
		"objects, and their finalizers": {corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			condition(corev1.NamespaceDeletionContentFailure, corev1.ConditionFalse, "All content successfully deleted, may be waiting on finalization"),
			condition(corev1.NamespaceContentRemaining, corev1.ConditionTrue, "Some resources are remaining: configmaps. has 1 resource instances"),
			condition(corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"),
		}}}, "Some resources are remaining: configmaps. has 1 resource instances; Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"},
		"its own finalizers":  {corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.com/hold"}}}, "it waits for its own finalizers: example.com/hold"},
		"a user's conditions": {corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{condition("Paid", corev1.ConditionTrue, "until June")}}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := whatRemains(&test.live); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
			s := &Set{dying: map[manifest.ID]observed.Member{}}
			if test.noted {
				s.dying[id] = observed.Member{ID: id}
			}
			if got := s.died(id, test.live, test.there); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if test.want && s.died(id, test.live, test.there) {
				t.Error("told twice")
			}
		})
	}
}

// TestResting has what is known of an object outlast a time in which it is pending: a Job
// that has run must not run again because its Namespace came back.
func TestResting(t *testing.T) {
	t.Parallel()
	o := objectsOf(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, namespace: garden}\n")[0]
	s := &Set{cluster: &Cluster{}, objects: map[manifest.ID]*declared{}}
	plan := func(objects []manifest.Object, held ...Outcome) *Plan {
		return &Plan{objects: objects, held: held, declared: map[manifest.ID]bool{o.ID(): true}, live: liveNamespaces{terminating: map[string]bool{"garden": true}}}
	}
	steps := []struct {
		name           string
		plan           *Plan
		known, resting bool
	}{
		{"declared", plan([]manifest.Object{o}), true, false},
		{"pending", plan(nil, Outcome{ID: o.ID(), Action: Pending}), false, true},
		{"pending still", plan(nil, Outcome{ID: o.ID(), Action: Pending}), false, true},
		{"declared again", plan([]manifest.Object{o}), true, false},
		{"declared no more", &Plan{}, false, false},
	}
	for i, step := range steps {
		if err := s.declare(t.Context(), step.plan); err != nil {
			t.Fatal(err)
		}
		if d := s.objects[o.ID()]; d != nil && i == 0 {
			d.sent, d.finished = o.Digest(), true
		}
		known, resting := s.objects[o.ID()], s.resting[o.ID()]
		if (known != nil) != step.known || (resting != nil) != step.resting {
			t.Errorf("%s: declared %v, resting %v", step.name, known, resting)
		}
		if remembered := s.finishedNow() != ""; remembered != (step.known || step.resting) {
			t.Errorf("%s: that it has run is recorded: %v", step.name, remembered)
		}
	}
	if len(s.homes) > 0 || len(s.dying) > 0 {
		t.Errorf("what is declared no more is waited for: %v %v", s.homes, s.dying)
	}
}
