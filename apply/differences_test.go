package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// TestDifferences has a revision that changes the content of some objects look at these and at
// what has changed in the cluster, and at everything wherever that is not enough. Whatever
// was looked at, what is live then is what is declared.
func TestDifferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := daemon(t, w.config, "differences")
	watch(t, d)
	ns := w.namespace(t, "differences")
	r := newRepo(t, d, "differences", func(o *apply.SetOptions) { o.Drift = apply.ReportDrift })
	data := map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}
	documents := func() []string {
		var all []string
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if value, declared := data[name]; declared {
				text := configMap(ns, name, "value="+value)
				if value == "awaited" {
					text = strings.Replace(text, "metadata:\n", "metadata:\n  annotations: {kubesync.io/wait-for: 'jsonpath={.data.value}=awaited'}\n", 1)
				}
				all = append(all, text)
			}
		}
		return all
	}
	is := func() string {
		list, err := w.typed.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: manifest.PartOfLabel})
		if err != nil {
			t.Fatal(err)
		}
		live := map[string]string{}
		for _, item := range list.Items {
			if item.Name == "kube-root-ca.crt" {
				continue // every namespace has one
			}
			live[item.Name] = item.Data["value"]
		}
		return fmt.Sprint(live)
	}
	// settle syncs until nothing is left to be done, and the last sync has left a base.
	settle := func() {
		t.Helper()
		eventually(t, func() bool { r.again(documents()...); return r.stands(time.Now()) })
	}
	patch := func(name, text string) error {
		_, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	const label = `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":%q}}}`
	r.sync(documents()...)
	settle()

	for _, step := range []struct {
		what   string
		git    map[string]string // what a commit says; "" takes an object out
		do     func() error      // what happens before it
		others int               // that are not looked at
		want   []string
	}{
		{what: "a commit that changes nothing", others: 4},
		{what: "a content", git: map[string]string{"b": "2"}, others: 3, want: []string{"configured b"}},
		{what: "contents", git: map[string]string{"a": "2", "c": "2"}, others: 2, want: []string{"configured a", "configured c"}},
		{what: "back again", git: map[string]string{"b": "1"}, others: 3, want: []string{"configured b"}},
		{
			what: "another one was changed by hand", git: map[string]string{"a": "3"}, do: func() error { return patch("d", `{"data":{"other":"x"}}`) },
			others: 3, want: []string{"configured a"}, // which is no field that git declares
		},
		{
			what: "another one was deleted", git: map[string]string{"a": "4", "d": "2"},
			do:     func() error { return w.typed.CoreV1().ConfigMaps(ns).Delete(t.Context(), "d", metav1.DeleteOptions{}) },
			others: 2, want: []string{"configured a", "created d"},
		},
		{
			what: "another one is suspended", git: map[string]string{"a": "5"}, do: func() error { w.annotate(t, ns, "b", manifest.SuspendAnnotation, "true"); return nil },
			others: 2, want: []string{"configured a", "unchanged b"},
		},
		{
			what: "it is resumed", git: map[string]string{"a": "6", "b": "3"}, do: func() error { w.annotate(t, ns, "b", manifest.SuspendAnnotation, "false"); return nil },
			others: 2, want: []string{"configured a", "configured b"},
		},
		{
			what: "another one gets the set's label", git: map[string]string{"a": "7"},
			do: func() error {
				return patch("kube-root-ca.crt", fmt.Sprintf(label, parent.ID(parents, "kubesync-differences")))
			},
			want: []string{"configured a", "unchanged b", "unchanged c", "unchanged d"},
		},
		{what: "one comes", git: map[string]string{"e": "1"}, want: []string{"created e", "unchanged a", "unchanged b", "unchanged c", "unchanged d"}},
		{what: "one leaves", git: map[string]string{"e": ""}, want: []string{"pruned e", "unchanged a", "unchanged b", "unchanged c", "unchanged d"}},
		{
			what: "an annotation decides about health", git: map[string]string{"c": "awaited"},
			want: []string{"configured c", "unchanged a", "unchanged b", "unchanged d"},
		},
		{
			what: "it does no more", git: map[string]string{"c": "5"},
			want: []string{"configured c", "unchanged a", "unchanged b", "unchanged d"},
		},
		{
			what: "a Namespace comes", git: map[string]string{"a": "8"}, do: func() error { w.namespace(t, "differences-another"); return nil },
			want: []string{"configured a", "unchanged b", "unchanged c", "unchanged d"},
		},
		{
			what: "one carries another set's label", git: map[string]string{"a": "9"}, do: func() error { return patch("b", fmt.Sprintf(label, "another")) },
			want: []string{"configured a", "refused b", "unchanged c", "unchanged d"},
		},
	} {
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			time.Sleep(300 * time.Millisecond) // until it is seen
		}
		for name, value := range step.git {
			if data[name] = value; value == "" {
				delete(data, name)
			}
		}
		t.Log(step.what)
		result := r.sync(documents()...)
		var want []string
		for _, words := range step.want {
			var action, name string
			_, _ = fmt.Sscan(words, &action, &name)
			want = append(want, fmt.Sprintf("%s ConfigMap/%s/%s", action, ns, name))
		}
		r.want(result, want...)
		if result.Others != step.others {
			t.Errorf("%s: %d objects were not looked at, want %d", step.what, result.Others, step.others)
		}
		if result.Err() != nil {
			continue
		}
		if notReady, err := r.set.NotReady(t.Context(), nil); err != nil || len(notReady) > 0 {
			t.Errorf("%s: not ready: %v, %v", step.what, notReady, err)
		}
		if counts := result.Counts(); counts[apply.Unchanged]+counts[apply.Configured]+counts[apply.Created] != len(data) {
			t.Errorf("%s: %d objects are counted as %v", step.what, len(data), counts)
		}
		if want := fmt.Sprint(data); is() != want && step.what != "another one is suspended" {
			t.Errorf("%s: live is %s, want %s", step.what, is(), want)
		}
		settle()
	}
}
