package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
func (s *sending) recreate(ctx context.Context) (kube.Answer, error) {
	for range deleteTries {
		live, err := s.set.client.Get(ctx, s.gvr, s.object.GetNamespace(), s.object.GetName())
		switch {
		case kube.DoesNotExist(err):
			return s.send(ctx)
		case err != nil:
			return kube.Answer{}, fmt.Errorf("look at the object before it is recreated: %w", err)
		case live.GetKind() != s.object.GetKind():
			return kube.Answer{}, fmt.Errorf("not recreated: asked about the %s, the API server answered about a %s", s.object.GetKind(), live.GetKind())
		}
		gone := observed.NewMember(s.object.GroupVersionKind().GroupKind(), s.gvr, live)
		if err := s.mayRecreate(ctx, gone); err != nil {
			return kube.Answer{}, err
		}
		err = s.set.cluster.write(ctx, func() error {
			_, err := s.set.client.Delete(ctx, s.gvr, gone.ID.Namespace, gone.ID.Name, gone.UID, gone.ResourceVersion)
			return err
		})
		switch {
		case apierrors.IsConflict(err):
			continue // it has changed since it was looked at
		case err != nil && !kube.DoesNotExist(err):
			return kube.Answer{}, fmt.Errorf("delete the object to recreate it: %w", err)
		}
		if err := s.set.awaitGone(ctx, gone, s.goneBy()); err != nil {
			return kube.Answer{}, err
		}
		return s.send(ctx)
	}
	return kube.Answer{}, errors.New("not recreated: the object keeps changing while it is looked at; the next sync tries again")
}

// mayRecreate returns why an object may not be deleted to be created again, nil if it may.
func (s *sending) mayRecreate(ctx context.Context, m observed.Member) error {
	if reason := exempts(m); reason != "" {
		return errors.New("not recreated: " + reason)
	}
	if s.plan.verdict(m) != prune.Own && !s.plan.allows(m) {
		return &approvalError{fmt.Sprintf("this set has no record of having applied this very object (uid %s): delete it by hand, or approve its deletion by name: %s",
			m.UID, s.set.approvalCommand(s.plan.Revision.ID, m.ID.String()))}
	}
	guard, err := newGuard(ctx, s.plan, []observed.Member{m})
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
