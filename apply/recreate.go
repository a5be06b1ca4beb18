package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/observed"
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
func (s *Set) recreate(ctx context.Context, plan *Plan, gvr schema.GroupVersionResource, object *unstructured.Unstructured, goneBy func() time.Time) (kube.Answer, error) {
	for range deleteTries {
		live, err := s.client.Get(ctx, gvr, object.GetNamespace(), object.GetName())
		switch {
		case kube.DoesNotExist(err):
			return s.send(ctx, gvr, object)
		case err != nil:
			return kube.Answer{}, fmt.Errorf("look at the object before it is recreated: %w", err)
		case live.GetKind() != object.GetKind():
			return kube.Answer{}, fmt.Errorf("not recreated: asked about the %s, the API server answered about a %s", object.GetKind(), live.GetKind())
		}
		gone := observed.NewMember(object.GroupVersionKind().GroupKind(), gvr, live)
		if err := s.mayRecreate(ctx, plan, gone); err != nil {
			return kube.Answer{}, err
		}
		err = s.cluster.write(ctx, func() error {
			_, err := s.client.Delete(ctx, gvr, gone.ID.Namespace, gone.ID.Name, gone.UID, gone.ResourceVersion)
			return err
		})
		switch {
		case apierrors.IsConflict(err):
			continue // it has changed since it was looked at
		case err != nil && !kube.DoesNotExist(err):
			return kube.Answer{}, fmt.Errorf("delete the object to recreate it: %w", err)
		}
		if err := s.awaitGone(ctx, gone, goneBy()); err != nil {
			return kube.Answer{}, err
		}
		return s.send(ctx, gvr, object)
	}
	return kube.Answer{}, errors.New("not recreated: the object keeps changing while it is looked at; the next sync tries again")
}

// mayRecreate returns why an object may not be deleted to be created again, nil if it may.
func (s *Set) mayRecreate(ctx context.Context, plan *Plan, m observed.Member) error {
	if reason := s.exempts(m); reason != "" {
		return errors.New("not recreated: " + reason)
	}
	if s.verdict(plan, m) != prune.Own && !plan.allows(m) {
		return &approvalError{fmt.Sprintf("this set has no record of having applied this very object (uid %s): delete it by hand, or approve its deletion by name: %s",
			m.UID, s.approvalCommand(plan.Revision.ID, m.ID.String()))}
	}
	guard, err := s.newGuard(ctx, plan, []observed.Member{m})
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
