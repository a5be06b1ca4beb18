package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	members map[string][]ID
}

// membersOf returns what carries a set's label and an entry of ours, of every kind that
// is served. What may not be listed is left out: it could not be pruned either.
func (c *Cluster) membersOf(ctx context.Context, k *kinds, s *Set) ([]ID, error) {
	c.search.mu.Lock()
	defer c.search.mu.Unlock()
	if s.hasDeclared() || time.Since(c.search.ended) > searchAge {
		members, err := c.searchAll(ctx, k)
		if err != nil {
			return nil, err
		}
		c.search.members, c.search.ended = members, time.Now()
	}
	return c.search.members[s.id], nil
}

// searchAll lists the metadata of all labelled objects, of one kind after the other.
func (c *Cluster) searchAll(ctx context.Context, k *kinds) (map[string][]ID, error) {
	if allowed, err := c.mayListAll(ctx); err != nil || !allowed {
		return nil, err
	}
	var mu sync.Mutex
	found := map[string][]ID{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(searchesAtOnce)
	for gk, gvk := range k.preferred {
		served := k.served[gvk]
		if !served.Listable {
			continue
		}
		group.Go(func() error {
			err := c.own.listMetadata(ctx, served.GVR, "", partOfLabel, func(meta *metav1.PartialObjectMetadata) {
				m := newMember(gk, served.GVR, meta)
				if !m.Applied {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				found[m.Set] = append(found[m.Set], m.ID)
			})
			if _, answered := apiStatus(err); answered && !apierrors.IsUnauthorized(err) {
				return nil // of such a kind nothing is known, and nothing is pruned
			}
			return err
		})
	}
	return found, group.Wait()
}

// mayListAll reports whether the daemon may list every kind, which one that serves
// application repos alone may not: it looks where its repos have objects.
func (c *Cluster) mayListAll(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "*", Resource: "*"},
	}}
	answer, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether every kind may be listed: %w", err)
	}
	return answer.Status.Allowed, nil
}

// hasDeclared reports whether the set has been applied by this process.
func (s *Set) hasDeclared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects != nil
}
