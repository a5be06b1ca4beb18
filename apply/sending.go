package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sending is one object on its way to the API server, with whatever must follow: creating it
// again where that is wanted and needed, and taking over what other appliers left.
type sending struct {
	set    *Set
	plan   *Plan // nil for a correction, which leaves to the next sync what has to be created again
	from   manifest.Object
	gvr    schema.GroupVersionResource
	object *unstructured.Unstructured // as it is sent: with the set's label
	goneBy func() time.Time           // until when to wait for what is being deleted
}

// sending prepares an object to be sent.
func (s *Set) sending(plan *Plan, served kube.ServedKind, o manifest.Object, goneBy func() time.Time) *sending {
	return &sending{set: s, plan: plan, from: o, gvr: served.GVR, object: withLabel(o, s.id), goneBy: goneBy}
}

// do sends the object. It returns the fields for which the object was created again.
func (s *sending) do(ctx context.Context) (answer kube.Answer, recreated []string, err error) {
	answer, err = s.send(ctx)
	if fields := kube.ImmutableFields(err); len(fields) > 0 {
		if s.from.Annotations()[manifest.RecreateAnnotation] != "true" {
			return answer, nil, fmt.Errorf("immutable: %s: %w; the annotation %s: \"true\" lets kubesync delete the object and create it again",
				strings.Join(fields, ", "), err, manifest.RecreateAnnotation)
		}
		if s.plan == nil {
			s.set.wake()
			return answer, nil, fmt.Errorf("immutable: %s: the next sync creates the object again", strings.Join(fields, ", "))
		}
		recreated = fields
		answer, err = s.recreate(ctx)
	}
	if err != nil {
		return answer, recreated, err
	}
	if answer.Live.GetDeletionTimestamp() != nil {
		// A user was deleting it. What we applied goes with it, or already has.
		if err := s.set.awaitGone(ctx, observed.NewMember(s.from.ID().GroupKind(), s.gvr, answer.Live), s.goneBy()); err != nil {
			return answer, recreated, err
		}
		if answer, err = s.send(ctx); err != nil {
			return answer, recreated, err
		}
	}
	if answer.Live.GetLabels()[manifest.PartOfLabel] != s.set.id {
		return answer, recreated, fmt.Errorf("admission removed the label %s from the object: kubesync could neither watch nor prune it; exempt the label in the admission policy or webhook", manifest.PartOfLabel)
	}
	answer, err = s.adopt(ctx, answer)
	return answer, recreated, err
}

// send applies an object, patiently where its kind is only just being served.
func (s *sending) send(ctx context.Context) (kube.Answer, error) {
	var answer kube.Answer
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := s.set.cluster.write(ctx, func() (err error) {
			answer, err = s.set.client.Apply(ctx, s.gvr, s.object, kube.FieldManager)
			return kube.WithoutSecrets(s.object, err)
		})
		if !kube.NotServed(err) || time.Now().After(deadline) {
			return answer, err
		}
		if err := pause(ctx); err != nil {
			return answer, err
		}
	}
}
