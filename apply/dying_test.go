package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/manifest"
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
