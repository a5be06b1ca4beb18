package apply_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubesync/kubesync/apply"
)

// Whatever was found out when a deletion began: what is to stay by the time that an
// object's turn has come stays.
func TestJustBeforeDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("an unlisted set", func(t *testing.T) { testUnlistedNoMore(t, w) })
	t.Run("the next unlisted set", func(t *testing.T) { testNextUnlistedNoMore(t, w) })
	t.Run("a set whose loop has not ended", func(t *testing.T) { testUnlistedButOpen(t, w) })
	t.Run("a set that is listed", func(t *testing.T) { testNotUnlisted(t, w) })
	t.Run("what leaves a repo", func(t *testing.T) { testLeftNoMore(t, w) })
}

// moment does something once, just before the API server is asked for something.
type moment struct {
	sync.Mutex
	method, path string
	do           func()
	deleted      []string
}

// at says what to do when; the paths that were deleted are forgotten.
func (m *moment) at(method, path string, do func()) {
	m.Lock()
	defer m.Unlock()
	m.method, m.path, m.do, m.deleted = method, path, do, nil
}

// take returns what is to be done before a request, and takes note of deletions.
func (m *moment) take(request *http.Request) func() {
	m.Lock()
	defer m.Unlock()
	if request.Method == http.MethodDelete {
		m.deleted = append(m.deleted, request.URL.Path)
	}
	do := m.do
	if do == nil || request.Method != m.method || !strings.HasPrefix(request.URL.Path, m.path) {
		return func() {}
	}
	m.do = nil
	return do
}

// deletions returns the paths that were deleted.
func (m *moment) deletions() string {
	m.Lock()
	defer m.Unlock()
	return strings.Join(m.deleted, " ")
}

// moments is a transport that knows its moment.
type moments struct {
	*moment
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m moments) RoundTrip(request *http.Request) (*http.Response, error) {
	m.take(request)()
	return m.RoundTripper.RoundTrip(request)
}

// momentous is a daemon that does something at some moment of its own.
func (w world) momentous(t *testing.T, writer string) (*apply.Cluster, *moment) {
	t.Helper()
	m := &moment{}
	config := w.servers.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return moments{m, next} })
	return daemon(t, config, writer), m
}

// watch has a daemon watch the cluster until the test ends.
func watch(t *testing.T, d *apply.Cluster) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	wait := d.Watch(ctx)
	t.Cleanup(func() {
		stop()
		wait()
	})
}

// unlist has repos synced, each with a ConfigMap of its name in ns, and then listed no more.
func unlist(t *testing.T, w world, d *apply.Cluster, ns string, names ...string) {
	t.Helper()
	var listed []apply.ListedRepo
	for _, name := range names {
		listed = append(listed, apply.ListedRepo{Name: name})
	}
	d.Listed(listed)
	for _, name := range names {
		r := newRepo(t, d, name)
		r.want(r.sync(configMap(ns, name)), "created ConfigMap/"+ns+"/"+name)
		r.set.Close()
	}
	d.Listed([]apply.ListedRepo{})
	for _, name := range names {
		w.annotate(t, parents, "kubesync-"+name, "kubesync.io/delete", name)
		eventually(t, func() bool { return deleting(d, name) })
	}
}

// deleting reports whether a daemon knows of a set that is unlisted and shall be deleted.
func deleting(d *apply.Cluster, name string) bool {
	for _, set := range d.Unlisted() {
		if set.Repo == name && set.Deleting {
			return true
		}
	}
	return false
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("it never came to that")
		}
	}
}

