package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// goneWait bounds how long a sync waits for an object that is being deleted.
	goneWait = 30 * time.Second
	// servedWait bounds how long a sync waits for a new CRD's kind to be served.
	servedWait = 30 * time.Second
	// pollEvery is the pause between two looks at something that is awaited.
	pollEvery = 100 * time.Millisecond
)

// writer applies one plan's objects.
type writer struct {
	set   *Set
	plan  *Plan
	kinds *kinds        // the plan's, or newer once its CRDs are served
	taken map[ID]string // declared by another repo of this daemon
}

// write brings one object to what git says, and tells what that took.
func (w *writer) write(ctx context.Context, o Object) Outcome {
	outcome := Outcome{ID: o.ID(), Origin: o.Origin}
	served, found := w.kinds.served[o.GroupVersionKind()]
	if !found {
		return parked(outcome, fmt.Sprintf("waits for the CRD of kind %s (%s), which is not served yet", o.GetKind(), o.GetAPIVersion()))
	}
	if err := w.set.ownership(ctx, w.plan, w.taken, o.ID()); err != nil {
		return refused(outcome, err)
	}
	before, known := w.plan.members[o.ID()]
	if known && before.suspended(o.GetAnnotations()) {
		outcome.Action, outcome.Reason = Unchanged, "suspended by the annotation "+suspendAnnotation
		return outcome
	}
	content := contentHash(o)
	if earlier, rejected := w.set.rejectedBefore(o.ID(), content); rejected {
		return failed(outcome, earlier)
	}
	if known && before.Terminating {
		if err := w.set.awaitGone(ctx, before, time.Now().Add(goneWait)); err != nil {
			return failed(outcome, err)
		}
		known = false
	}
	answer, recreated, err := w.apply(ctx, served, o)
	outcome.Warnings = answer.Warnings
	if err != nil {
		return failed(outcome, w.set.judge(o, served, content, err))
	}
	switch {
	case len(recreated) > 0:
		outcome.Action, outcome.Reason = Configured, "recreated, because immutable: "+strings.Join(recreated, ", ")
	case answer.Created:
		outcome.Action = Created
	case known && before.same(o, answer.Live):
		outcome.Action = Unchanged
	default:
		outcome.Action = Configured
	}
	return outcome
}

// apply sends one object and whatever must follow: creating it again where that
// is wanted and needed, and taking over what other appliers left.
func (w *writer) apply(ctx context.Context, served servedKind, o Object) (answer written, recreated []string, err error) {
	labelled := withLabel(o, w.set.id)
	answer, err = w.send(ctx, served.GVR, labelled)
	if fields := immutableFields(err); len(fields) > 0 {
		if o.GetAnnotations()[recreateAnnotation] != "true" {
			return answer, nil, fmt.Errorf("immutable: %s: %w; the annotation %s: \"true\" lets kubesync delete the object and create it again",
				strings.Join(fields, ", "), err, recreateAnnotation)
		}
		recreated = fields
		answer, err = w.recreate(ctx, served.GVR, labelled)
	}
	if err != nil {
		return answer, recreated, err
	}
	if answer.Live.GetDeletionTimestamp() != nil {
		// Somebody was deleting it. What we applied goes with it, or already has.
		if err := w.set.awaitGone(ctx, newMember(o.ID().GroupKind(), served.GVR, answer.Live), time.Now().Add(goneWait)); err != nil {
			return answer, recreated, err
		}
		if answer, err = w.send(ctx, served.GVR, labelled); err != nil {
			return answer, recreated, err
		}
	}
	if answer.Live.GetLabels()[partOfLabel] != w.set.id {
		return answer, recreated, fmt.Errorf("admission removed the label %s from the object: kubesync could neither watch nor prune it; exempt the label in the admission policy or webhook", partOfLabel)
	}
	answer, err = w.set.adopt(ctx, served.GVR, labelled, answer)
	return answer, recreated, err
}

// send applies an object, patiently where its kind is only just being served.
func (w *writer) send(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured) (written, error) {
	var answer written
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := w.set.cluster.write(ctx, func() (err error) {
			answer, err = w.set.client.apply(ctx, gvr, object, FieldManager, false)
			return withoutSecrets(object, err)
		})
		if !notServed(err) || time.Now().After(deadline) {
			return answer, err
		}
		if err := pause(ctx); err != nil {
			return answer, err
		}
	}
}

