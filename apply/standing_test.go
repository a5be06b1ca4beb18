package apply_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/internal/revision"
)

// again syncs the newest revision once more.
func (r *repo) again(documents ...string) {
	r.t.Helper()
	r.rev--
	r.sync(documents...)
}

// stands reports whether the newest revision's last sync stands, polled at a time.
func (r *repo) stands(polled time.Time) bool {
	_, stands := r.set.Standing(apply.Provenance{Revision: revision.Revision{ID: r.revision()}, Polled: polled})
	return stands
}

// TestStanding has a poll without news find that nothing is to be done, and everything that
// happens to a set have it looked at again.
func TestStanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := daemon(t, w.config, "standing")
	watch(t, d)
	ns := w.namespace(t, "standing")
	documents := []string{configMap(ns, "a"), deployment(ns, "web:1", "web")}
	r := newRepo(t, d, "standing")
	if r.sync(documents...); r.stands(time.Now()) {
		t.Error("a sync that created objects stands: its own writes are not all seen yet")
	}
	settle := func() {
		t.Helper()
		eventually(t, func() bool { r.again(documents...); return r.stands(time.Now()) })
	}
	settle()
	result, _ := r.set.Standing(apply.Provenance{Revision: revision.Revision{ID: r.revision()}, Polled: time.Now()})
	if counts := result.Counts(); result.Others != 2 || len(result.Outcomes) > 0 || counts[apply.Unchanged] != 2 || len(counts) != 1 || result.Err() != nil {
		t.Errorf("got %+v", result)
	}
	if _, stands := r.set.Standing(apply.Provenance{Revision: revision.Revision{ID: "another"}}); stands {
		t.Error("another revision stands")
	}
	patch := func(text string, subresources ...string) {
		t.Helper()
		if _, err := w.typed.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"status":{"conditions":[{"type":"Tested","status":"True"}]}}`, "status")
	patch(`{"spec":{"replicas":7}}`)
	time.Sleep(500 * time.Millisecond)
	if !r.stands(time.Now()) {
		t.Error("a status, and a field that git does not declare, have the objects looked at")
	}

	happens := []struct {
		what string
		do   func() error
	}{
		{"a field is changed", func() error {
			_, err := w.typed.CoreV1().ConfigMaps(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"always":"other"}}`), metav1.PatchOptions{})
			return err
		}},
		{"an object is deleted", func() error {
			return w.typed.CoreV1().ConfigMaps(ns).Delete(t.Context(), "a", metav1.DeleteOptions{})
		}},
		{"an object is suspended", func() error { w.annotate(t, ns, "a", "kubesync.io/suspend", "true"); return nil }},
		{"an object is resumed", func() error { w.annotate(t, ns, "a", "kubesync.io/suspend", "false"); return nil }},
		{"the set is steered", func() error { w.annotate(t, parents, "kubesync-standing", "kubesync.io/note", "any"); return nil }},
		{"a Namespace comes", func() error { w.namespace(t, "standing-another"); return nil }},
	}
	for _, event := range happens {
		if err := event.do(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return !r.stands(time.Now()) })
		t.Log(event.what)
		settle()
	}
}
