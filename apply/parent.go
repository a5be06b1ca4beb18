package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/internal/revision"
	corev1 "k8s.io/api/core/v1"
)

// parentTries bounds how often a write of the parent starts over because a user
// else wrote it at the same time.
const parentTries = 5

// readParent returns a set's parent as it is now.
func (s *Set) readParent(ctx context.Context) (parent.Parent, error) {
	live, err := s.cluster.parentOf(ctx, s.parentName)
	if err != nil {
		return parent.Parent{}, fmt.Errorf("read the set's parent: %w", err)
	}
	return s.usable(live)
}

// reread reads the parent from the API server, after another writer wrote it.
func (s *Set) reread(ctx context.Context) (parent.Parent, error) {
	live, err := s.cluster.getParent(ctx, s.parentName)
	if err != nil {
		return parent.Parent{}, fmt.Errorf("read the set's parent again: %w", err)
	}
	return s.usable(live)
}

// usable refuses a parent that is not ours to use.
func (s *Set) usable(live *corev1.ConfigMap) (parent.Parent, error) {
	if s.noteParent(live) {
		// A person who steers while a sync is under way may want more than that sync
		// will still do: it has polled git already, and may be past pruning. The event
		// brings nothing new when it comes.
		s.wake()
	}
	if live == nil {
		return parent.Parent{}, nil
	}
	return parent.Parent{Live: live}, parent.Check(live, s.id)
}

// parentRef names a set's parent for a person.
func (s *Set) parentRef() string { return s.cluster.options.OwnNamespace + "/" + s.parentName }

// widen makes the parent name everything that is about to be written, besides
// all that it names already, puts our Lease on it, and takes off the record the proofs of
// what is about to change. It comes before the first write, so that a crash at any
// moment leaves nothing the parent does not name, and no proof that is wrong.
func (s *Set) widen(ctx context.Context, plan *Plan) error {
	data := map[string]string{parent.DataWriter: s.cluster.options.Writer}
	if plan.parent.Data(parent.DataTrailer) != plan.Revision.ID {
		data[parent.DataTrailer] = "" // it was for a step that ends here
	}
	return s.saveParent(ctx, plan, plan.scope(), s.memory(plan, true, data, nil))
}

// saveParent writes the plan's parent with a scope and what to remember, unless
// it says so already. What a person put on it stays, but for an approval that is
// used up. If a user wrote the
// parent since it was read, it is read again, and left alone if a person has
// suspended it or another writer has taken it.
func (s *Set) saveParent(ctx context.Context, plan *Plan, is inventory.Scope, now parent.Memory) error {
	for range parentTries {
		saved, err := s.tryParent(ctx, plan.parent, is, now)
		if err == nil {
			plan.parent = saved
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("write the parent ConfigMap %s: %w", s.parentRef(), err)
		}
		before := plan.parent
		if plan.parent, err = s.reread(ctx); err != nil {
			return err
		}
		if before.Live == nil && plan.parent.Live != nil {
			// What it remembers must not be overwritten by a sync that knew nothing of it.
			return fmt.Errorf("the parent ConfigMap %s did not exist a moment ago, and does now: looking again", s.parentRef())
		}
		if reason := s.suspended(plan.parent); reason != "" {
			return fmt.Errorf("stopped: %s", reason)
		}
		if err := s.checkWriter(ctx, plan.parent); err != nil {
			return err
		}
	}
	return fmt.Errorf("write the parent ConfigMap %s: another writer keeps writing it", s.parentRef())
}

// tryParent writes the parent unless another writer has written it since p was read.
func (s *Set) tryParent(ctx context.Context, p parent.Parent, is inventory.Scope, now parent.Memory) (parent.Parent, error) {
	client := s.cluster.typed.CoreV1().ConfigMaps(s.cluster.options.OwnNamespace)
	next := p.Next(s.cluster.options.OwnNamespace, s.parentName, is, now)
	s.noteParent(next) // before it can be seen
	if p.Says(next) {
		return p, nil
	}
	next.Data[parent.DataWritten] = time.Now().UTC().Format(time.RFC3339)
	var saved *corev1.ConfigMap
	var err error
	if p.Live == nil {
		saved, err = client.Create(ctx, next, metav1.CreateOptions{FieldManager: kube.FieldManager})
	} else {
		saved, err = client.Update(ctx, next, metav1.UpdateOptions{FieldManager: kube.FieldManager})
	}
	if err == nil {
		err = kube.CheckName(saved, s.cluster.options.OwnNamespace, s.parentName)
	}
	if err != nil {
		s.noteParent(p.Live) // what was to be seen will not be
		return parent.Parent{}, err
	}
	if p.Annotation(parent.DeleteAnnotation) != "" {
		s.options.Log.Warn().Msgf("took the annotation %s off ConfigMap %s: it is for a repo that the configuration names no more, and this one is named", parent.DeleteAnnotation, s.parentRef())
	}
	s.cluster.keepParent(saved)
	return parent.Parent{Live: saved}, nil
}

// Recorded returns the ID, ref and subject of the revision that was applied last; zero if
// there is no parent.
func (s *Set) Recorded(ctx context.Context) (revision.Revision, error) {
	p, err := s.readParent(ctx)
	return p.Revision(), err
}
