package apply

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

// interest says which live objects a plan has to know: the members of its own set, all of
// them, and of other sets' those few that it names. There may be any number of others.
type interest struct {
	set      string
	declared map[manifest.ID]bool // by the revision that is planned
	deleting map[manifest.ID]bool // by an earlier sync, and not observed to be gone
}

// covers reports whether a member matters.
func (i interest) covers(m observed.Member) bool {
	return m.Set == i.set || i.declared[m.ID] || i.deleting[m.ID]
}

// named goes through the objects that matter whoever has them; some may come twice.
func (i interest) named() iter.Seq[manifest.ID] {
	return func(yield func(manifest.ID) bool) {
		for _, ids := range []map[manifest.ID]bool{i.declared, i.deleting} {
			for id := range ids {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// interestOf is what a plan of the set has to know.
func (s *Set) interestOf(plan *Plan) interest {
	s.mu.Lock()
	defer s.mu.Unlock()
	deleting := make(map[manifest.ID]bool, len(s.deleting))
	for id := range s.deleting {
		deleting[id] = true
	}
	return interest{set: s.id, declared: plan.declared, deleting: deleting}
}

// inventory is what is known of the labelled live objects that matter.
type inventory struct {
	of   interest
	read observed.Reader

	mu      sync.Mutex // guards what follows while it is filled
	members map[manifest.ID]observed.Member
	unseen  unseen
	// blind are kinds of which it is not known what there is, and why: the API server
	// behind them is down, or answers with errors. Their objects are not gone.
	blind map[schema.GroupKind]error
}

// newInventory returns an empty one.
func newInventory(of interest) *inventory {
	return &inventory{of: of, members: map[manifest.ID]observed.Member{}, unseen: unseen{}, blind: map[schema.GroupKind]error{}}
}

// unseen is where an application repo may not look: the kinds by namespace, with what the
// API server says, nil where it was not asked. Its RoleBinding may be still to come, or
// its rights do not cover the kind.
type unseen map[string]map[schema.GroupKind]error

// inventory looks through every labelled object of the kinds, whichever set it belongs
// to, for those that matter: one list of metadata per kind, some at a time. A kind that is
// not served has no objects, unless no one knows what its group serves.
func (s *Set) inventory(ctx context.Context, k *kube.Kinds, in scope, of interest) (*inventory, error) {
	found := newInventory(of)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for gk := range in.kinds {
		served, known := k.Lookup(gk)
		if !known {
			if err := k.GroupUnreachable(gk.Group); err != nil {
				found.miss(gk, err)
			}
			continue
		}
		group.Go(func() error {
			err := s.cluster.own.ListMetadata(ctx, served.GVR, "", manifest.PartOfLabel, found.visit(gk, served.GVR))
			if apierrors.IsForbidden(err) && s.options.Tier == manifest.Application {
				err = s.inventoryByNamespace(ctx, gk, served.GVR, in, found)
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
func (i *inventory) miss(gk schema.GroupKind, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.blind[gk] = err
}

// inventoryByNamespace looks where an application repo has objects, with the
// rights that it has there: a daemon without cluster-admin may not look at all
// namespaces at once.
func (s *Set) inventoryByNamespace(ctx context.Context, gk schema.GroupKind, gvr schema.GroupVersionResource, in scope, found *inventory) error {
	for ns := range in.namespaces {
		if in.absent[ns] {
			found.overlook(gk, ns, nil) // there are no rights either
			continue
		}
		err := s.client.ListMetadata(ctx, gvr, ns, manifest.PartOfLabel, found.visit(gk, gvr))
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
func (i *inventory) visit(gk schema.GroupKind, gvr schema.GroupVersionResource) func(*metav1.PartialObjectMetadata) {
	return func(meta *metav1.PartialObjectMetadata) {
		m := i.read.Member(gk, gvr, meta)
		if !i.of.covers(m) {
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.members[m.ID] = m
	}
}

// overlook notes that a kind could not be looked at in a namespace.
func (i *inventory) overlook(gk schema.GroupKind, namespace string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.unseen[namespace] == nil {
		i.unseen[namespace] = map[schema.GroupKind]error{}
	}
	i.unseen[namespace][gk] = err
}
