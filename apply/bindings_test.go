package apply

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply/kube/follow"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/test/lab/transport"
)

// bound is a cluster with the namespaces old and new, in both of which application repos
// have rights, and that no watch has reported yet.
type bound struct {
	*Cluster
	seen *watched

	mu      sync.Mutex
	removed []string // the paths of the bindings that were
}

func newBound(t *testing.T) *bound {
	t.Helper()
	b := &bound{}
	c, err := NewCluster(ClusterOptions{
		OwnNamespace: "kube-system", Writer: "kubesync", Concurrency: 1, Log: zerolog.Nop(),
		Config: &rest.Config{Host: "http://api.invalid", Transport: transport.Answers(b.answer)},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Cluster = c
	ignore := func(string, metav1.Object) {}
	b.seen = &watched{
		namespaces: follow.NewStore("namespaces", reduceNamespace, ignore),
		bindings:   follow.NewStore("RoleBindings", byNamespace[*rbacv1.RoleBinding], ignore),
	}
	for _, name := range []string{"old", "new"} {
		b.seen.namespaces.Seen(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}})
		b.seen.bindings.Seen(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: manifest.BindingName, Namespace: name, ResourceVersion: "1", Labels: map[string]string{bindingWriterLabel: c.bindingWriter()}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: LimitedUser}},
		})
	}
	b.setWatched(b.seen)
	return b
}

func (b *bound) answer(request *http.Request) (status int, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if request.Method != http.MethodDelete {
		return http.StatusInternalServerError, ""
	}
	b.removed = append(b.removed, request.URL.Path)
	return http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`
}

// current has the watches say that they have reported everything.
func (b *bound) current() {
	b.seen.namespaces.Current("1")
	b.seen.bindings.Current("1")
}

// wantRemoved expects that the rights in these namespaces were taken away, and no others.
func (b *bound) wantRemoved(t *testing.T, when string, namespaces ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.EqualFunc(b.removed, namespaces, func(path, ns string) bool { return strings.Contains(path, "/namespaces/"+ns+"/") }) {
		t.Errorf("%s: removed %v, want those in %v", when, b.removed, namespaces)
	}
}

func writesIn(namespaces ...string) []ListedRepo {
	return []ListedRepo{{Name: "app", Tier: manifest.Application, Namespaces: namespaces}}
}

// While another process wrote, the list may have changed: what this one read before says
// nothing of repos that are gone.
func TestNoRightsAreTakenAwayForAListOfTheTermBefore(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	b.Listed(writesIn("old"))
	b.setWatched(b.seen) // a new term begins
	b.current()
	if err := b.KeepBindings(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantRemoved(t, "before the list was read again")
	if listed, known := b.isListed("other"); listed || known {
		t.Errorf("a repo of which the old list knows nothing: listed %t, known %t", listed, known)
	}
	b.Listed(writesIn("old"))
	if err := b.KeepBindings(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantRemoved(t, "after the list was read again", "new")
}

func TestRightsAreKeptByTheListAsItIsAfterTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBound(t)
		b.Listed(writesIn("old"))
		kept := make(chan error)
		go func() { kept <- b.KeepBindings(t.Context()) }()
		synctest.Wait() // until it waits for the watches
		b.Listed(writesIn("old", "new"))
		b.current()
		if err := <-kept; err != nil {
			t.Error(err)
		}
		b.wantRemoved(t, "with a list that came meanwhile")
	})
}
