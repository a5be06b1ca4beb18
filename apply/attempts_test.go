package apply_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kubesync/kubesync/apply"
)

// Ways to have something deleted that should stay, beside those that stories tell.
func TestAttemptsAtDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, attempt := range map[string]func(*testing.T, world, string){
		"made again from a backup":                testMadeAgain,
		"applied by hand in our name":             testInOurName,
		"restored into a namespace that leaves":   testRestoredInside,
		"relabelled from one set to another":      testRelabelled,
		"copies of an unlisted repo":              testUnlistedCopies,
		"another source while pruning is off":     testSourceWhileOff,
		"another source while others are unread":  testSourceWhileWaiting,
		"a trailer of a step that was broken off": testBrokenStep,
		"copies that make a set look large":       testLookLarge,
		"claims taken along by hand":              testPolicyByHand,
		"a definition to be created again":        testRecreatedCRD,
		"a name approved, and made again":         testNameUsedUp,
		"a hash approved, and something else":     testHashOfOthers,
	} {
		t.Run(name, func(t *testing.T) {
			ns := "try-" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			attempt(t, w, w.namespace(t, ns))
		})
	}
}

// restore makes a copy of a ConfigMap as a backup tool does: created, and then what was in
// its managedFields patched on.
func (w world) restore(t *testing.T, from *corev1.ConfigMap, ns string) *corev1.ConfigMap {
	t.Helper()
	made := from.DeepCopy()
	made.ObjectMeta = metav1.ObjectMeta{Name: from.Name, Namespace: ns, Labels: from.Labels}
	made, err := w.typed.CoreV1().ConfigMaps(ns).Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.ManagedFields = from.ManagedFields
	if made, err = w.typed.CoreV1().ConfigMaps(ns).Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return made
}

// wantCopied wants an object reported as one that the set never wrote.
func wantCopied(t *testing.T, result apply.Result, id string) {
	t.Helper()
	if o := outcome(t, result, id); o.Action != apply.Blocked || !strings.HasPrefix(o.Reason, "copied or restored") {
		t.Errorf("%s: %s, %s", id, o.Action, o.Reason)
	}
}

func testMadeAgain(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	before := w.getConfigMap(t, ns, "b")
	if err := w.typed.CoreV1().ConfigMaps(ns).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.restore(t, before, ns)
	r.next.Message = approval
	wantCopied(t, r.sync(configMap(ns, "a")), "ConfigMap/"+ns+"/b")
}

func testInOurName(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	r.sync(configMap(ns, "a"))
	label := w.getConfigMap(t, ns, "a").Labels["applyset.kubernetes.io/part-of"]
	mine := corev1apply.ConfigMap("precious", ns).WithLabels(map[string]string{"applyset.kubernetes.io/part-of": label}).WithData(map[string]string{"a": "b"})
	if _, err := w.typed.CoreV1().ConfigMaps(ns).Apply(t.Context(), mine, metav1.ApplyOptions{FieldManager: "kubesync"}); err != nil {
		t.Fatal(err)
	}
	r.next.Message = approval
	wantCopied(t, r.sync(configMap(ns, "a")), "ConfigMap/"+ns+"/precious")
}

func testRestoredInside(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	leaving := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-in}\n", ns)
	r.sync(configMap(ns, "a"), leaving)
	w.restore(t, w.getConfigMap(t, ns, "a"), ns+"-in")
	result := r.sync(configMap(ns, "a"))
	if o := outcome(t, result, "Namespace/"+ns+"-in"); o.Action != apply.Blocked || !strings.Contains(o.Reason, "ConfigMap/"+ns+"-in/a) not from this repo") {
		t.Errorf("%s, %s", o.Action, o.Reason)
	}
}

func testRelabelled(t *testing.T, w world, ns string) {
	r, other := w.newRepo(t, ns), w.newRepo(t, ns+"-2")
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	other.sync(configMap(ns, "x"))
	label := w.getConfigMap(t, ns, "x").Labels["applyset.kubernetes.io/part-of"]
	patch := fmt.Sprintf(`{"metadata":{"labels":{"applyset.kubernetes.io/part-of":%q}}}`, label)
	if _, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), "b", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "hand"}); err != nil {
		t.Fatal(err)
	}
	r.sync(configMap(ns, "a")) // it lets the object go
	other.next.Message = approval
	other.sync(configMap(ns, "x"))
	if w.getConfigMap(t, ns, "b") == nil {
		t.Error("deleted by a set that never wrote it")
	}
}

func testUnlistedCopies(t *testing.T, w world, ns string) {
	d, just := w.momentous(t, "kubesync-"+ns)
	watch(t, d)
	unlist(t, w, d, ns, ns)
	w.restore(t, w.getConfigMap(t, ns, ns), "default")
	just.at("", "", nil)
	err := d.KeepUnlisted(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/default/"+ns+": blocked: copied or restored") {
		t.Errorf("said: %v", err)
	}
	if got := just.deletions(); strings.Contains(got, "/default/") || strings.Contains(got, "kubesync-"+ns) {
		t.Errorf("deleted: %s", got)
	}
}

func testSourceWhileOff(t *testing.T, w world, ns string) {
	prunes := func(on bool) func(*apply.SetOptions) { return func(o *apply.SetOptions) { o.Prune = on } }
	r := w.newRepo(t, ns)
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.set.Close()
	off := w.newRepo(t, ns, prunes(false))
	off.rev, off.next.Source = 5, "CMD"
	off.sync(configMap(ns, "a"))
	off.set.Close()
	on := w.newRepo(t, ns, prunes(true))
	on.rev, on.next.Source = 6, "CMD"
	result := on.sync(configMap(ns, "a"))
	on.want(result, "unchanged ConfigMap/"+ns+"/a", "blocked ConfigMap/"+ns+"/b")
	if !strings.Contains(result.PruneHeld, `the source of the manifests changed from "root" to "CMD"`) {
		t.Errorf("held: %s", result.PruneHeld)
	}
}

