package apply_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply"
)

const approval = "Subject\n\nKubesync-Prune: approved\n"

func TestPrune(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("a finalizer blocks", func(t *testing.T) { testFinalizer(t, w) })
	t.Run("what is never pruned", func(t *testing.T) { testNeverPruned(t, w) })
	t.Run("an empty revision waits", func(t *testing.T) { testEmpty(t, w) })
	t.Run("the limit", func(t *testing.T) { testLimit(t, w) })
	t.Run("a changed source waits", func(t *testing.T) { testSource(t, w) })
	t.Run("a failed object holds pruning back", func(t *testing.T) { testFailedHolds(t, w) })
	t.Run("approval by annotation is for one revision", func(t *testing.T) { testApprovalAnnotation(t, w) })
	t.Run("an approval is used up", func(t *testing.T) { testApprovalUsedUp(t, w) })
	t.Run("PersistentVolumeClaims wait", func(t *testing.T) { testClaims(t, w) })
	t.Run("a CRD with objects waits", func(t *testing.T) { testCRDWithObjects(t, w) })
	t.Run("Namespaces", func(t *testing.T) { testNamespaces(t, w) })
	t.Run("pruning off", func(t *testing.T) { testPruneOff(t, w) })
	t.Run("problems prune nothing", func(t *testing.T) { testProblems(t, w) })
}

func testFinalizer(t *testing.T, w world) {
	ns := w.namespace(t, "finalizer")
	r := w.newRepo(t, "finalizer")
	held := strings.Replace(configMap(ns, "held"), "  name:", "  finalizers: [test/block]\n  name:", 1)
	r.sync(held, configMap(ns, "a"))
	// The wait for it is bounded; a deletion that a user began shows at once.
	if err := w.typed.CoreV1().ConfigMaps(ns).Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	result := r.sync(configMap(ns, "a"))
	r.want(result, "blocked ConfigMap/finalizer/held", "unchanged ConfigMap/finalizer/a")
	if reason := outcome(t, result, "ConfigMap/finalizer/held").Reason; !strings.Contains(reason, "test/block") {
		t.Errorf("the reason does not name the finalizer: %q", reason)
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.want(r.sync(configMap(ns, "a")), "pruned ConfigMap/finalizer/held", "unchanged ConfigMap/finalizer/a")
}

func testNeverPruned(t *testing.T, w world) {
	ns := w.namespace(t, "never")
	r := w.newRepo(t, "never")
	r.sync(annotated(ns, "kept", "kubesync.io/prune", "false"), configMap(ns, "owned"), configMap(ns, "a"))
	label := w.getConfigMap(t, ns, "a").Labels["applyset.kubernetes.io/part-of"]
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copied", Labels: map[string]string{"applyset.kubernetes.io/part-of": label}}}
	if _, err := w.typed.CoreV1().ConfigMaps(ns).Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	owner := w.getConfigMap(t, ns, "a")
	patch := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":%q}]}}`, owner.UID)
	if _, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), "owned", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.next.Message = approval
	result := r.sync(configMap(ns, "a"))
	r.want(result, "blocked ConfigMap/never/kept", "blocked ConfigMap/never/owned", "unchanged ConfigMap/never/a")
	if w.getConfigMap(t, ns, "copied") == nil {
		t.Error("an object that carries our label, but that we never wrote, was deleted")
	}
}

func testEmpty(t *testing.T, w world) {
	ns := w.namespace(t, "empty")
	r := w.newRepo(t, "empty")
	r.sync(configMap(ns, "a"))
	result := r.sync()
	r.want(result, "blocked ConfigMap/empty/a")
	if !strings.Contains(result.PruneHeld, "declares no objects at all") || !strings.Contains(result.PruneHeld, r.revision()) {
		t.Errorf("held: %q", result.PruneHeld)
	}
	if want := "kubesync.io/approve-prune=" + r.revision() + ","; !strings.Contains(result.Approve, want) || !strings.Contains(result.PruneHeld, result.Approve) {
		t.Errorf("approved by %q, want a command with %q", result.Approve, want)
	}
	if result.Err() != nil {
		t.Errorf("a prune that waits for a person counts as failure: %v", result.Err())
	}
	r.next.Message = approval
	result = r.sync()
	r.want(result, "pruned ConfigMap/empty/a")
	if result.Approve != "" {
		t.Errorf("nothing is left to approve, but there is %q", result.Approve)
	}
}

