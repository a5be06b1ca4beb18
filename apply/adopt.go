package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// adoptTries bounds how often adoption starts over because another writer came in between.
const adoptTries = 5

// adopt takes over what other appliers own of an object that we have just
// applied, so that a field which leaves git leaves the object too. It looks at
// the answer to every apply: such an owner may reappear, for example when a
// person uses kubectl apply.
func (s *sending) adopt(ctx context.Context, applied kube.Answer) (kube.Answer, error) {
	applied, err := s.adoptClientSide(ctx, applied)
	if err != nil {
		return applied, fmt.Errorf("adopt from client-side apply: %w", err)
	}
	if manager := s.object.GetAnnotations()[manifest.AdoptAnnotation]; manager != "" && hasApplier(applied.Live, manager) {
		if applied, err = s.adoptApplier(ctx, applied, manager); err != nil {
			return applied, fmt.Errorf("adopt from field manager %q: %w", manager, err)
		}
	}
	return applied, nil
}

// adoptClientSide turns the entries of client-side appliers into our own, gives up that of
// before-first-apply, and applies again, which removes what git does not declare. The
// managers are found as kubectl finds them: by owning the last-applied annotation, since
// old versions had no fixed name.
func (s *sending) adoptClientSide(ctx context.Context, applied kube.Answer) (kube.Answer, error) {
	tried := false
	for range adoptTries {
		patch, err := observed.ClaimsPatch(applied.Live, s.set.ledger.Applied(manifest.IDOf(s.object), applied.Live.GetUID()))
		if err != nil {
			return applied, err
		}
		if patch == nil {
			break
		}
		tried = true // and perhaps done, whatever the answer is
		next, err := s.patch(ctx, applied.Live, patch)
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			// The patch names the version it was made for, and that one is gone.
			live, err := s.set.client.GetMetadata(ctx, s.gvr, s.object.GetNamespace(), s.object.GetName())
			if err != nil {
				return applied, fmt.Errorf("read the object again: %w", err)
			}
			applied.Live = live
			continue
		}
		if err == nil {
			err = kube.CheckUID(next.Live, applied.Live.GetUID())
		}
		if err != nil {
			return applied, fmt.Errorf("rewrite its field managers: %w", err)
		}
		applied.Live = next.Live
		break
	}
	if !tried {
		return applied, nil
	}
	return s.reapply(ctx, applied)
}

// adoptApplier makes another applier give up its fields: an empty apply in its
// name, after ours, removes what only it declared.
func (s *sending) adoptApplier(ctx context.Context, applied kube.Answer, manager string) (kube.Answer, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(s.object.GroupVersionKind())
	empty.SetName(s.object.GetName())
	empty.SetNamespace(s.object.GetNamespace())
	empty.SetUID(applied.Live.GetUID()) // this object only: never create one of that name
	err := s.set.cluster.write(ctx, func() error {
		_, err := s.set.client.Apply(ctx, s.gvr, empty, manager)
		return err
	})
	if err != nil {
		return applied, err
	}
	return s.reapply(ctx, applied)
}

// reapply sends the object once more, keeping what the first answer said of it.
func (s *sending) reapply(ctx context.Context, first kube.Answer) (kube.Answer, error) {
	var again kube.Answer
	err := s.set.cluster.write(ctx, func() (err error) {
		again, err = s.set.client.Apply(ctx, s.gvr, s.object, kube.FieldManager)
		return kube.WithoutSecrets(s.object, err)
	})
	if err == nil {
		err = kube.CheckUID(again.Live, first.Live.GetUID())
	}
	again.Created = first.Created
	return again, err
}

// patch sends a JSON patch.
func (s *sending) patch(ctx context.Context, live kube.LiveObject, body []byte) (kube.Answer, error) {
	var answer kube.Answer
	err := s.set.cluster.write(ctx, func() (err error) {
		answer, err = s.set.client.Patch(ctx, s.gvr, live.GetNamespace(), live.GetName(), types.JSONPatchType, body,
			metav1.PatchOptions{FieldManager: kube.FieldManager})
		return err
	})
	return answer, err
}

// hasApplier reports whether a field manager has applied (not merely updated) an object.
func hasApplier(live metav1.Object, manager string) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}