func testSourceWhileWaiting(t *testing.T, w world, ns string) {
	d := daemon(t, w.config, "kubesync-"+ns)
	d.Listed([]apply.ListedRepo{{Name: ns}, {Name: ns + "-2"}})
	r := newRepo(t, d, ns)
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.next.Source = "CMD"
	if result := r.sync(configMap(ns, "a")); result.Waits == "" {
		t.Fatal("it does not wait for the other repo")
	}
	newRepo(t, d, ns+"-2").sync()
	if result := r.sync(configMap(ns, "a")); !strings.Contains(result.PruneHeld, "the source of the manifests changed") {
		t.Errorf("held: %q, %v", result.PruneHeld, result.Counts())
	}
}

// The trailer of r2 counts for the step from r1. That step is broken off by r3, of which
// only some is written; back at r2, what r3 brought is none of that trailer's.
func testBrokenStep(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	wrong := strings.Replace(deployment(ns, "web:1", "web"), "containers:", "contaners: [], containers:", 1)
	r.sync(configMap(ns, "a"), configMap(ns, "leaves"))
	r.next.Message = approval
	r.sync(configMap(ns, "a"), wrong) // it fails, but the trailer counts
	r.next.Message = ""
	var much []string
	for n := range 12 {
		much = append(much, configMap(ns, fmt.Sprint("much-", n)))
	}
	r.sync(append(much, configMap(ns, "a"))...)
	r.rev, r.next.Message = 1, approval // a forced push back to r2
	result := r.sync(configMap(ns, "a"))
	if result.PruneHeld == "" || result.Counts()[apply.Pruned] > 0 {
		t.Errorf("%v, held: %q", result.Counts(), result.PruneHeld)
	}
}

func testLookLarge(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	var all []string
	for n := range 12 {
		all = append(all, configMap(ns, fmt.Sprint("c-", n)))
	}
	r.sync(all...)
	for n := range 12 {
		w.restore(t, w.getConfigMap(t, ns, fmt.Sprint("c-", n)), "default")
	}
	if result := r.sync(all[0]); !strings.Contains(result.PruneHeld, "11 of 12 objects is more than PRUNE_LIMIT=50% allows") {
		t.Errorf("%v, held: %q", result.Counts(), result.PruneHeld)
	}
}

func testPolicyByHand(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	set := fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "db:1"}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`, ns)
	r.sync(configMap(ns, "a"), set)
	patch := []byte(`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"}}}`)
	if _, err := w.typed.AppsV1().StatefulSets(ns).Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := outcome(t, r.sync(configMap(ns, "a")), "StatefulSet/"+ns+"/db"); o.Action != apply.Blocked || !o.NeedsApproval {
		t.Errorf("%s, %s", o.Action, o.Reason)
	}
}

func testRecreatedCRD(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	definition := fmt.Sprintf(crd, "gear", "recreate.test", "Gear")
	r.sync(definition, customResource("recreate.test", "Gear", ns, "precious"))
	// Whether objects live in namespaces cannot be changed.
	other := strings.Replace(definition, "scope: Namespaced", "scope: Cluster", 1)
	other = strings.Replace(other, "metadata: {", `metadata: {annotations: {kubesync.io/recreate: "true"}, `, 1)
	result := r.sync(other)
	o := outcome(t, result, "CustomResourceDefinition/gears.recreate.test")
	if o.Action != apply.Failed || !o.NeedsApproval || !strings.Contains(o.Err.Error(), "it still has 1 object") {
		t.Errorf("%s, %v", o.Action, o.Err)
	}
}

func testNameUsedUp(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	r.sync(configMap(ns, "a"), configMap(ns, "kept"), configMap(ns, "b"))
	w.annotate(t, ns, "kept", "kubesync.io/prune", "false")
	copied := w.restore(t, w.getConfigMap(t, ns, "b"), "default")
	id := "ConfigMap/default/b"
	w.annotate(t, parents, "kubesync-"+ns, "kubesync.io/approve-prune", fmt.Sprintf("%040x,%s", r.rev+1, id))
	r.sync(configMap(ns, "a"), configMap(ns, "kept"), configMap(ns, "b"))
	if w.getConfigMap(t, "default", "b") != nil {
		t.Fatal("what was named is still there")
	}
	w.restore(t, copied, "default")
	r.rev-- // the same revision once more
	wantCopied(t, r.sync(configMap(ns, "a"), configMap(ns, "kept"), configMap(ns, "b")), id)
}

func testHashOfOthers(t *testing.T, w world, ns string) {
	r := w.newRepo(t, ns)
	r.sync(configMap(ns, "a"), configMap(ns, "b"), configMap(ns, "c"))
	again := func(documents ...string) apply.Result {
		r.rev-- // CMD makes something else of the same revision
		return r.sync(documents...)
	}
	r.next.Source = "CMD"
	held := r.sync(configMap(ns, "a"), configMap(ns, "b"))
	_, value, _ := strings.Cut(held.Approve, "approve-prune=")
	w.annotate(t, parents, "kubesync-"+ns, "kubesync.io/approve-prune", value)
	result := again(configMap(ns, "a"), configMap(ns, "c"))
	r.want(result, "unchanged ConfigMap/"+ns+"/a", "unchanged ConfigMap/"+ns+"/c", "blocked ConfigMap/"+ns+"/b")
	r.want(again(configMap(ns, "a"), configMap(ns, "b")), "unchanged ConfigMap/"+ns+"/a", "unchanged ConfigMap/"+ns+"/b", "pruned ConfigMap/"+ns+"/c")
}
