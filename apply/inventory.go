package apply

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// member is a live object that carries an apply set's label.
type member struct {
	ID              ID
	GVR             schema.GroupVersionResource
	UID             types.UID
	ResourceVersion string
	Set             string // the apply set the label names
	Applied         bool   // a kubesync Apply entry in managedFields: the proof that we wrote it
	Owned           bool   // has ownerReferences: a controller's, not ours to delete
	Entry           string // our entry in managedFields, "" if there is none
	Generation      int64  // 0 for kinds that do not count
	Labels          map[string]string
	Annotations     map[string]string
	Terminating     bool
	Finalizers      []string
}

// suspended tells whether a person has stopped every write to the object. What
// our own apply wrote and git no longer says is no such stop: else it could
// never be taken back through git.
func (m member) suspended(declared map[string]string) bool {
	if m.Annotations[suspendAnnotation] != "true" {
		return false
	}
	_, inGit := declared[suspendAnnotation]
	return inGit || !m.applies(suspendAnnotation)
}

// inventory is what is known of labelled live objects.
type inventory struct {
	mu      sync.Mutex // guards what follows while it is filled
	members map[ID]member
	// unseen are namespaces that an application repo has no right to look at yet:
	// its RoleBinding is still to come.
	unseen map[string]bool
}

// inventory finds every labelled object of the kinds, whichever set it belongs
// to: one list of metadata per kind, some at a time. A kind that is not served
// has no objects.
func (s *Set) inventory(ctx context.Context, k *kinds, in scope) (*inventory, error) {
	found := &inventory{members: map[ID]member{}, unseen: map[string]bool{}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for gk := range in.kinds {
		served, known := k.lookup(gk)
		if !known {
			if err := k.groupUnreachable(gk.Group); err != nil {
				return nil, fmt.Errorf("look for objects of kind %s: %w", gk, err)
			}
			continue
		}
		group.Go(func() error {
			err := s.cluster.own.listMetadata(ctx, served.GVR, "", partOfLabel, found.visit(gk, served.GVR))
			if apierrors.IsForbidden(err) && s.options.Tier == Application {
				return s.inventoryByNamespace(ctx, gk, served.GVR, in.namespaces, found)
			}
			return err
		})
	}
	return found, group.Wait()
}

// inventoryByNamespace looks where an application repo has objects, with the
// rights that it has there: a daemon without cluster-admin may not look at all
// namespaces at once.
func (s *Set) inventoryByNamespace(ctx context.Context, gk schema.GroupKind, gvr schema.GroupVersionResource, namespaces map[string]bool, found *inventory) error {
	for ns := range namespaces {
		err := s.client.listMetadata(ctx, gvr, ns, partOfLabel, found.visit(gk, gvr))
		switch {
		case apierrors.IsForbidden(err):
			found.overlook(ns)
		case err != nil:
			return err
		}
	}
	return nil
}

// visit adds an object.
func (i *inventory) visit(gk schema.GroupKind, gvr schema.GroupVersionResource) func(*metav1.PartialObjectMetadata) {
	return func(meta *metav1.PartialObjectMetadata) {
		m := newMember(gk, gvr, meta)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.members[m.ID] = m
	}
}

// overlook notes that a namespace could not be looked at.
func (i *inventory) overlook(namespace string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unseen[namespace] = true
}

// newMember reduces metadata to what is needed of it.
func newMember(gk schema.GroupKind, gvr schema.GroupVersionResource, meta metav1.Object) member {
	entry := ownEntry(meta.GetManagedFields())
	return member{
		ID:              ID{Group: gk.Group, Kind: gk.Kind, Namespace: meta.GetNamespace(), Name: meta.GetName()},
		GVR:             gvr,
		UID:             meta.GetUID(),
		ResourceVersion: meta.GetResourceVersion(),
		Set:             meta.GetLabels()[partOfLabel],
		Applied:         entry != "",
		Owned:           len(meta.GetOwnerReferences()) > 0,
		Entry:           entry,
		Generation:      meta.GetGeneration(),
		Labels:          meta.GetLabels(),
		Annotations:     meta.GetAnnotations(),
		Terminating:     meta.GetDeletionTimestamp() != nil,
		Finalizers:      meta.GetFinalizers(),
	}
}

// ownEntry returns the fields that kubesync has applied, as managedFields writes
// them; "" if it has applied none.
func ownEntry(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawString()
		}
	}
	return ""
}

// applies tells whether our own entry owns an annotation.
func (m member) applies(annotation string) bool {
	var fields fieldpath.Set
	if err := fields.FromJSON(strings.NewReader(m.Entry)); err != nil {
		return false // an entry that cannot be read proves nothing
	}
	return fields.Has(fieldpath.MakePathOrDie("metadata", "annotations", annotation))
}

// object returns a bare manifest of the member, for messages about it.
func (m member) object() Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(m.GVR.GroupVersion().String())
	u.SetKind(m.ID.Kind)
	u.SetNamespace(m.ID.Namespace)
	u.SetName(m.ID.Name)
	return Object{Unstructured: u}
}
