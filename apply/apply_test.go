package apply_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/parent"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

func customResource(group, kind, ns, name string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {size: 1}\n", group, kind, name, ns)
}

// deployment is the manifest of a Deployment "web".
func deployment(ns, image, label string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec: {containers: [{name: main, image: %[2]q}]}
`, ns, image, label)
}

func TestApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("created, unchanged, configured, pruned", func(t *testing.T) { testLifecycle(t, w) })
	t.Run("a CRD and its custom resource at once", func(t *testing.T) { testCRD(t, w) })
	t.Run("pending until the CRD comes", func(t *testing.T) { testPending(t, w) })
	t.Run("pending until the Namespace comes", func(t *testing.T) { testHomeless(t, w) })
	t.Run("adopts what client-side apply left", func(t *testing.T) { testAdoption(t, w) })
	t.Run("adopts from another applier when git says so", func(t *testing.T) { testAdoptApplier(t, w) })
	t.Run("an immutable field", func(t *testing.T) { testImmutable(t, w) })
	t.Run("a manifest error is not sent again", func(t *testing.T) { testManifestError(t, w) })
	t.Run("mistakes of typing are put into words", func(t *testing.T) { testTyping(t, w) })
	t.Run("what client-side apply took", func(t *testing.T) { testClientSideApply(t, w) })
	t.Run("what changed in git is reported", func(t *testing.T) { testManifestDiffs(t, w) })
	t.Run("parents tell what was synced last", func(t *testing.T) { testRecords(t, w) })
	t.Run("two repos declare one object", func(t *testing.T) { testTwoRepos(t, w) })
	t.Run("a repo that left the configuration", func(t *testing.T) { testUnlisted(t, w) })
	t.Run("another daemon's set", func(t *testing.T) { testOtherDaemon(t, w) })
	t.Run("writers with skewed clocks", func(t *testing.T) { testSkewedWriters(t, w) })
	t.Run("suspended object and set", func(t *testing.T) { testSuspend(t, w) })
}

func testLifecycle(t *testing.T, w world) {
	ns := w.namespace(t, "lifecycle")
	r := w.newRepo(t, "lifecycle")
	r.want(r.sync(configMap(ns, "a"), deployment(ns, "web:1", "web")), "created ConfigMap/lifecycle/a", "created Deployment/lifecycle/web")
	before := w.getConfigMap(t, ns, "a").ResourceVersion
	r.want(r.sync(configMap(ns, "a"), deployment(ns, "web:1", "web")), "unchanged ConfigMap/lifecycle/a", "unchanged Deployment/lifecycle/web")
	if after := w.getConfigMap(t, ns, "a").ResourceVersion; after != before {
		t.Errorf("an unchanged object was written: resourceVersion %s became %s", before, after)
	}
	r.want(r.sync(configMap(ns, "a", "more=1"), deployment(ns, "web:2", "web")), "configured ConfigMap/lifecycle/a", "configured Deployment/lifecycle/web")
	r.want(r.sync(configMap(ns, "a")), "configured ConfigMap/lifecycle/a", "pruned Deployment/lifecycle/web")
	if data := w.getConfigMap(t, ns, "a").Data; keys(data) != "always" {
		t.Errorf("a key that left git is still there: %v", data)
	}
	parent := w.getConfigMap(t, parents, "kubesync-lifecycle")
	if got := parent.Annotations["applyset.kubernetes.io/contains-group-kinds"]; got != "ConfigMap" {
		t.Errorf("the parent's kinds are %q after the last Deployment went", got)
	}
	if got := parent.Data["result"]; got != "1 synced" {
		t.Errorf("the parent's result is %q", got)
	}
}

func testCRD(t *testing.T, w world) {
	ns := w.namespace(t, "crd")
	r := w.newRepo(t, "crd")
	r.want(r.sync(customResource("crd.test", "Widget", ns, "one"), fmt.Sprintf(crd, "widget", "crd.test", "Widget")),
		"created CustomResourceDefinition/widgets.crd.test", "created Widget/crd/one")
}

func testPending(t *testing.T, w world) {
	ns := w.namespace(t, "pending")
	r := w.newRepo(t, "pending")
	result := r.sync(customResource("pending.test", "Gadget", ns, "one"), configMap(ns, "a"))
	r.want(result, "pending Gadget/pending/one", "created ConfigMap/pending/a")
	if result.Err() == nil {
		t.Error("a set with pending objects counts as in sync")
	}
	result = r.sync(customResource("pending.test", "Gadget", ns, "one"))
	r.want(result, "pending Gadget/pending/one", "blocked ConfigMap/pending/a")
	if !strings.Contains(result.PruneHeld, "1 object pending") {
		t.Errorf("pruning waits for another reason: %q", result.PruneHeld)
	}
	other := w.newRepo(t, "pending-crd")
	other.want(other.sync(fmt.Sprintf(crd, "gadget", "pending.test", "Gadget")), "created CustomResourceDefinition/gadgets.pending.test")
	r.want(r.sync(customResource("pending.test", "Gadget", ns, "one")), "created Gadget/pending/one", "pruned ConfigMap/pending/a")
}

func testHomeless(t *testing.T, w world) {
	r := w.newRepo(t, "homeless")
	r.want(r.sync(configMap("nowhere-yet", "a")), "pending ConfigMap/nowhere-yet/a")
	w.namespace(t, "nowhere-yet")
	r.want(r.sync(configMap("nowhere-yet", "a")), "created ConfigMap/nowhere-yet/a")
}

func testAdoption(t *testing.T, w world) {
	ns := w.namespace(t, "adoption")
	old := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old","namespace":"adoption","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"always":"here","gone":"x"}}`
	// kubectl 1.11 sent no field manager: the API server took the user agent's first word.
	err := w.typed.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").Body([]byte(old)).
		SetHeader("Content-Type", "application/json").SetHeader("User-Agent", "hyperkube/v1.11").Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	r := w.newRepo(t, "adoption")
	r.want(r.sync(configMap(ns, "old")), "configured ConfigMap/adoption/old")
	live := w.getConfigMap(t, ns, "old")
	if keys(live.Data) != "always" {
		t.Errorf("a field that git does not declare survived adoption: %v", live.Data)
	}
	if _, there := live.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; there {
		t.Error("the last-applied annotation survived adoption")
	}
	r.want(r.sync(configMap(ns, "old")), "unchanged ConfigMap/adoption/old")
}

