package manifest

import (
	"fmt"
	"testing"

	"github.com/kubesync/kubesync/internal/limits"
)

// FuzzCheck feeds Check, and what shows its results, objects of any shape. It
// must never panic, must leave the objects as they are, and what it has prepared
// must pass again unchanged.
func FuzzCheck(f *testing.F) {
	for _, kind := range podKinds() {
		f.Add([]byte(podOf(kind, "{hostNetwork: true, containers: [{name: c, env: [{name: A}, {name: A}, 1, null]}, null, x]}")))
	}
	for _, seed := range []string{
		liveSecret, nextSecret, fmt.Sprintf(widgets, "Cluster") + bare("example.com/v1", "Widget", "", "w"),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: [x]\nstringData: {a: null}\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {kubesync.io/ignore: 'spec.a,spec.b.c', kubesync.io/prune: 'false'}}\nspec: {a: 1, b: [c]}\nstatus: x\n",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {group: 1, names: [], versions: [{name: v1, served: true, subresources: x}, 1]}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		loaded, _ := NewLoader(limits.Limits{}).Load(manifests("m.yaml", string(data)))
		before := shown(loaded.Objects)
		for _, tier := range []Tier{System, Application} {
			checked, err := Check(loaded.Objects, Rules{Tier: tier, Namespaces: [][]string{{"team", "default"}}})
			for _, o := range checked.Objects {
				Diff(o.Tree(), loaded.Objects[0].Tree())
			}
			once := shown(checked.Objects)
			again, err2 := Check(checked.Objects, Rules{Tier: tier})
			if err == nil && (err2 != nil || shown(again.Objects) != once) {
				t.Fatalf("checked once:\n%s\ntwice (%v):\n%s", once, err2, shown(again.Objects))
			}
		}
		if after := shown(loaded.Objects); after != before {
			t.Fatalf("Check changed the objects from:\n%s\nto:\n%s", before, after)
		}
	})
}

// shown writes objects as YAML, one after the other.
func shown(objects []Object) string {
	text := ""
	for _, o := range objects {
		text += toYAML(o.Tree()) + YAML(o)
	}
	return text
}
