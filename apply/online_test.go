package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/test/lab/cluster"
)

// world is a real cluster and one daemon's view of it.
type world struct {
	*apply.Cluster
	servers *cluster.Cluster
	config  *rest.Config
	typed   kubernetes.Interface
}

// parents is where the tests' parents live.
const parents = "kube-system"

// newWorld starts a cluster. The subtests of one test share it, each with repos
// and namespaces of its own.
func newWorld(t *testing.T) world {
	t.Helper()
	servers := cluster.Start(t, cluster.WithControllers)
	config := servers.Config()
	return world{Cluster: daemon(t, config, "kubesync"), servers: servers, config: config, typed: kubernetes.NewForConfigOrDie(config)}
}

// daemon is a kubesync that holds the named Lease.
func daemon(t *testing.T, config *rest.Config, writer string) *apply.Cluster {
	t.Helper()
	c, err := apply.NewCluster(apply.ClusterOptions{
		Config: config, OwnNamespace: parents, Writer: writer, Concurrency: 8,
		SystemNamespaces: []string{"kube-system", "kube-public", "kube-node-lease"},
		UserAgent:        "kubesync/test", Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// repo is a set as a test drives it.
type repo struct {
	t   *testing.T
	set *apply.Set
	rev int
	// next is what the following sync says of its revision beyond its number.
	next apply.Provenance
}

// newRepo declares a repo of the system tier that prunes, unless change says otherwise.
func (w world) newRepo(t *testing.T, name string, change ...func(*apply.SetOptions)) *repo {
	t.Helper()
	return newRepo(t, w.Cluster, name, change...)
}

func newRepo(t *testing.T, c *apply.Cluster, name string, change ...func(*apply.SetOptions)) *repo {
	options := apply.SetOptions{
		Name: name, Namespace: "default", Prune: true, PruneLimit: prune.Limit{Percent: true, Value: 50}, Log: zerolog.Nop(),
	}
	for _, c := range change {
		c(&options)
	}
	r := &repo{t: t, set: c.NewSet(options)}
	t.Cleanup(r.set.Close)
	return r
}

// plan plans a revision that holds the documents.
func (r *repo) plan(documents ...string) (apply.Plan, error) {
	r.rev++
	revision := r.next
	revision.Polled = time.Now()
	revision.ID = r.revision()
	if revision.URL == "" {
		revision.URL = "https://git.example/repo"
	}
	if revision.Source == "" {
		revision.Source = "root"
	}
	if revision.Mode == "" {
		revision.Mode = "branch:master"
	}
	if revision.Descends == nil { // one commit after the other
		revision.Descends = func(_ context.Context, ancestor string) (bool, error) { return ancestor < revision.ID, nil }
	}
	files := fstest.MapFS{}
	for i, document := range documents {
		files[fmt.Sprintf("%03d.yaml", i)] = &fstest.MapFile{Data: []byte(document)}
	}
	return r.set.Plan(r.t.Context(), files, revision)
}

// revision is the hash of the newest revision.
func (r *repo) revision() string { return fmt.Sprintf("%040x", r.rev) }

// try syncs a revision that holds the documents.
func (r *repo) try(documents ...string) (apply.Result, error) {
	plan, err := r.plan(documents...)
	if err != nil {
		return apply.Result{}, err
	}
	return r.set.Apply(r.t.Context(), plan)
}

// sync is try for a sync that can be carried out.
func (r *repo) sync(documents ...string) apply.Result {
	r.t.Helper()
	result, err := r.try(documents...)
	if err != nil {
		r.t.Fatalf("sync: %v", err)
	}
	return result
}

// want compares outcomes, written "action Kind/ns/name", with the expected ones in any order.
func (r *repo) want(result apply.Result, expected ...string) {
	r.t.Helper()
	var got []string
	for _, o := range result.Outcomes {
		got = append(got, fmt.Sprintf("%s %s", o.Action, o.ID))
	}
	slices.Sort(got)
	slices.Sort(expected)
	if !slices.Equal(got, expected) {
		r.t.Errorf("outcomes\n got: %s\nwant: %s\n err: %v\nheld: %s", strings.Join(got, ", "), strings.Join(expected, ", "), result.Err(), result.PruneHeld)
	}
}

// outcome returns what became of one object.
func outcome(t *testing.T, result apply.Result, id string) apply.Outcome {
	t.Helper()
	for _, o := range result.Outcomes {
		if o.ID.String() == id {
			return o
		}
	}
	t.Fatalf("nothing is said of %s in %v", id, result.Outcomes)
	return apply.Outcome{}
}

// namespace creates a namespace for a test.
func (w world) namespace(t *testing.T, name string) string {
	t.Helper()
	_, err := w.typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// configMap is a manifest.
func configMap(ns, name string, data ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  always: here\n", name, ns)
	for _, pair := range data {
		key, value, _ := strings.Cut(pair, "=")
		text += fmt.Sprintf("  %s: %q\n", key, value)
	}
	return text
}

// annotated is a ConfigMap's manifest with one annotation.
func annotated(ns, name, key, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\n  annotations: {%s: %q}\ndata: {a: b}\n", name, ns, key, value)
}

// getConfigMap reads a ConfigMap; nil if there is none.
func (w world) getConfigMap(t *testing.T, ns, name string) *corev1.ConfigMap {
	t.Helper()
	list, err := w.typed.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// annotate sets an annotation as a person would.
func (w world) annotate(t *testing.T, ns, name, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "person"})
	if err != nil {
		t.Fatal(err)
	}
}

func keys(m map[string]string) string { return strings.Join(slices.Sorted(maps.Keys(m)), ",") }

// leaseOf makes a Lease that lasts some seconds, of a holder whose clock is wrong by skew.
func (w world) leaseOf(t *testing.T, name, holder string, seconds int32, skew time.Duration) *coordinationv1.Lease {
	t.Helper()
	renewed := metav1.NewMicroTime(time.Now().Add(skew))
	lease, err := w.typed.CoordinationV1().Leases(parents).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// holdLease makes a Lease held, as a running daemon does, until the test ends.
func (w world) holdLease(t *testing.T, name, holder string, skew time.Duration) {
	t.Helper()
	lease := w.leaseOf(t, name, holder, 15, skew)
	ctx, stop := context.WithCancel(t.Context())
	var renewals sync.WaitGroup
	t.Cleanup(renewals.Wait)
	t.Cleanup(stop)
	renewals.Go(func() {
		for ctx.Err() == nil {
			renewed := metav1.NewMicroTime(time.Now().Add(skew))
			lease.Spec.RenewTime = &renewed
			next, err := w.typed.CoordinationV1().Leases(parents).Update(ctx, lease, metav1.UpdateOptions{})
			if err != nil && ctx.Err() == nil {
				t.Errorf("renew Lease %s: %v", name, err)
				return
			}
			lease = next
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}
