package apply

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// ParentReference names the parent of a repo's set for an event about it. It sends
// no request: without a UID, the parent has not been seen.
func (c *Cluster) ParentReference(repo string) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.options.OwnNamespace, Name: parent.Name(repo)}
	if w := c.watched(); w != nil {
		if live, there := w.parents.Get(ref.Name); there {
			ref.UID, ref.ResourceVersion = live.UID, live.ResourceVersion
		}
	}
	return ref
}

// Reference names a live object of a repo for an event about it; nil if it is not
// seen, or if the event would stand where the configuration allows no writes. Events
// about cluster-scoped objects stand in the namespace default.
func (c *Cluster) Reference(repo string, id manifest.ID) *corev1.ObjectReference {
	w, s := c.watched(), c.setByName(repo)
	if w == nil || s == nil || !s.allows(cmp.Or(id.Namespace, metav1.NamespaceDefault)) {
		return nil
	}
	live, there, _ := w.members.Find(id)
	if !there {
		return nil
	}
	apiVersion, kind := live.GVR.GroupVersion().WithKind(id.Kind).ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: id.Namespace, Name: id.Name, UID: live.UID, ResourceVersion: live.ResourceVersion,
	}
}

// Events returns where events are written to, as the daemon itself.
func (c *Cluster) Events() typedcorev1.EventsGetter { return c.typed.CoreV1() }
