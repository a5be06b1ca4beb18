package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// An answer about another object than the one that was asked for (a proxy that mixes up
// connections, a cache that does) must not be believed: what is deleted, remembered and
// compared is taken from answers.

// CheckName checks that an answer is about the object of that name.
func CheckName(live metav1.Object, namespace, name string) error {
	if live.GetNamespace() == namespace && live.GetName() == name {
		return nil
	}
	return fmt.Errorf("asked about %s, the API server answered about %s: is there a proxy or cache in between that mixes up requests?",
		fullName(namespace, name), fullName(live.GetNamespace(), live.GetName()))
}

// aboutApply checks besides that the answer to an apply holds manager's entry in the
// version that was applied: what is known of the kind where only metadata are answered.
func aboutApply(live metav1.Object, object *unstructured.Unstructured, manager string) error {
	if err := CheckName(live, object.GetNamespace(), object.GetName()); err != nil {
		return err
	}
	found := ""
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		if entry.APIVersion == object.GetAPIVersion() {
			return nil
		}
		found = entry.APIVersion
	}
	if found == "" {
		return nil // nothing is left that this manager has applied
	}
	return fmt.Errorf("applied %s %s of %s, the API server answered about an object of %s: is there a proxy or cache in between that mixes up requests?",
		object.GetKind(), fullName(object.GetNamespace(), object.GetName()), object.GetAPIVersion(), found)
}

// CheckUID checks that an answer is about the very object that an earlier one was about.
// Metadata do not hold the kind, and objects of several kinds may have one name.
func CheckUID(live metav1.Object, uid types.UID) error {
	if live.GetUID() == uid {
		return nil
	}
	return fmt.Errorf("%s was replaced by another object meanwhile (uid %s, now %s)", fullName(live.GetNamespace(), live.GetName()), uid, live.GetUID())
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
