package apply_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
)

func TestLimitedTier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ns := w.namespace(t, "apps")
	limited := func(o *apply.SetOptions) { o.Tier, o.Namespace = manifest.Application, ns }
	r := w.newRepo(t, "app", limited)
	w.Listed([]apply.ListedRepo{{Name: "app", Tier: manifest.Application}})
	r.want(r.sync(configMap(ns, "a")), "created ConfigMap/apps/a")
	if _, err := w.typed.RbacV1().RoleBindings(ns).Get(t.Context(), manifest.BindingName, metav1.GetOptions{}); err != nil {
		t.Errorf("the RoleBinding for application repos: %v", err)
	}
	if bindings, err := w.typed.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=kubesync"}); err != nil || len(bindings.Items) > 0 {
		t.Errorf("application repos have rights in a system namespace: %v %v", bindings, err)
	}
	if _, err := r.try("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"); err == nil || !strings.Contains(err.Error(), "Unprivileged repo requires privilege") {
		t.Errorf("a cluster-scoped object of an application repo: %v", err)
	}
	// What the gate lets through because it cannot know better, RBAC refuses.
	r.want(r.sync(configMap(ns, "a"), "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: apps}\nspec: {hard: {pods: 1}}\n"),
		"unchanged ConfigMap/apps/a", "failed ResourceQuota/apps/q")
	w.Listed([]apply.ListedRepo{})
	if err := w.KeepBindings(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bindings, err := w.typed.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=kubesync"}); err != nil || len(bindings.Items) > 0 {
		t.Errorf("RoleBindings that no one wants are still there: %v %v", bindings, err)
	}
}

// A daemon that serves application repos needs no more than what the component
// "restricted" gives it.
func TestWithoutClusterAdmin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rbac, err := os.ReadFile("../deploy/components/restricted/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.newRepo(t, "rbac").sync(string(rbac))
	identity, err := w.servers.ServiceAccount(t.Context(), "kube-system", "kubesync")
	if err != nil {
		t.Fatal(err)
	}
	d := daemon(t, identity.Config(), "kubesync-restricted")
	d.Listed([]apply.ListedRepo{{Name: "one", Tier: manifest.Application}, {Name: "two", Tier: manifest.Application}})
	ns := w.namespace(t, "team")
	limited := func(o *apply.SetOptions) { o.Tier, o.Namespace = manifest.Application, ns }
	one, two := newRepo(t, d, "one", limited), newRepo(t, d, "two", limited)
	one.want(one.sync(configMap(ns, "a"), configMap(ns, "b")), "created ConfigMap/team/a", "created ConfigMap/team/b")
	one.want(one.sync(configMap(ns, "a")), "unchanged ConfigMap/team/a", "blocked ConfigMap/team/b")
	two.want(two.sync())
	one.want(one.sync(configMap(ns, "a")), "unchanged ConfigMap/team/a", "pruned ConfigMap/team/b")
	two.want(two.sync(configMap(ns, "a")), "refused ConfigMap/team/a")
	same := newRepo(t, daemon(t, identity.Config(), "kubesync-other"), "third", limited)
	result := same.sync(configMap(ns, "a"))
	same.want(result, "refused ConfigMap/team/a")
	if err := result.Err(); !strings.Contains(err.Error(), "kube-system/kubesync-one") {
		t.Errorf("the refusal does not name the other set: %v", err)
	}
}
