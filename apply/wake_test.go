package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// steeredParent is the parent of a set, with an approval.
func steeredParent(s *Set, approved string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: s.parentName, Namespace: s.cluster.options.OwnNamespace,
		Labels:      map[string]string{manifest.ParentIDLabel: s.id},
		Annotations: map[string]string{"applyset.kubernetes.io/tooling": "kubesync/v1", parent.ApproveAnnotation: approved},
	}}
}

// What a person writes on the parent leads to one more sync, whether the event tells
// of it first or a sync that is under way reads it first.
func TestSteeringWakes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do    func(t *testing.T, c *Cluster, s *Set)
		woken int
	}{
		"nothing": {do: func(*testing.T, *Cluster, *Set) {}, woken: 0},
		"the event first": {
			do: func(t *testing.T, c *Cluster, s *Set) {
				c.parentSeen(s.parentName, steeredParent(s, "two"))
				mustUse(t, s, steeredParent(s, "two"))
			},
			woken: 1,
		},
		"read first": {
			do: func(t *testing.T, c *Cluster, s *Set) {
				mustUse(t, s, steeredParent(s, "two"))
				c.parentSeen(s.parentName, steeredParent(s, "two"))
			},
			woken: 1,
		},
		"what we have written ourselves": {
			do: func(t *testing.T, c *Cluster, s *Set) {
				s.note(steeredParent(s, "two"))
				c.parentSeen(s.parentName, steeredParent(s, "two"))
				mustUse(t, s, steeredParent(s, "two"))
			},
			woken: 0,
		},
		"the parent is gone": {
			do: func(t *testing.T, c *Cluster, s *Set) {
				c.parentSeen(s.parentName, nil)
				mustUse(t, s, nil)
				mustUse(t, s, steeredParent(s, "two"))
			},
			woken: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := NewCluster(ClusterOptions{Config: &rest.Config{}, OwnNamespace: "kube-system", Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			woken := 0
			s := c.NewSet(SetOptions{Name: "site", Wake: func() { woken++ }})
			mustUse(t, s, steeredParent(s, "one")) // the first sync's
			test.do(t, c, s)
			if woken != test.woken {
				t.Errorf("woken %d times, want %d", woken, test.woken)
			}
		})
	}
}

// mustUse has a set read its parent.
func mustUse(t *testing.T, s *Set, live *corev1.ConfigMap) {
	t.Helper()
	if _, err := s.usable(live); err != nil {
		t.Fatal(err)
	}
}

// TestNamespaceAfterPlan has a Namespace come after a plan held back what waits for it, and
// before the set is known as one that waits: no one else would wake it.
func TestNamespaceAfterPlan(t *testing.T) {
	t.Parallel()
	pending := []Outcome{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, Action: Pending}}
	without := liveNamespaces{labels: map[string]map[string]string{}, terminating: map[string]bool{}}
	ending := liveNamespaces{labels: map[string]map[string]string{"shop": {}}, terminating: map[string]bool{"shop": true}}
	with := liveNamespaces{labels: map[string]map[string]string{"shop": {}}, terminating: map[string]bool{}}
	now := metav1.Now()
	there := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", ResourceVersion: "2"}}
	going := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1", ResourceVersion: "2", DeletionTimestamp: &now}}
	tests := map[string]struct {
		planned liveNamespaces
		held    []Outcome
		live    metav1.Object
		woken   int
	}{
		"it came":                        {without, pending, there, 1},
		"it came again":                  {ending, pending, there, 1},
		"it is to come":                  {without, pending, nil, 0},
		"it is being deleted":            {ending, pending, going, 0},
		"it was there, the kind was not": {with, pending, there, 0},
		"nothing is pending":             {without, nil, there, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := NewCluster(ClusterOptions{Config: &rest.Config{}, OwnNamespace: "kube-system", Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			w := &watched{corrector: newCorrector(c)}
			w.namespaces = follow.NewStore("namespaces", reduceNamespace, c.namespaceSeen)
			c.setWatched(w)
			woken := 0
			s := c.NewSet(SetOptions{Name: "site", Wake: func() { woken++ }})
			if test.live != nil {
				w.namespaces.Seen(test.live)
			}
			if err := s.declare(t.Context(), &Plan{set: s, live: test.planned, held: test.held}); err != nil {
				t.Fatal(err)
			}
			if woken != test.woken {
				t.Errorf("woken %d times, want %d", woken, test.woken)
			}
		})
	}
}
