package events

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	ktesting "k8s.io/client-go/testing"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

// fakeCluster knows every object, and keeps the events.
type fakeCluster struct{ client *fake.Clientset }

func (c fakeCluster) Events() typedcorev1.EventsGetter { return c.client.CoreV1() }

func (c fakeCluster) ParentReference(repo string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "kubesync-" + repo, UID: "parent"}
}

func (c fakeCluster) Reference(_ string, id manifest.ID) *corev1.ObjectReference {
	if id.Name == "unseen" {
		return nil
	}
	return &corev1.ObjectReference{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, UID: "object"}
}

// written returns what the events say that were sent so far.
func (c fakeCluster) written() []string {
	var texts []string
	for _, action := range c.client.Actions() {
		if create, ok := action.(ktesting.CreateAction); ok {
			event := create.GetObject().(*corev1.Event)
			texts = append(texts, strings.Join([]string{event.InvolvedObject.Name, event.Type, event.Reason, event.Message}, " "))
		}
	}
	return texts
}

// written passes what happens to Events, and returns what was written.
func written(t *testing.T, happen func(*Events)) []string {
	t.Helper()
	var written []string
	synctest.Test(t, func(t *testing.T) {
		cluster := fakeCluster{fake.NewClientset()}
		e := New(Options{Cluster: cluster, Redact: func(text string) string { return strings.ReplaceAll(text, "canary", "***") }})
		ctx, cancel := context.WithCancel(t.Context())
		go e.Run(ctx)
		synctest.Wait()
		happen(e)
		time.Sleep(time.Minute)
		written = cluster.written()
		cancel()
		synctest.Wait()
	})
	return written
}

func report(change func(*sync.Report)) sync.Report {
	r := sync.Report{Repo: "site", Revision: repo.Revision{ID: strings.Repeat("1", 40)}, Finished: time.Now()}
	change(&r)
	return r
}

func outcomes(all ...apply.Outcome) func(*sync.Report) {
	return func(r *sync.Report) { r.Result.Outcomes = all }
}

func object(action apply.Action, name string) apply.Outcome {
	o := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name}, Action: action, Reason: "because"}
	if action == apply.Failed || action == apply.Refused {
		o.Err = errors.New("because of the canary")
	}
	return o
}

func TestEvents(t *testing.T) {
	t.Parallel()
	failed := func(r *sync.Report) {
		r.FailedStage, r.Err = sync.Reading, errors.New("no such file, says the canary")
	}
	tests := map[string]struct {
		happen func(*Events)
		want   []string
	}{
		"a steady revision is no news": {func(e *Events) {
			for range 10 {
				e.Observe(report(outcomes(object(apply.Unchanged, "a"))))
			}
		}, nil},
		"a change": {func(e *Events) { e.Observe(report(outcomes(object(apply.Created, "a")))) },
			[]string{"kubesync-site Normal Synced revision 1111111: 1 created"}},
		"trouble is reported once, and its end": {func(e *Events) {
			for range 10 {
				e.Observe(report(failed))
			}
			e.Observe(report(outcomes(object(apply.Unchanged, "a"))))
			e.Observe(report(outcomes(object(apply.Unchanged, "a"))))
		}, []string{
			"kubesync-site Warning SyncFailed site: files 1111111: no such file, says the ***",
			"kubesync-site Normal Synced revision 1111111: 1 unchanged",
		}},
		"objects": {func(e *Events) {
			for range 3 {
				e.Observe(report(outcomes(object(apply.Failed, "a"), object(apply.Blocked, "b"), object(apply.Pending, "c"), object(apply.Failed, "unseen"))))
			}
		}, []string{
			"a Warning ApplyFailed repo site: because of the ***",
			"b Warning PruneBlocked repo site: because",
			"kubesync-site Warning SyncPartial revision 1111111: 1 blocked, 1 pending, 2 failed: ConfigMap/default/a: failed: because of the ***\nConfigMap/default/c: pending: because\nConfigMap/default/unseen: failed: because of the ***",
		}},
		"a prune that waits": {func(e *Events) {
			e.Observe(report(func(r *sync.Report) { r.Result.PruneHeld = "waits for approval" }))
		}, []string{"kubesync-site Warning PruneHeld revision 1111111: waits for approval"}},
		"a conflict": {func(e *Events) {
			e.Drift(apply.Drift{Repo: "site", ID: object(apply.Failed, "a").ID, What: "changed", Managers: []string{"kubectl"}, Corrected: true})
			e.Drift(apply.Drift{Repo: "site", ID: object(apply.Failed, "a").ID, What: "changed", Managers: []string{"kubectl"}, Corrected: true, Conflict: true, Retry: time.Minute})
		}, []string{"a Warning Conflict repo site: corrected, but it drifts again and again (changed by kubectl): another writer writes it too; the next correction is due in 1m0s"}},
		"a repo that left": {func(e *Events) { e.Unlist("site") },
			[]string{"kubesync-site Warning Unlisted the repo left the list, its objects stay"}},
		"interruptions are no news": {func(e *Events) {
			e.Observe(report(func(r *sync.Report) { r.Interrupted, r.Err = true, context.Canceled }))
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := written(t, test.happen)
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// The API server refuses longer messages, and cuts no character in two.
func TestMessagesFit(t *testing.T) {
	t.Parallel()
	got := written(t, func(e *Events) {
		e.Observe(report(func(r *sync.Report) { r.Err = errors.New(strings.Repeat("ü", 2000)) }))
	})
	if len(got) != 1 || len(got[0]) > maxMessage+100 || !strings.HasSuffix(got[0], "ü…") {
		t.Errorf("got %d events: %.100q", len(got), got)
	}
}
