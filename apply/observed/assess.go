package observed

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// HasHealth reports whether the objects of a kind say how they are, so that they have
// to be seen whole. A Namespace is there or terminating, which its metadata says; of a
// CustomResourceDefinition, which can be huge, it counts that its kind is served.
func HasHealth(gk schema.GroupKind, served kube.ServedKind) bool {
	return served.HasStatus && gk != manifest.NamespaceKind && gk != manifest.CRDKind
}

// healthOf returns how a live object is, nil if only its metadata is known and that says
// nothing of it.
func healthOf(live metav1.Object) *health.Health {
	found := health.Of(live)
	if found != nil && found.Since.IsZero() {
		found.Since = time.Now()
	}
	return found
}

// AssessedHealth returns how a member is. ByKind says that the objects of its kind have health
// ([HasHealth]), whole that they are seen whole. Where one of a kind without health is annotated,
// all are seen whole, and it makes no difference to the others. Annotations count where git has
// one for the kind: what another writer puts on a ConfigMap does not open ConfigMaps.
func (m Member) AssessedHealth(byKind, whole bool) health.Health {
	counts := byKind || whole && m.Gated
	switch {
	case m.Health != nil && (counts || m.Terminating):
		return *m.Health
	case counts:
		return health.NotSeen()
	}
	return health.Health{State: health.Current}
}
