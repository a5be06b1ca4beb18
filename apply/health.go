package apply

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Health returns how the objects are that a repo declares, by their identities; nil if
// the cluster does not know the repo, or is not being watched. What is not seen at
// the moment is reported as it was seen last: see [Cluster.Blind].
func (c *Cluster) Health(repo string) map[manifest.ID]health.Health {
	w, s := c.watched(), c.setByName(repo)
	if w == nil || s == nil {
		return nil
	}
	ids := s.ledger.IDs()
	found := make(map[manifest.ID]health.Health, len(ids))
	for _, id := range ids {
		found[id], _ = w.health(id)
	}
	return found
}

// health returns how an object is, and whether enough was seen of it to judge.
func (w *watched) health(id manifest.ID) (is health.Health, seen bool) {
	m, there, known := w.members.Find(id)
	switch {
	case there:
		return m.AssessedHealth(w.members.Sees(id.GroupKind())), m.Health != nil
	case known:
		return health.Health{State: health.Unknown, Message: notThere}, false
	}
	return health.Health{State: health.Unknown, Message: "it is not being watched"}, false
}

// notReady says of an object how it is; seen says that this is by what was seen of it.
func notReady(id manifest.ID, is health.Health, seen bool) NotReady {
	return NotReady{ID: id, Health: is, Unreadable: seen && is.State == health.Unknown}
}

// notThere is what is said of an object that should be there.
const notThere = "it is not there"

// NotReady is an object that is not current.
type NotReady struct {
	ID manifest.ID
	health.Health
	// Unreadable says that the object was seen, and that its status says nothing: time alone
	// changes nothing about that.
	Unreadable bool
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
			is, seen := w.health(id)
			all[i] = notReady(id, is, seen)
		}
	} else if err := s.askAll(ctx, of, all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(u NotReady) bool { return u.State == health.Current })
	slices.SortFunc(all, func(a, b NotReady) int { return a.ID.Compare(b.ID) })
	return all, nil
}

// askAll asks the API server how objects are, some at a time.
func (s *Set) askAll(ctx context.Context, ids []manifest.ID, answers []NotReady) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(s.cluster.writes))
	for i, id := range ids {
		group.Go(func() error {
			is, seen, err := s.ask(ctx, id)
			if err != nil {
				return fmt.Errorf("look how %s is: %w", id, err)
			}
			answers[i] = notReady(id, is, seen)
			return nil
		})
	}
	return group.Wait()
}

// ask asks the API server how an object is, and reports whether it was there to be judged.
func (s *Set) ask(ctx context.Context, id manifest.ID) (is health.Health, seen bool, err error) {
	k, err := s.cluster.currentKinds(ctx)
	if err != nil {
		return is, false, err
	}
	served, found := k.Lookup(id.GroupKind())
	if !found {
		return health.Health{State: health.Unknown, Message: "its kind is not served"}, false, nil
	}
	if !observed.HasHealth(id.GroupKind(), served) && !s.isGated(id) {
		return health.Health{State: health.Current}, false, nil // it was written a moment ago
	}
	live, err := s.client.Get(ctx, served.GVR, id.Namespace, id.Name)
	switch {
	case apierrors.IsNotFound(err):
		return health.Health{State: health.Unknown, Message: notThere}, false, nil
	case err != nil:
		return is, false, err
	}
	return *health.Of(live), true, nil
}

// gatedOf returns the objects whose annotations say when they are healthy.
func gatedOf(objects []manifest.Object) map[manifest.ID]bool {
	var gated map[manifest.ID]bool
	for _, o := range objects {
		if health.Annotated(o.Annotations()) {
			if gated == nil {
				gated = map[manifest.ID]bool{}
			}
			gated[o.ID()] = true
		}
	}
	return gated
}

// isGated reports whether an object is declared with such annotations.
func (s *Set) isGated(id manifest.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gated[id]
}
