package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// HealthState is how an object is, as opposed to how it is declared. The set is
// closed, and worded as kstatus does (github.com/fluxcd/cli-utils).
type HealthState string

// The states.
const (
	Current       HealthState = "current"     // as its controller was asked to have it
	InProgress    HealthState = "in progress" // its controller is at it
	HealthFailed  HealthState = "failed"      // its controller gave up, or says that it cannot
	Terminating   HealthState = "terminating" // deleted, and not gone yet
	HealthUnknown HealthState = "unknown"     // not seen yet, or nothing tells
)

// HealthStates lists every state, those first that need a person's attention.
func HealthStates() []HealthState {
	return []HealthState{HealthFailed, Terminating, InProgress, HealthUnknown, Current}
}

// Health is how an object is.
type Health struct {
	State   HealthState
	Message string    // what is waited for or wrong, as kubectl rollout status words it; may be empty
	Since   time.Time // when it came to this state, as far as this process saw
}

// hasHealth tells whether the objects of a kind say how they are, so that they have
// to be seen whole. A Namespace is there or terminating, which its metadata says; of a
// CustomResourceDefinition, which can be huge, it counts that its kind is served.
func hasHealth(gk schema.GroupKind, served servedKind) bool {
	return served.HasStatus && gk != namespaceKind && gk != crdKind
}

// healthOf tells how a live object is, nil if only its metadata is known and that says
// nothing of it.
func healthOf(live metav1.Object) *Health {
	var found Health
	if whole, ok := live.(*unstructured.Unstructured); ok {
		found = assess(whole)
	}
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		found = Health{State: Terminating, Since: deleted.Time}
		if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
			found.Message = "waits for its finalizers: " + strings.Join(finalizers, ", ")
		}
	}
	if found == (Health{}) {
		return nil
	}
	return &found
}

// assess judges a live object by its status.
func assess(live *unstructured.Unstructured) Health {
	assessed := Health{State: HealthUnknown, Since: time.Now()}
	result, err := status.Compute(live)
	if err != nil {
		assessed.Message = fmt.Sprintf("its status cannot be read: %v", err)
		return assessed
	}
	switch result.Status {
	case status.CurrentStatus:
		assessed.State = Current
		return assessed
	case status.InProgressStatus:
		assessed.State = InProgress
	case status.FailedStatus:
		assessed.State = HealthFailed
	case status.TerminatingStatus:
		assessed.State = Terminating
	}
	assessed.Message = result.Message
	if text := rollout(live); text != "" {
		assessed.Message = text
	}
	return assessed
}

// rollout words how far a workload is, as kubectl rollout status does; "" if that has
// no words for it.
func rollout(live *unstructured.Unstructured) string {
	viewer, err := polymorphichelpers.StatusViewerFor(live.GroupVersionKind().GroupKind())
	if err != nil {
		return ""
	}
	text, done, err := viewer.Status(live, 0)
	switch {
	case err != nil:
		return err.Error() // such as: deployment "a" exceeded its progress deadline
	case done:
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(text), "...")
}

// health tells how a member is.
func (m member) health(whole bool) Health {
	switch {
	case m.Health != nil:
		return *m.Health
	case whole:
		return Health{State: HealthUnknown, Message: "its status has not been seen yet"}
	}
	return Health{State: Current}
}

// Health tells how the objects are that a repo declares, by their identities; nil if
// the cluster does not know the repo, or is not being watched. What is not seen at
// the moment is told as it was seen last: see [Cluster.Blind].
func (c *Cluster) Health(repo string) map[ID]Health {
	w, s := c.watched(), c.setByName(repo)
	if w == nil || s == nil {
		return nil
	}
	ids := s.declares()
	found := make(map[ID]Health, len(ids))
	for _, id := range ids {
		found[id] = w.health(id)
	}
	return found
}

// health tells how an object is.
func (w *watched) health(id ID) Health {
	m, there, known := w.members.find(id)
	switch {
	case there:
		return m.health(w.members.seesWhole(id.GroupKind()))
	case known:
		return Health{State: HealthUnknown, Message: notThere}
	}
	return Health{State: HealthUnknown, Message: "it is not being watched"}
}

// notThere is what is said of an object that should be there.
const notThere = "it is not there"

// Unwell is an object that is not current.
type Unwell struct {
	ID ID
	Health
}

// String words it for a person.
func (u Unwell) String() string {
	if u.Message == "" {
		return fmt.Sprintf("%s is %s", u.ID, u.State)
	}
	return fmt.Sprintf("%s is %s: %s", u.ID, u.State, u.Message)
}

// Unwell returns those of some objects (nil for all that the set declares) that are
// not current, sorted: as they are seen or, where the cluster is not being watched, as
// the API server says when it is asked.
func (s *Set) Unwell(ctx context.Context, of []ID) ([]Unwell, error) {
	if of == nil {
		of = s.declares()
	}
	all := make([]Unwell, len(of))
	if w := s.cluster.watched(); w != nil {
		for i, id := range of {
			all[i] = Unwell{id, w.health(id)}
		}
	} else if err := s.askAll(ctx, of, all); err != nil {
		return nil, err
	}
	unwell := slices.DeleteFunc(all, func(u Unwell) bool { return u.State == Current })
	slices.SortFunc(unwell, func(a, b Unwell) int { return compareIDs(a.ID, b.ID) })
	return unwell, nil
}

// askAll asks the API server how objects are, some at a time.
func (s *Set) askAll(ctx context.Context, ids []ID, answers []Unwell) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(s.cluster.writes))
	for i, id := range ids {
		group.Go(func() error {
			health, err := s.ask(ctx, id)
			if err != nil {
				return fmt.Errorf("look how %s is: %w", id, err)
			}
			answers[i] = Unwell{id, health}
			return nil
		})
	}
	return group.Wait()
}

// ask asks the API server how an object is.
func (s *Set) ask(ctx context.Context, id ID) (Health, error) {
	k, err := s.cluster.currentKinds(ctx)
	if err != nil {
		return Health{}, err
	}
	served, found := k.lookup(id.GroupKind())
	if !found {
		return Health{State: HealthUnknown, Message: "its kind is not served"}, nil
	}
	if !hasHealth(id.GroupKind(), served) {
		return Health{State: Current}, nil // it was written a moment ago
	}
	live, err := s.client.get(ctx, served.GVR, id.Namespace, id.Name)
	switch {
	case apierrors.IsNotFound(err):
		return Health{State: HealthUnknown, Message: notThere}, nil
	case err != nil:
		return Health{}, err
	}
	return *healthOf(live), nil
}