func testAdoptApplier(t *testing.T, w world) {
	ns := w.namespace(t, "applier")
	theirs := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"applier"},"data":{"theirs":"1"}}`
	_, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), "a", types.ApplyPatchType, []byte(theirs), metav1.PatchOptions{FieldManager: "flux"})
	if err != nil {
		t.Fatal(err)
	}
	r := w.newRepo(t, "applier")
	r.sync(configMap(ns, "a"))
	if got := keys(w.getConfigMap(t, ns, "a").Data); got != "always,theirs" {
		t.Errorf("without the annotation the other applier's field must stay: %s", got)
	}
	r.sync(annotated(ns, "a", "kubesync.io/adopt", "flux"))
	if got := keys(w.getConfigMap(t, ns, "a").Data); got != "a" {
		t.Errorf("data after adoption: %s", got)
	}
}

func testImmutable(t *testing.T, w world) {
	ns := w.namespace(t, "immutable")
	r := w.newRepo(t, "immutable")
	r.sync(deployment(ns, "web:1", "one"))
	result := r.sync(deployment(ns, "web:1", "two"))
	r.want(result, "failed Deployment/immutable/web")
	if err := result.Err(); !strings.Contains(err.Error(), "immutable: spec.selector") || !strings.Contains(err.Error(), "kubesync.io/recreate") {
		t.Errorf("the error neither names the field nor the way out: %v", err)
	}
	again := strings.Replace(deployment(ns, "web:1", "two"), "name: web,", `name: web, annotations: {kubesync.io/recreate: "true"},`, 1)
	result = r.sync(again)
	r.want(result, "configured Deployment/immutable/web")
	if reason := outcome(t, result, "Deployment/immutable/web").Reason; !strings.Contains(reason, "recreated") {
		t.Errorf("reason %q", reason)
	}
	live, err := w.typed.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || live.Spec.Selector.MatchLabels["app"] != "two" {
		t.Errorf("the Deployment was not recreated: %v %v", live, err)
	}
}

func testManifestError(t *testing.T, w world) {
	ns := w.namespace(t, "mistaken")
	r := w.newRepo(t, "mistaken")
	wrong := strings.Replace(deployment(ns, "web:1", "web"), "containers:", "contaners: [], containers:", 1)
	for range 2 {
		result := r.sync(wrong, configMap(ns, "a"))
		failed := outcome(t, result, "Deployment/mistaken/web")
		if failed.Action != apply.Failed || !strings.Contains(failed.Err.Error(), "manifest error: .spec.template.spec.contaners") {
			t.Errorf("outcome %s: %v", failed.Action, failed.Err)
		}
	}
	r.want(r.sync(deployment(ns, "web:1", "web"), configMap(ns, "a")), "created Deployment/mistaken/web", "unchanged ConfigMap/mistaken/a")
}

func testRecords(t *testing.T, w world) {
	ns := w.namespace(t, "records")
	r := w.newRepo(t, "records")
	r.next.Subject = "Keep records"
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	records, err := parent.Records(t.Context(), w.config, parents)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(records, func(record parent.Record) bool { return record.Repo == "records" })
	if at < 0 {
		t.Fatalf("there is no record of the repo among %+v", records)
	}
	got := records[at]
	if got.Revision.ID != r.revision() || got.Revision.Subject != "Keep records" || got.Result != "2 synced" || got.Tier != "system" || got.Written.IsZero() {
		t.Errorf("recorded %+v", got)
	}
}

func testManifestDiffs(t *testing.T, w world) {
	ns := w.namespace(t, "diffs")
	r := w.newRepo(t, "diffs")
	secret := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: %s}\nstringData: {key: %s}\n", ns, value)
	}
	diffs := func(result apply.Result) map[string]string {
		reported := map[string]string{}
		for _, o := range result.Outcomes {
			reported[o.ID.Kind] = o.Diff
		}
		return reported
	}
	if reported := diffs(r.sync(configMap(ns, "a", "x=1"), secret("canary-one"))); reported["ConfigMap"] != "" || reported["Secret"] != "" {
		t.Errorf("what is new has nothing that it differs from, but there is %q", reported)
	}
	reported := diffs(r.sync(configMap(ns, "a", "x=2"), secret("canary-two")))
	if text := reported["ConfigMap"]; !strings.Contains(text, "\n-  x: \"1\"\n+  x: \"2\"\n") || !strings.Contains(text, "before/ConfigMap/diffs/a") {
		t.Errorf("the ConfigMap's diff is\n%s", text)
	}
	if text := reported["Secret"]; !strings.Contains(text, "*** (after)") || strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
		t.Errorf("the Secret's diff is\n%s", text)
	}
	if reported = diffs(r.sync(configMap(ns, "a", "x=2"), secret("canary-two"))); reported["ConfigMap"] != "" {
		t.Errorf("nothing changed, but there is\n%s", reported["ConfigMap"])
	}
}

func testTwoRepos(t *testing.T, w world) {
	ns := w.namespace(t, "shared")
	a, b := w.newRepo(t, "shared-a"), w.newRepo(t, "shared-b")
	a.sync(configMap(ns, "x", "from=a"))
	result := b.sync(configMap(ns, "x", "from=b"))
	b.want(result, "refused ConfigMap/shared/x")
	if err := result.Err(); !strings.Contains(err.Error(), "shared-a") || !strings.Contains(err.Error(), "shared-b") {
		t.Errorf("the refusal does not name both repos: %v", err)
	}
	if got := w.getConfigMap(t, ns, "x").Data["from"]; got != "a" {
		t.Errorf("the object is from %q", got)
	}
	// A daemon that starts anew may hear of b first: the object stays a's.
	d := daemon(t, w.config, "kubesync-shared-again")
	d.Listed([]apply.ListedRepo{{Name: "shared-a"}, {Name: "shared-b"}})
	a, b = newRepo(t, d, "shared-a"), newRepo(t, d, "shared-b")
	b.want(b.sync(configMap(ns, "x", "from=b")), "refused ConfigMap/shared/x")
	a.want(a.sync(configMap(ns, "x", "from=a")), "unchanged ConfigMap/shared/x")
	b.want(b.sync(configMap(ns, "x", "from=b")), "refused ConfigMap/shared/x")
	a.next.Message = "Hand x over\n\nKubesync-Prune: approved"
	a.want(a.sync()) // b waits for x: it is not deleted
	b.want(b.sync(configMap(ns, "x", "from=b")), "configured ConfigMap/shared/x")
	b.next.Message = approval
	b.want(b.sync(), "pruned ConfigMap/shared/x")
}

func testUnlisted(t *testing.T, w world) {
	ns := w.namespace(t, "unlisted")
	d := daemon(t, w.config, "kubesync-unlisted")
	left, heir := newRepo(t, d, "unlisted-left"), newRepo(t, d, "unlisted-heir")
	left.sync(configMap(ns, "x"))
	left.set.Close()
	heir.want(heir.sync(configMap(ns, "x")), "refused ConfigMap/unlisted/x")
	d.Listed([]apply.ListedRepo{{Name: "unlisted-left"}, {Name: "unlisted-heir"}})
	heir.want(heir.sync(configMap(ns, "x")), "refused ConfigMap/unlisted/x")
	d.Listed([]apply.ListedRepo{{Name: "unlisted-heir"}})
	heir.want(heir.sync(configMap(ns, "x")), "configured ConfigMap/unlisted/x")
}

func testOtherDaemon(t *testing.T, w world) {
	ns := w.namespace(t, "daemons")
	mine, theirs := w.newRepo(t, "daemons"), newRepo(t, daemon(t, w.config, "kubesync-other"), "daemons-other")
	mine.sync(configMap(ns, "x"))
	result := theirs.sync(configMap(ns, "x"))
	theirs.want(result, "refused ConfigMap/daemons/x")
	if err := result.Err(); !strings.Contains(err.Error(), "kube-system/kubesync-daemons,") || !strings.Contains(err.Error(), "kube-system/kubesync-daemons-other") {
		t.Errorf("the refusal does not name both sets: %v", err)
	}
	same := newRepo(t, daemon(t, w.config, "kubesync-third"), "daemons")
	same.sync(configMap(ns, "x")) // no one holds the recorded Lease
	w.holdLease(t, "kubesync-third", "a user", 0)
	_, err := mine.try(configMap(ns, "x"))
	var held *apply.WriterError
	if !errors.As(err, &held) || held.Holder != "a user" {
		t.Errorf("a set whose writer holds its Lease was written: %v", err)
	}
}

// testSkewedWriters has writers with wrong clocks: what they say of the time must not
// count, only whether they go on saying it.
func testSkewedWriters(t *testing.T, w world) {
	ns := w.namespace(t, "skewed")
	mine := w.newRepo(t, "skewed-live")
	newRepo(t, daemon(t, w.config, "skewed-slow"), "skewed-live").sync(configMap(ns, "x"))
	w.holdLease(t, "skewed-slow", "an hour behind", -time.Hour)
	for range 2 {
		_, err := mine.try(configMap(ns, "x"))
		var held *apply.WriterError
		if !errors.As(err, &held) || held.Holder != "an hour behind" {
			t.Fatalf("a set whose writer lives was written: %v", err)
		}
	}

	mine = w.newRepo(t, "skewed-dead")
	newRepo(t, daemon(t, w.config, "skewed-fast"), "skewed-dead").sync(configMap(ns, "second"))
	w.leaseOf(t, "skewed-fast", "an hour ahead", 2, time.Hour)
	began := time.Now()
	mine.want(mine.sync(configMap(ns, "second")), "unchanged ConfigMap/skewed/second")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the set was taken over after %s, before its writer's Lease had run out", took)
	}

	rehearsed := w.newRepo(t, "skewed-rehearsed")
	newRepo(t, daemon(t, w.config, "skewed-rehearsal"), "skewed-rehearsed").sync(configMap(ns, "third"))
	w.leaseOf(t, "skewed-rehearsal", "no one knows", 600, 0)
	plan, err := rehearsed.plan(configMap(ns, "third"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := rehearsed.set.DryRun(t.Context(), plan)
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "a dry run cannot tell whether it still runs") {
		t.Errorf("dry run of a set whose writer may live: %v, %q", err, result.Warnings)
	}
}

func testSuspend(t *testing.T, w world) {
	ns := w.namespace(t, "suspend")
	r := w.newRepo(t, "suspend")
	r.sync(configMap(ns, "a"), configMap(ns, "b"))
	w.annotate(t, ns, "a", "kubesync.io/suspend", "true")
	r.want(r.sync(configMap(ns, "a", "new=1"), configMap(ns, "b")), "unchanged ConfigMap/suspend/a", "unchanged ConfigMap/suspend/b")
	if got := keys(w.getConfigMap(t, ns, "a").Data); got != "always" {
		t.Errorf("a suspended object was written: %s", got)
	}
	r.want(r.sync(configMap(ns, "b")), "blocked ConfigMap/suspend/a", "unchanged ConfigMap/suspend/b")
	w.annotate(t, parents, "kubesync-suspend", "kubesync.io/suspend", "true")
	result := r.sync(configMap(ns, "b", "new=1"))
	if result.Suspended == "" || len(result.Outcomes) > 0 || keys(w.getConfigMap(t, ns, "b").Data) != "always" {
		t.Errorf("a suspended set was written: %+v", result)
	}
}

// The Deployment controller changes its objects all the time; that is not a
// change of ours.
func TestUnchangedAmidStatusUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ns := w.namespace(t, "status")
	r := w.newRepo(t, "status")
	plan, err := r.plan(deployment(ns, "web:1", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.set.Apply(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if plan, err = r.plan(deployment(ns, "web:1", "web")); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"status":{"conditions":[{"type":"Tested","status":"True"}]}}`)
	if _, err := w.typed.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	result, err := r.set.Apply(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	r.want(result, "unchanged Deployment/status/web")
}
