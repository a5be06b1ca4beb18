package apply

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
)

// crdResource is followed to learn of new kinds.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crdHandler receives CRDs that are new or have changed: repos may wait for their
// kinds. Each CRD is heard of several times until its kind is served, and a repo may
// bring dozens of them, so one goroutine waits for all.
type crdHandler struct {
	cluster *Cluster
	ctx     context.Context

	mu      sync.Mutex // guards what follows
	awaited map[schema.GroupResource]time.Time
	waiting bool // a goroutine is
}

// Relist implements follow.Handler.
func (*crdHandler) Relist() {}

// Known implements follow.Handler: what was seen is not kept.
func (*crdHandler) Known(metav1.Object) string { return "" }

// Current implements follow.Handler.
func (*crdHandler) Current(string) {}

// Lost implements follow.Handler.
func (*crdHandler) Lost(error) {}

// Gone implements follow.Handler.
func (*crdHandler) Gone(metav1.Object) {}

// Seen implements follow.Handler. CRDs are named resource.group.
func (a *crdHandler) Seen(crd metav1.Object) {
	if !a.cluster.kindsAreMissed() {
		return
	}
	resource, group, _ := strings.Cut(crd.GetName(), ".")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited[schema.GroupResource{Group: group, Resource: resource}] = time.Now().Add(servedWait)
	if !a.waiting {
		a.waiting = true
		w := a.cluster.watched()
		w.watches.Go(a.await)
	}
}

// await waits until discovery reports the kinds, which is a moment after their CRDs
// are there, and wakes those who wait for them.
func (a *crdHandler) await() {
	for a.ctx.Err() == nil {
		k, err := a.cluster.refreshKinds(a.ctx)
		if err == nil && a.settle(k) {
			a.cluster.wakeMissing(k)
		}
		if a.done() || pause(a.ctx) != nil {
			return
		}
	}
}

// settle takes what is served off the list, and reports whether there was any.
func (a *crdHandler) settle(k *kube.Kinds) (any bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for resource, deadline := range a.awaited {
		served := k.Serves(resource)
		if served || time.Now().After(deadline) {
			delete(a.awaited, resource)
		}
		any = any || served
	}
	return any
}

// done reports whether nothing is left to wait for, which ends the waiting.
func (a *crdHandler) done() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = len(a.awaited) > 0
	return !a.waiting
}

// kindsAreMissed reports whether some repo has pending objects, or uses a kind that was
// not served when it was looked for.
func (c *Cluster) kindsAreMissed() bool {
	w := c.watched()
	return c.anyPending() || w != nil && len(w.members.Missing(nil)) > 0
}

// wakeMissing has those repos synced now for which a new kind may matter.
func (c *Cluster) wakeMissing(k *kube.Kinds) {
	c.wakePending()
	if w := c.watched(); w != nil {
		for _, user := range w.members.Missing(k) {
			user.Wake()
		}
	}
}