func testUnlistedNoMore(t *testing.T, w world) {
	unless := map[string]func(t *testing.T, d *apply.Cluster, repo string){
		"listed": func(_ *testing.T, d *apply.Cluster, repo string) {
			d.Listed([]apply.ListedRepo{{Name: repo}})
		},
		"not-asked": func(t *testing.T, d *apply.Cluster, repo string) {
			w.annotate(t, parents, "kubesync-"+repo, "kubesync.io/delete", "no one")
			eventually(t, func() bool { return !deleting(d, repo) })
		},
		"taken-over": func(t *testing.T, d *apply.Cluster, repo string) {
			other := newRepo(t, daemon(t, w.config, "kubesync-heir"), repo)
			other.sync(configMap("taken-over", repo))
			eventually(t, func() bool { return !deleting(d, repo) })
		},
		"claimed": func(t *testing.T, d *apply.Cluster, repo string) {
			if _, err := newRepo(t, d, "heir").plan(configMap("claimed", repo)); err != nil {
				t.Error(err)
			}
		},
	}
	for name, change := range unless {
		t.Run(name, func(t *testing.T) {
			ns := w.namespace(t, name)
			d, just := w.momentous(t, "kubesync-"+name)
			watch(t, d)
			unlist(t, w, d, ns, name)
			just.at(http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps/"+name, func() { change(t, d, name) })
			if err := d.KeepUnlisted(t.Context()); err == nil {
				t.Error("nothing is said of what stays")
			}
			if got := just.deletions(); got != "" {
				t.Errorf("deleted all the same: %s", got)
			}
		})
	}
}

// Which of two unlisted sets is deleted first is not known: meanwhile the other is
// listed again, and its loop runs.
func testNextUnlistedNoMore(t *testing.T, w world) {
	ns := w.namespace(t, "next")
	d, just := w.momentous(t, "kubesync-next")
	watch(t, d)
	unlist(t, w, d, ns, "one", "two")
	first, next := "", ""
	just.at(http.MethodDelete, "/api/v1/namespaces/"+ns+"/configmaps/", func() {
		first, next = "one", "two"
		if w.getConfigMap(t, ns, "two") == nil || strings.HasSuffix(just.deletions(), "two") {
			first, next = next, first
		}
		d.Listed([]apply.ListedRepo{{Name: next}})
		again := newRepo(t, d, next)
		again.want(again.sync(configMap(ns, next)), "unchanged ConfigMap/next/"+next)
	})
	if err := d.KeepUnlisted(t.Context()); err != nil {
		t.Error(err)
	}
	if got := just.deletions(); strings.Contains(got, "/"+next) || !strings.HasSuffix(got, "/kubesync-"+first) {
		t.Errorf("of %s, which is unlisted, and %s, which is listed again, were deleted %s", first, next, got)
	}
	// What it declares stays its own.
	other := newRepo(t, d, "newcomer")
	other.want(other.sync(configMap(ns, next)), "refused ConfigMap/next/"+next)
}

// A loop that still ends may be writing: its set is left alone until it has.
func testUnlistedButOpen(t *testing.T, w world) {
	ns := w.namespace(t, "open")
	d, just := w.momentous(t, "kubesync-open")
	watch(t, d)
	unlist(t, w, d, ns, "open")
	ending := newRepo(t, d, "open")
	just.at("", "", nil)
	if err := d.KeepUnlisted(t.Context()); err != nil {
		t.Error(err)
	}
	if got := just.deletions(); got != "" {
		t.Errorf("deleted all the same: %s", got)
	}
	for housekeeping(d) {
		continue // by what was before
	}
	ending.set.Close()
	eventually(t, func() bool { return housekeeping(d) })
	if err := d.KeepUnlisted(t.Context()); err != nil {
		t.Error(err)
	}
	if w.getConfigMap(t, ns, "open") != nil || w.getConfigMap(t, parents, "kubesync-open") != nil {
		t.Error("the unlisted set is still there")
	}
}

// housekeeping reports whether a daemon was asked to do its housekeeping now.
func housekeeping(d *apply.Cluster) bool {
	select {
	case <-d.HousekeepingDue():
		return true
	default:
		return false
	}
}

// What a person has asked for of an unlisted set is not kept for the day on which a
// repo that is listed again is missing in a list by mistake.
func testNotUnlisted(t *testing.T, w world) {
	ns := w.namespace(t, "again")
	d, just := w.momentous(t, "kubesync-again")
	watch(t, d)
	unlist(t, w, d, ns, "again")
	d.Listed([]apply.ListedRepo{{Name: "again"}})
	r := newRepo(t, d, "again")
	r.want(r.sync(configMap(ns, "again")), "unchanged ConfigMap/again/again")
	if left := w.getConfigMap(t, parents, "kubesync-again").Annotations["kubesync.io/delete"]; left != "" {
		t.Errorf("the parent is still annotated: %s", left)
	}
	r.set.Close()
	d.Listed([]apply.ListedRepo{})
	just.at("", "", nil)
	if err := d.KeepUnlisted(t.Context()); err != nil {
		t.Error(err)
	}
	if got := just.deletions(); got != "" {
		t.Errorf("deleted without having been asked: %s", got)
	}
}

func testLeftNoMore(t *testing.T, w world) {
	unless := map[string]struct {
		change func(t *testing.T, heir *repo)
		reason string
	}{
		"claimed-now": {
			change: func(t *testing.T, heir *repo) {
				if _, err := heir.plan(configMap("claimed-now", "x")); err != nil {
					t.Error(err)
				}
			},
			reason: "repo claimed-now-heir declares it by now",
		},
		"closed-now": { // it may have declared the object a moment ago, and do so again
			change: func(_ *testing.T, heir *repo) { heir.set.Close() },
			reason: "waits until repo closed-now-heir has been read again",
		},
	}
	for name, test := range unless {
		t.Run(name, func(t *testing.T) {
			ns := w.namespace(t, name)
			d, just := w.momentous(t, "kubesync-"+name)
			d.Listed([]apply.ListedRepo{{Name: name}, {Name: name + "-heir"}})
			wakes := 0
			r := newRepo(t, d, name, func(o *apply.SetOptions) { o.Wake = func() { wakes++ } })
			heir := newRepo(t, d, name+"-heir")
			r.sync(configMap(ns, "x"), configMap(ns, "stays"))
			heir.sync()
			just.at(http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps/x", func() { test.change(t, heir) })
			result := r.sync(configMap(ns, "stays"))
			r.want(result, "unchanged ConfigMap/"+ns+"/stays", "blocked ConfigMap/"+ns+"/x")
			if reason := outcome(t, result, "ConfigMap/"+ns+"/x").Reason; !strings.Contains(reason, test.reason) {
				t.Errorf("reason: %q", reason)
			}
			if got := just.deletions(); got != "" {
				t.Errorf("deleted all the same: %s", got)
			}
			// It is not kept waiting until its next turn.
			again := newRepo(t, d, name+"-heir")
			again.sync(configMap(ns, "x"))
			if wakes == 0 {
				t.Error("the repo that waits was not woken")
			}
			r.want(r.sync(configMap(ns, "stays")), "unchanged ConfigMap/"+ns+"/stays")
		})
	}
}