func testLimit(t *testing.T, w world) {
	ns := w.namespace(t, "limit")
	r := w.newRepo(t, "limit")
	var all []string
	for i := range 21 {
		all = append(all, configMap(ns, fmt.Sprintf("c%02d", i)))
	}
	r.sync(all...)
	result := r.sync(all[:10]...) // 11 of 21 are 52 %
	if got := result.Counts(); got[apply.Blocked] != 11 || !strings.Contains(result.PruneHeld, "11 of 21") {
		t.Errorf("counts %v, held %q", got, result.PruneHeld)
	}
	if got := r.sync(all[:11]...).Counts(); got[apply.Pruned] != 10 { // the share is looked at from 11 on
		t.Errorf("counts %v", got)
	}
}

func testSource(t *testing.T, w world) {
	ns := w.namespace(t, "source")
	r := w.newRepo(t, "source")
	r.next.Source = "CMD"
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.next.Source = "root"
	for range 2 { // waiting does not wear the reason off
		result := r.sync(configMap(ns, "a"))
		r.want(result, "unchanged ConfigMap/source/a", "blocked ConfigMap/source/b")
		if !strings.Contains(result.PruneHeld, `from "CMD" to "root"`) {
			t.Errorf("held: %q", result.PruneHeld)
		}
	}
	r.next.Message = approval
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/source/a", "pruned ConfigMap/source/b")
	r.next.Message = ""
	r.sync(configMap(ns, "a"), configMap(ns, "c"))
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/source/a", "pruned ConfigMap/source/c")
}

func testFailedHolds(t *testing.T, w world) {
	ns := w.namespace(t, "failing")
	r := w.newRepo(t, "failing")
	r.sync(configMap(ns, "a"))
	wrong := strings.Replace(deployment(ns, "web:1", "web"), "containers:", "contaners: [], containers:", 1)
	r.want(r.sync(wrong), "failed Deployment/failing/web", "blocked ConfigMap/failing/a")
	r.want(r.sync(deployment(ns, "web:1", "web")), "created Deployment/failing/web", "pruned ConfigMap/failing/a")
}

func testApprovalAnnotation(t *testing.T, w world) {
	ns := w.namespace(t, "approval")
	r := w.newRepo(t, "approval")
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.next.URL = "https://git.example/moved"
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/approval/a", "blocked ConfigMap/approval/b")
	for what, void := range map[string]string{
		"the last revision":       r.revision() + ",1", // not the next
		"the revision alone":      fmt.Sprintf("%040x", r.rev+2),
		"another number":          fmt.Sprintf("%040x,2", r.rev+3),
		"a hash of other objects": fmt.Sprintf("%040x,0123456789ab", r.rev+4),
		"nonsense":                fmt.Sprintf("%040x,all", r.rev+5),
	} {
		w.annotate(t, parents, "kubesync-approval", "kubesync.io/approve-prune", void)
		result := r.sync(configMap(ns, "a"))
		r.want(result, "unchanged ConfigMap/approval/a", "blocked ConfigMap/approval/b")
		if !strings.Contains(result.PruneHeld, "the annotation kubesync.io/approve-prune does not count") {
			t.Errorf("an approval of %s: held: %s", what, result.PruneHeld)
		}
	}
	w.annotate(t, parents, "kubesync-approval", "kubesync.io/approve-prune", fmt.Sprintf("%040x,1", r.rev+1))
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/approval/a", "pruned ConfigMap/approval/b")
	if left := w.getConfigMap(t, parents, "kubesync-approval").Annotations["kubesync.io/approve-prune"]; left != "" {
		t.Errorf("the approval is not used up: %q", left)
	}
}

func testApprovalUsedUp(t *testing.T, w world) {
	ns := w.namespace(t, "usedup")
	r := w.newRepo(t, "usedup")
	again := func(documents ...string) apply.Result {
		r.rev-- // the same revision, of which CMD or the configuration makes something else
		return r.sync(documents...)
	}
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.next.Message = approval
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.want(again(), "blocked ConfigMap/usedup/a", "blocked ConfigMap/usedup/b")
	w.annotate(t, parents, "kubesync-usedup", "kubesync.io/approve-prune", r.revision()+",2")
	r.want(again(), "pruned ConfigMap/usedup/a", "pruned ConfigMap/usedup/b")
	again(configMap(ns, "c"))
	r.want(again(), "blocked ConfigMap/usedup/c")
}

