package inventory

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Interest says which live objects a plan has to know: the members of its own set, all of
// them, and of other sets' those few that it names. There may be any number of others.
type Interest struct {
	Set      string
	Declared map[manifest.ID]bool // by the revision that is planned
	Deleting map[manifest.ID]bool // by an earlier sync, and not observed to be gone
}

// covers reports whether a member matters.
func (i Interest) covers(m observed.Member) bool {
	return m.Set == i.Set || i.Declared[m.ID] || i.Deleting[m.ID]
}

// named goes through the objects that matter whoever has them; some may come twice.
func (i Interest) named() iter.Seq[manifest.ID] {
	return func(yield func(manifest.ID) bool) {
		for _, ids := range []map[manifest.ID]bool{i.Declared, i.Deleting} {
			for id := range ids {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// Inventory is what is known of the labelled live objects that matter.
type Inventory struct {
	of   Interest
	read observed.Reader

	mu      sync.Mutex // guards what follows while it is filled
	Members map[manifest.ID]observed.Member
	Unseen  Unseen
	// Blind are kinds of which it is not known what there is, and why: the API server
	// behind them is down, or answers with errors. Their objects are not gone.
	Blind map[schema.GroupKind]error
}

// newInventory returns one whose members are still to be found.
func newInventory(of Interest) *Inventory {
	return &Inventory{of: of, Unseen: Unseen{}, Blind: map[schema.GroupKind]error{}}
}

// Unseen is where an application repo may not look: the kinds by namespace, with what the
// API server says, nil where it was not asked. Its RoleBinding may be still to come, or
// its rights do not cover the kind.
type Unseen map[string]map[schema.GroupKind]error

// Lister lists what a set may have. Own is the daemon's identity; As, the one that writes
// the set's objects, looks where that may not.
type Lister struct{ Own, As *kube.Client }

// List looks through every labelled object of the kinds, whichever set it belongs to, for
// those that matter: one list of metadata per kind, some at a time. A kind that is
// not served has no objects, unless no one knows what its group serves.
func (l Lister) List(ctx context.Context, k *kube.Kinds, in Scope, of Interest) (*Inventory, error) {
	found := newInventory(of)
	found.Members = map[manifest.ID]observed.Member{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for gk := range in.Kinds {
		served, known := k.Lookup(gk)
		if !known {
			if err := k.GroupUnreachable(gk.Group); err != nil {
				found.miss(gk, err)
			}
			continue
		}
		group.Go(func() error {
			err := l.Own.ListMetadata(ctx, served.GVR, "", manifest.PartOfLabel, found.visit(gk, served.GVR))
			if apierrors.IsForbidden(err) && l.As != l.Own {
				err = l.byNamespace(ctx, gk, served.GVR, in, found)
			}
			if _, answered := kube.Status(err); answered && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
				found.miss(gk, err)
				return nil
			}
			return err
		})
	}
	return found, group.Wait()
}

// miss notes that it is not known what there is of a kind.
func (i *Inventory) miss(gk schema.GroupKind, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Blind[gk] = err
}

// byNamespace looks where an application repo has objects, with the
// rights that it has there: a daemon without cluster-admin may not look at all
// namespaces at once.
func (l Lister) byNamespace(ctx context.Context, gk schema.GroupKind, gvr schema.GroupVersionResource, in Scope, found *Inventory) error {
	for ns := range in.Namespaces {
		if in.Absent[ns] {
			found.overlook(gk, ns, nil) // there are no rights either
			continue
		}
		err := l.As.ListMetadata(ctx, gvr, ns, manifest.PartOfLabel, found.visit(gk, gvr))
		switch {
		case apierrors.IsForbidden(err):
			found.overlook(gk, ns, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// visit adds an object if it matters.
func (i *Inventory) visit(gk schema.GroupKind, gvr schema.GroupVersionResource) func(*metav1.PartialObjectMetadata) {
	return func(meta *metav1.PartialObjectMetadata) {
		m := i.read.Member(gk, gvr, meta)
		if !i.of.covers(m) {
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.Members[m.ID] = m
	}
}

// overlook notes that a kind could not be looked at in a namespace.
func (i *Inventory) overlook(gk schema.GroupKind, namespace string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.Unseen[namespace] == nil {
		i.Unseen[namespace] = map[schema.GroupKind]error{}
	}
	i.Unseen[namespace][gk] = err
}
