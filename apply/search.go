package apply

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

const (
	// searchAge is how long one search is good for the sets that had no plan before: at
	// the first start many repos have no parent, and need not search one by one.
	searchAge = 30 * time.Second
	// searchesAtOnce bounds the kinds that are listed at the same time.
	searchesAtOnce = 8
)

// search remembers which labelled objects there are of all kinds, by apply set.
type search struct {
	mu      sync.Mutex // held during a search, which others want the result of too
	ended   time.Time
	members map[string][]manifest.ID
}

// membersOf returns what carries a set's label and an entry of ours, of every kind that
// is served. What may not be listed is left out: it could not be pruned either.
func (c *Cluster) membersOf(ctx context.Context, k *kube.Kinds, s *Set) ([]manifest.ID, error) {
	c.search.mu.Lock()
	defer c.search.mu.Unlock()
	if s.ledger.HasDeclared() || time.Since(c.search.ended) > searchAge {
		members, err := c.searchAll(ctx, k)
		if err != nil {
			return nil, err
		}
		c.search.members, c.search.ended = members, time.Now()
	}
	return c.search.members[s.id], nil
}

// searchAll lists the metadata of all labelled objects, kind by kind. A daemon that may
// not list ConfigMaps everywhere serves application repos alone, and is not asked for
// the rest: it looks where its repos have objects.
func (c *Cluster) searchAll(ctx context.Context, k *kube.Kinds) (map[string][]manifest.ID, error) {
	found := &searched{bySet: map[string][]manifest.ID{}}
	configMaps := schema.GroupKind{Kind: "ConfigMap"}
	switch err := c.searchKind(ctx, k, configMaps, found); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(searchesAtOnce)
	for gk, gvk := range k.Preferred {
		if gk == configMaps || !k.Served[gvk].Listable {
			continue
		}
		group.Go(func() error {
			err := c.searchKind(ctx, k, gk, found)
			if _, answered := kube.Status(err); answered && !apierrors.IsUnauthorized(err) {
				return nil // of such a kind nothing is known, and nothing is pruned
			}
			return err
		})
	}
	return found.bySet, group.Wait()
}

// searchKind lists the metadata of all labelled objects of one kind. An answer that is an error
// is asked for again: as soon as the set has a parent, no one searches any more.
func (c *Cluster) searchKind(ctx context.Context, k *kube.Kinds, gk schema.GroupKind, found *searched) error {
	served, _ := k.Lookup(gk)
	list := func() error {
		return c.own.ListMetadata(ctx, served.GVR, "", manifest.PartOfLabel, func(meta *metav1.PartialObjectMetadata) {
			if m := observed.NewMember(gk, served.GVR, meta); m.Applied {
				found.add(m)
			}
		})
	}
	err := list()
	if _, answered := kube.Status(err); answered {
		return list()
	}
	return err
}

// searched are the objects that a search has found, by apply set.
type searched struct {
	mu    sync.Mutex
	bySet map[string][]manifest.ID
}

func (l *searched) add(m observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bySet[m.Set] = append(l.bySet[m.Set], m.ID)
}
