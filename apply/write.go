package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

const (
	// goneWait bounds how long a sync waits for what it deletes to be gone.
	goneWait = 30 * time.Second
	// servedWait bounds how long a sync waits for a new CRD's kind to be served.
	servedWait = 30 * time.Second
	// Of so many objects a sync shows what changed, and only if the two manifests
	// together have no more than so many bytes.
	diffCount = 50
	diffSize  = 256 << 10
	// pollEvery is the pause between two looks at something that is awaited.
	pollEvery = 100 * time.Millisecond
)

// writer applies one plan's objects.
type writer struct {
	plan   *Plan
	kinds  *kube.Kinds // the plan's, or newer once its CRDs are served
	verify bool        // send also what is known to be as sent
	// goneBy is until when the sync waits for what another writer is deleting.
	goneBy func() time.Time
	diffs  atomic.Int32 // that were made
}

// write brings one object to what git says, and reports what that took.
func (w *writer) write(ctx context.Context, o manifest.Object) Outcome {
	outcome := Outcome{ID: o.ID(), Origin: o.Origin}
	served, found := w.kinds.Served[o.GroupVersionKind()]
	if !found {
		return w.plan.set.pend(outcome, fmt.Sprintf("waits for the CRD of kind %s (%s), which is not served yet; if it stays so, the conditions of the CRD say why", o.ID().Kind, o.GroupVersionKind().GroupVersion()))
	}
	if err := w.plan.ownership(ctx, o.ID()); err != nil {
		return refused(outcome, err)
	}
	entry := w.plan.set.ledger.Entry(o.ID())
	if err := entry.Begin(ctx); err != nil {
		return failed(outcome, err)
	}
	defer w.plan.set.end(entry)
	before, known := w.plan.look(o.ID())
	if outcome, settled := w.settled(outcome, o, before, known); settled {
		return outcome
	}
	if known && before.Terminating {
		if err := w.plan.set.awaitGone(ctx, before, w.goneBy()); err != nil {
			return w.failed(ctx, outcome, o, served, err)
		}
		known = false
	}
	answer, recreated, err := w.plan.set.sending(w.plan, served, o, w.goneBy).do(ctx)
	outcome.Warnings = answer.Warnings
	if err != nil {
		return w.failed(ctx, outcome, o, served, err)
	}
	now := observed.NewMember(o.ID().GroupKind(), served.GVR, answer.Live)
	if known && !answer.Created && len(recreated) == 0 {
		if err := kube.CheckUID(answer.Live, before.UID); err != nil {
			return failed(outcome, err) // the next try knows which of the two it is
		}
	}
	switch {
	case len(recreated) > 0:
		outcome.Action, outcome.Reason = Configured, "recreated, because immutable: "+strings.Join(recreated, ", ")
	case answer.Created:
		outcome.Action = Created
	case known && leftAsItWas(before, now, o):
		outcome.Action = Unchanged
	default:
		outcome.Action, outcome.Diff = Configured, w.diff(entry, o)
	}
	w.plan.set.wrote(entry, o, answer.Live, now)
	return outcome
}

// failed returns the outcome of a write that failed. What it failed for may pass by itself, and
// whoever sees that has the set synced: then the object is pending.
func (w *writer) failed(ctx context.Context, outcome Outcome, o manifest.Object, served kube.ServedKind, err error) Outcome {
	var needs *approvalError
	outcome.NeedsApproval = errors.As(err, &needs)
	var still *stillThereError
	switch {
	case errors.As(err, &still):
		return w.plan.set.pendDying(outcome, observed.Member{ID: outcome.ID, GVR: served.GVR, UID: still.uid}, still)
	case kube.LacksNamespace(err): // since it was planned
		return w.plan.set.pend(outcome, fmt.Sprintf("waits for Namespace %s, which is being deleted or is gone", o.ID().Namespace))
	case kube.LacksKind(err):
		w.plan.set.cluster.distrustKinds()
		return w.plan.set.pend(outcome, fmt.Sprintf("waits for its kind %s (%s), whose CustomResourceDefinition is being deleted or is gone", o.ID().Kind, o.GroupVersionKind().GroupVersion()))
	}
	return failed(outcome, w.plan.set.judge(o, served, w.plan.webhooks.Blame(ctx, w.plan.set.cluster.typed, err)))
}

// diff returns what changed in git about an object that is about to be reported as
// configured; "" if it is not known, or too much to show.
func (w *writer) diff(entry *ledger.Entry, o manifest.Object) string {
	before := w.plan.set.ledger.Before(entry)
	if before == nil || len(before.JSON())+len(o.JSON()) > diffSize || w.diffs.Add(1) > diffCount {
		return ""
	}
	return manifest.Changes(before, o.Content)
}