func testClaims(t *testing.T, w world) {
	ns := w.namespace(t, "claims")
	r := w.newRepo(t, "claims")
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: claims}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	r.sync(claim, configMap(ns, "a"), configMap(ns, "b"))
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/claims/a", "pruned ConfigMap/claims/b", "blocked PersistentVolumeClaim/claims/data")
	r.next.Message = approval
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/claims/a", "pruned PersistentVolumeClaim/claims/data")
}

func testCRDWithObjects(t *testing.T, w world) {
	ns := w.namespace(t, "crdprune")
	r := w.newRepo(t, "crdprune")
	definition := fmt.Sprintf(crd, "thing", "crdprune.test", "Thing")
	r.sync(definition, customResource("crdprune.test", "Thing", ns, "ours"), configMap(ns, "a"))
	other := w.newRepo(t, "crdprune-other")
	other.sync(customResource("crdprune.test", "Thing", ns, "theirs"))
	result := r.sync(configMap(ns, "a"))
	r.want(result, "unchanged ConfigMap/crdprune/a", "pruned Thing/crdprune/ours", "blocked CustomResourceDefinition/things.crdprune.test")
	if reason := outcome(t, result, "CustomResourceDefinition/things.crdprune.test").Reason; !strings.Contains(reason, "Thing/crdprune/theirs") {
		t.Errorf("reason: %q", reason)
	}
	other.next.Message = approval
	other.sync()
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/crdprune/a", "pruned CustomResourceDefinition/things.crdprune.test")
}

func testNamespaces(t *testing.T, w world) {
	r := w.newRepo(t, "namespaces")
	manifest := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)
	}
	r.sync(manifest("ns-foreign"), manifest("ns-declared"), manifest("ns-own"), manifest("ns-stays"),
		configMap("ns-own", "a"), configMap("ns-declared", "a"), configMap("ns-foreign", "a"))
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "precious"}}
	if _, err := w.typed.CoreV1().ConfigMaps("ns-foreign").Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	result := r.sync(manifest("ns-stays"), configMap("ns-declared", "a"))
	r.want(result, "unchanged Namespace/ns-stays", "unchanged ConfigMap/ns-declared/a",
		"pruned ConfigMap/ns-own/a", "pruned ConfigMap/ns-foreign/a", "pruned Namespace/ns-own",
		"blocked Namespace/ns-foreign", "blocked Namespace/ns-declared")
	if reason := outcome(t, result, "Namespace/ns-foreign").Reason; !strings.Contains(reason, "ConfigMap/ns-foreign/precious") {
		t.Errorf("reason: %q", reason)
	}
	r.next.Message = approval
	result = r.sync(manifest("ns-stays"), configMap("ns-declared", "a"))
	r.want(result, "unchanged Namespace/ns-stays", "unchanged ConfigMap/ns-declared/a",
		"pruned Namespace/ns-foreign", "blocked Namespace/ns-declared")
}

func testPruneOff(t *testing.T, w world) {
	ns := w.namespace(t, "pruneoff")
	r := w.newRepo(t, "pruneoff", func(o *apply.SetOptions) { o.Prune = false })
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	r.want(r.sync(configMap(ns, "a")), "unchanged ConfigMap/pruneoff/a", "blocked ConfigMap/pruneoff/b")
}

func testProblems(t *testing.T, w world) {
	ns := w.namespace(t, "problems")
	r := w.newRepo(t, "problems")
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	if _, err := r.try(configMap(ns, "a", "new=1"), "kind: ["); err == nil || !strings.Contains(err.Error(), "001.yaml:1") {
		t.Errorf("the error does not say where: %v", err)
	}
	if live := w.getConfigMap(t, ns, "a"); keys(live.Data) != "always" || w.getConfigMap(t, ns, "b") == nil {
		t.Error("a revision with a broken file was applied or pruned")
	}
}
