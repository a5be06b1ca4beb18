package apply

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Health returns how the objects are that a repo declares, by their identities; nil if
// the cluster does not know the repo, or is not being watched. What is not seen at
// the moment is reported as it was seen last: see [Cluster.Blind].
func (c *Cluster) Health(repo string) map[manifest.ID]observed.Health {
	w, s := c.watched(), c.setByName(repo)
	if w == nil || s == nil {
		return nil
	}
	ids := s.ledger.IDs()
	found := make(map[manifest.ID]observed.Health, len(ids))
	for _, id := range ids {
		found[id] = w.health(id)
	}
	return found
}

// health returns how an object is.
func (w *watched) health(id manifest.ID) observed.Health {
	m, there, known := w.members.Find(id)
	switch {
	case there:
		return m.AssessedHealth(w.members.SeesWhole(id.GroupKind()))
	case known:
		return observed.Health{State: observed.HealthUnknown, Message: notThere}
	}
	return observed.Health{State: observed.HealthUnknown, Message: "it is not being watched"}
}

// notThere is what is said of an object that should be there.
const notThere = "it is not there"

// NotReady is an object that is not current.
type NotReady struct {
	ID manifest.ID
	observed.Health
}

// String words it for a person.
func (u NotReady) String() string {
	if u.Message == "" {
		return fmt.Sprintf("%s is %s", u.ID, u.State)
	}
	return fmt.Sprintf("%s is %s: %s", u.ID, u.State, u.Message)
}

// NotReady returns those of some objects (nil for all that the set declares) that are
// not current, sorted: as they are seen or, where the cluster is not being watched, as
// the API server says when it is asked.
func (s *Set) NotReady(ctx context.Context, of []manifest.ID) ([]NotReady, error) {
	if of == nil {
		of = s.ledger.IDs()
	}
	all := make([]NotReady, len(of))
	if w := s.cluster.watched(); w != nil {
		for i, id := range of {
			all[i] = NotReady{id, w.health(id)}
		}
	} else if err := s.askAll(ctx, of, all); err != nil {
		return nil, err
	}
	notReady := slices.DeleteFunc(all, func(u NotReady) bool { return u.State == observed.Current })
	slices.SortFunc(notReady, func(a, b NotReady) int { return a.ID.Compare(b.ID) })
	return notReady, nil
}

// askAll asks the API server how objects are, some at a time.
func (s *Set) askAll(ctx context.Context, ids []manifest.ID, answers []NotReady) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(s.cluster.writes))
	for i, id := range ids {
		group.Go(func() error {
			health, err := s.ask(ctx, id)
			if err != nil {
				return fmt.Errorf("look how %s is: %w", id, err)
			}
			answers[i] = NotReady{id, health}
			return nil
		})
	}
	return group.Wait()
}

// ask asks the API server how an object is.
func (s *Set) ask(ctx context.Context, id manifest.ID) (observed.Health, error) {
	k, err := s.cluster.currentKinds(ctx)
	if err != nil {
		return observed.Health{}, err
	}
	served, found := k.Lookup(id.GroupKind())
	if !found {
		return observed.Health{State: observed.HealthUnknown, Message: "its kind is not served"}, nil
	}
	if !observed.HasHealth(id.GroupKind(), served) {
		return observed.Health{State: observed.Current}, nil // it was written a moment ago
	}
	live, err := s.client.Get(ctx, served.GVR, id.Namespace, id.Name)
	switch {
	case apierrors.IsNotFound(err):
		return observed.Health{State: observed.HealthUnknown, Message: notThere}, nil
	case err != nil:
		return observed.Health{}, err
	}
	return *observed.HealthOf(live), nil
}
