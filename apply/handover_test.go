package apply

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/test/lab/transport"
)

// leavingPlan is a plan of a revision, polled now, that a ConfigMap leaves.
func leavingPlan(t *testing.T, s *Set) *Plan {
	t.Helper()
	return &Plan{
		set:      s,
		Revision: Provenance{Polled: time.Now()},
		objects:  objectsOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: stays}}"),
		leaving:  []observed.Member{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "x"}}},
		kinds:    servesConfigMaps(),
	}
}

// servesConfigMaps is the discovery of an API server that serves nothing else.
func servesConfigMaps() *kube.Kinds {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	return &kube.Kinds{
		Served:    map[schema.GroupVersionKind]kube.ServedKind{gvk: {GVR: gvk.GroupVersion().WithResource("configmaps"), Namespaced: true}},
		Preferred: map[schema.GroupKind]schema.GroupVersionKind{gvk.GroupKind(): gvk},
	}
}

// watchedCluster is one that is seen through a transport.
func watchedCluster(t *testing.T, answers transport.Answers) *Cluster {
	t.Helper()
	config := &rest.Config{Host: "http://api.invalid", QPS: -1, Transport: answers}
	c, err := NewCluster(ClusterOptions{Config: config, OwnNamespace: "kube-system", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := inventory.NewWatches(ctx, inventory.WatchOptions{Own: c.watching, Limited: c.limitedWatching, WentBack: func() {}, Log: zerolog.Nop()})
	c.setWatched(&watched{
		watches:    s,
		members:    inventory.NewTracker(s, nil, func(manifest.ID, metav1.Object) {}),
		corrector:  newCorrector(c),
		namespaces: follow.NewStore("namespaces", reduceNamespace, func(string, metav1.Object) {}),
	})
	t.Cleanup(func() {
		cancel()
		s.Wait()
	})
	return c
}

// A repo that is read just when the patience with it ends is waited for no more, or
// wakes who waits.
func TestNoLostTurn(t *testing.T) {
	t.Parallel()
	for range 50 {
		c := watchedCluster(t, func(*http.Request) (int, string) { return http.StatusInternalServerError, "" })
		ctx, impatient := context.WithCancel(t.Context())
		woken := false
		s := c.NewSet(SetOptions{Name: "a", Wake: func() { woken = true }})
		c.NewSet(SetOptions{Name: "b", Wake: func() {
			c.readAt("b", time.Now())
			impatient()
		}})
		if waits, _ := leavingPlan(t, s).pruning(&Result{}).settleOthers(ctx); waits != "" && !woken {
			t.Fatalf("repo b was read, and no one will hear of it: %s", waits)
		}
	}
}

// A loop that ends while the others' objects are looked at takes its claims with it. It
// is waited for as before.
func TestTurnLost(t *testing.T) {
	t.Parallel()
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
	var other *Set
	c := watchedCluster(t, func(request *http.Request) (int, string) {
		if request.URL.Query().Get("watch") != "" {
			<-request.Context().Done() // what was listed stays current
			return http.StatusInternalServerError, ""
		}
		other.Close()
		return http.StatusOK, list
	})
	c.Listed([]ListedRepo{{Name: "a"}, {Name: "b"}})
	s := c.NewSet(SetOptions{Name: "a"})
	other = c.NewSet(SetOptions{Name: "b", Wake: func() { c.readAt("b", time.Now()) }})
	waits, err := leavingPlan(t, s).pruning(&Result{}).settleOthers(t.Context())
	if want := "waits until repo b has been read again, since the object may have moved there"; waits != want || err != nil {
		t.Errorf("%q, %v, want %q", waits, err, want)
	}
}

// What a set that was replaced had claimed is its successor's.
func TestForgetReplaced(t *testing.T) {
	t.Parallel()
	c, err := NewCluster(ClusterOptions{Config: &rest.Config{}, OwnNamespace: "kube-system", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "x"}
	before := c.NewSet(SetOptions{Name: "a"})
	after := c.NewSet(SetOptions{Name: "a"})
	c.claims.Declare("a", map[manifest.ID]bool{id: true}, func(manifest.ID) bool { return false })
	before.Close()
	if name, _ := c.claims.Holder(id); name != "a" || c.setByName("a") != after {
		t.Errorf("the claim is of %q", name)
	}
	after.Close()
	if name, claimed := c.claims.Holder(id); claimed || c.setByName("a") != nil {
		t.Errorf("the claim is still of %q", name)
	}
}