// asIs reports whether an object is known to be as it was sent, and how that is reported.
// Of most objects that is so at most syncs, which is why it is found out before
// anything else, and without waiting for anyone.
func (w *writer) asIs(o manifest.Object) (Outcome, bool) {
	outcome := Outcome{ID: o.ID(), Origin: o.Origin, Action: Unchanged}
	if _, elsewhere := w.plan.taken[outcome.ID]; elsewhere || w.verify {
		return outcome, false
	}
	live, there := w.plan.look(outcome.ID)
	stands := w.plan.set.ledger.Standing(o, live, there, time.Time{})
	return outcome, stands.Sent && !live.Suspended && stands.Is == ledger.AsSent
}

// settled reports whether an object needs no write, or may have none, and how that is
// reported.
func (w *writer) settled(outcome Outcome, o manifest.Object, before observed.Member, known bool) (Outcome, bool) {
	if known && before.Stopped(o.Annotations()) {
		outcome.Action, outcome.Reason = Unchanged, "suspended by the annotation "+manifest.SuspendAnnotation
		return outcome, true
	}
	if earlier := w.plan.set.ledger.Rejected(o); earlier != nil {
		return failed(outcome, earlier), true
	}
	stands := w.plan.set.ledger.Standing(o, before, known, time.Now())
	if !stands.Sent {
		return outcome, false
	}
	outcome.Action = Unchanged
	switch is := stands.Is; {
	case is == ledger.AsSent:
		return outcome, !w.verify
	case stands.Finished && (is == ledger.Missing || is == ledger.Terminating):
		outcome.Reason = "finished, and not corrected until its content changes"
		return outcome, true
	case w.plan.set.options.Drift == ReportDrift && is != ledger.Terminating:
		outcome.Reason = is.String()
		if stands.Drift != nil {
			outcome.Reason = w.plan.set.driftOf(outcome.ID, stands.Drift).String()
		}
		outcome.Reason += "; not corrected (DRIFT=report)"
		return outcome, true
	case stands.Wait > 0:
		outcome.Reason = fmt.Sprintf("%s again and again; the next correction is due in %s", is, stands.Wait.Round(time.Second))
		return outcome, true
	}
	return outcome, false
}

// awaitGone waits until an object that is being deleted is gone: absent, or
// replaced by another of the same name.
func (s *Set) awaitGone(ctx context.Context, m observed.Member, deadline time.Time) error {
	for {
		meta, err := s.client.GetMetadata(ctx, m.GVR, m.ID.Namespace, m.ID.Name)
		switch {
		case kube.DoesNotExist(err):
			return nil
		case err != nil:
			return fmt.Errorf("look whether the object is gone: %w", err)
		case meta.UID != m.UID:
			return nil
		case time.Now().After(deadline):
			return &stillThereError{uid: m.UID, finalizers: meta.Finalizers}
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
func (s *Set) judge(o manifest.Object, served kube.ServedKind, err error) error {
	if problem, permanent := kube.ManifestError(err); permanent {
		s.ledger.Reject(o, problem)
		return problem
	}
	return kube.Explain(err, o.ID().Group, served.GVR.Resource, s.options.Tier)
}

// leftAsItWas reports whether an apply left the object as it was before. The version alone does
// not say so where others write its status meanwhile; then the generation, our
// entry in managedFields and the metadata that git declares do.
func leftAsItWas(before, now observed.Member, o manifest.Object) bool {
	if before.ResourceVersion == now.ResourceVersion {
		return true
	}
	if before.Generation == 0 || before.Generation != now.Generation || before.Entry != now.Entry {
		return false
	}
	declared := o.Tree()
	return contains(before.Labels, declared.GetLabels()) && contains(before.Annotations, declared.GetAnnotations())
}

// contains reports whether a map has all of some pairs.
func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, found := all[key]; !found || got != value {
			return false
		}
	}
	return true
}

// withLabel returns the object as it is sent: with the set's label.
func withLabel(o manifest.Object, id string) *unstructured.Unstructured {
	labelled := o.Tree()
	labels := labelled.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[manifest.PartOfLabel] = id
	labelled.SetLabels(labels)
	return labelled
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

// pend holds back an object that was about to be written, until its kind is served.
func (s *Set) pend(o Outcome, reason string) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = true
	o.Action, o.Reason = Pending, reason
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
