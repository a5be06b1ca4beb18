package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/prune"
)

// approvalError says that an object is not deleted, to be created again, until a person
// approves that.
type approvalError struct{ reason string }

// Error implements error.
func (e *approvalError) Error() string { return "not recreated: " + e.reason }

// recreate deletes an object whose immutable fields have to change, and creates it again.
// The annotation in git asks for it; the deletion needs the proofs that any deletion
// needs, and an approval where data would be lost with the object.
func (s *Set) recreate(ctx context.Context, plan *Plan, gvr schema.GroupVersionResource, object *unstructured.Unstructured, goneBy func() time.Time) (written, error) {
	for range deleteTries {
		live, err := s.client.get(ctx, gvr, object.GetNamespace(), object.GetName())
		switch {
		case doesNotExist(err):
			return s.send(ctx, gvr, object)
		case err != nil:
			return written{}, fmt.Errorf("look at the object before it is recreated: %w", err)
		case live.GetKind() != object.GetKind():
			return written{}, fmt.Errorf("not recreated: asked about the %s, the API server answered about a %s", object.GetKind(), live.GetKind())
		}
		gone := newMember(object.GroupVersionKind().GroupKind(), gvr, live)
		if err := s.mayRecreate(ctx, plan, gone); err != nil {
			return written{}, err
		}
		err = s.cluster.write(ctx, func() error {
			_, err := s.client.delete(ctx, gvr, gone.ID.Namespace, gone.ID.Name, gone.UID, gone.ResourceVersion)
			return err
		})
		switch {
		case apierrors.IsConflict(err):
			continue // it has changed since it was looked at
		case err != nil && !doesNotExist(err):
			return written{}, fmt.Errorf("delete the object to recreate it: %w", err)
		}
		if err := s.awaitGone(ctx, gone, goneBy()); err != nil {
			return written{}, err
		}
		return s.send(ctx, gvr, object)
	}
	return written{}, errors.New("not recreated: the object keeps changing while it is looked at; the next sync tries again")
}

// mayRecreate returns why an object may not be deleted to be created again, nil if it may.
func (s *Set) mayRecreate(ctx context.Context, plan *Plan, m member) error {
	if reason := s.exempts(m); reason != "" {
		return errors.New("not recreated: " + reason)
	}
	if s.verdict(plan, m) != prune.Own && !plan.allows(m) {
		return &approvalError{fmt.Sprintf("this set has no record of having applied this very object (uid %s): delete it by hand, or approve its deletion by name: %s",
			m.UID, s.approvalCommand(plan.Revision.Revision, m.ID.String()))}
	}
	guard, err := s.newGuard(ctx, plan, []member{m})
	if err != nil {
		return err
	}
	guard.recreates = true
	is, err := guard.check(ctx, m)
	switch {
	case err != nil:
		return fmt.Errorf("not recreated: what it still holds could not be found out: %w", err)
	case is.approvable:
		return &approvalError{is.reason}
	case is.reason != "":
		return errors.New("not recreated: " + is.reason)
	}
	return nil
}
