package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ns := w.namespace(t, "dry")
	r := w.newRepo(t, "dry")
	secret := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: dry}\nstringData: {password: %s}\n", value)
	}
	r.sync(configMap(ns, "a"), configMap(ns, "gone"), secret("hunter2"))
	plan, err := r.plan(configMap(ns, "a", "new=1"), configMap(ns, "b"), secret("hunter3"), configMap("later", "c"),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n")
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.set.DryRun(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	r.want(result, "configured ConfigMap/dry/a", "created ConfigMap/dry/b", "configured Secret/dry/s",
		"created ConfigMap/later/c", "created Namespace/later", "pruned ConfigMap/dry/gone")
	if diff := outcome(t, result, "ConfigMap/dry/a").Diff; !strings.Contains(diff, "+  new: \"1\"") {
		t.Errorf("diff:\n%s", diff)
	}
	if diff := outcome(t, result, "Secret/dry/s").Diff; !strings.Contains(diff, "password") ||
		slices.ContainsFunc([]string{"hunter", "aHVudGVy"}, func(s string) bool { return strings.Contains(diff, s) }) {
		t.Errorf("a Secret's diff must show that it changes and not to what:\n%s", diff)
	}
	if !outcome(t, result, "ConfigMap/later/c").Unverified {
		t.Error("an object in a Namespace that is still to come counts as verified")
	}
	if w.getConfigMap(t, ns, "b") != nil || w.getConfigMap(t, ns, "gone") == nil || keys(w.getConfigMap(t, ns, "a").Data) != "always" {
		t.Error("a dry run wrote to the cluster")
	}
}