// recreate deletes an object whose immutable fields have to change, and creates
// it again. The proof it needs is the annotation in git; it deletes the very
// object it has looked at, and none that a controller owns.
func (w *writer) recreate(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured) (written, error) {
	live, err := w.set.client.get(ctx, gvr, object.GetNamespace(), object.GetName())
	if err != nil && !apierrors.IsNotFound(err) {
		return written{}, fmt.Errorf("look at the object before it is recreated: %w", err)
	}
	if err == nil {
		if owners := live.GetOwnerReferences(); len(owners) > 0 {
			return written{}, fmt.Errorf("not recreated: %s %s owns the object", owners[0].Kind, owners[0].Name)
		}
		gone := newMember(object.GroupVersionKind().GroupKind(), gvr, live)
		err = w.set.cluster.write(ctx, func() error {
			_, err := w.set.client.delete(ctx, gvr, gone.ID.Namespace, gone.ID.Name, gone.UID, "")
			return err
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return written{}, fmt.Errorf("delete the object to recreate it: %w", err)
		}
		if err := w.set.awaitGone(ctx, gone, time.Now().Add(goneWait)); err != nil {
			return written{}, err
		}
	}
	return w.send(ctx, gvr, object)
}

// awaitGone waits until an object that is being deleted is gone: absent, or
// replaced by another of the same name.
func (s *Set) awaitGone(ctx context.Context, m member, deadline time.Time) error {
	for {
		meta, err := s.client.getMetadata(ctx, m.GVR, m.ID.Namespace, m.ID.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("look whether the object is gone: %w", err)
		case meta.UID != m.UID:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the object is being deleted%s", pendingReason(meta.Finalizers))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pendingReason says what a deletion waits for.
func pendingReason(finalizers []string) string {
	if len(finalizers) == 0 {
		return ", and not gone yet"
	}
	return " and waits for its finalizers: " + strings.Join(finalizers, ", ")
}

// judge explains a failed write, and remembers it if the same content would only fail again.
func (s *Set) judge(o Object, served servedKind, content string, err error) error {
	if problem, permanent := manifestError(err); permanent {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rejected[o.ID()] = rejection{content: content, err: problem}
		return problem
	}
	return s.explain(err, o, served.GVR.Resource)
}

// rejectedBefore returns what the API server said of the very same content.
func (s *Set) rejectedBefore(id ID, content string) (error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	earlier, found := s.rejected[id]
	if found && earlier.content == content {
		return earlier.err, true
	}
	delete(s.rejected, id)
	return nil, false
}

// same tells whether an apply left the object as it was. The version alone does
// not say so where others write its status meanwhile; then the generation, our
// entry in managedFields and the metadata that git declares do.
func (m member) same(o Object, live *unstructured.Unstructured) bool {
	if m.ResourceVersion == live.GetResourceVersion() {
		return true
	}
	return m.Generation != 0 && m.Generation == live.GetGeneration() &&
		m.Entry == ownEntry(live.GetManagedFields()) &&
		contains(m.Labels, o.GetLabels()) && contains(m.Annotations, o.GetAnnotations())
}

// contains tells whether a map has all of some pairs.
func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, found := all[key]; !found || got != value {
			return false
		}
	}
	return true
}

// withLabel returns a copy of the object that carries the set's label; git's
// object stays as it is.
func withLabel(o Object, id string) *unstructured.Unstructured {
	labelled := o.DeepCopy()
	labels := maps.Clone(labelled.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[partOfLabel] = id
	labelled.SetLabels(labels)
	return labelled
}

// contentHash is a hash of what a manifest says.
func contentHash(o Object) string {
	body, err := json.Marshal(o.Object)
	if err != nil {
		return "" // never equal to a hash: the API client reports what cannot be encoded
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// pause waits until the next look, or returns why the context ended.
func pause(ctx context.Context) error {
	select {
	case <-time.After(pollEvery):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func parked(o Outcome, reason string) Outcome {
	o.Action, o.Reason = Parked, reason
	return o
}

func refused(o Outcome, err error) Outcome {
	o.Action, o.Reason, o.Err = Refused, err.Error(), err
	return o
}

func failed(o Outcome, err error) Outcome {
	o.Action, o.Err = Failed, err
	return o
}
