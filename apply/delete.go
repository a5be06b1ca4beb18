package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
)

// deleteTries bounds how often a deletion starts over because its object changed.
const deleteTries = 5

// deleteInSteps deletes in the reverse order of applying. What would destroy
// data is looked at when its turn comes, when all that may go has gone.
func (p *pruning) deleteInSteps(ctx context.Context, candidates []observed.Member) error {
	guard, err := newGuard(ctx, p.plan, candidates)
	if err != nil {
		return err
	}
	for _, members := range inReverse(candidates) {
		deadline := time.Now().Add(goneWait) // one for the step, however many finalizers block
		outcomes, err := inStep(ctx, p.plan.set.cluster, members, func(ctx context.Context, m observed.Member) Outcome {
			return p.deleteGuarded(ctx, guard, m, deadline)
		})
		p.result.Outcomes = append(p.result.Outcomes, outcomes...)
		if err != nil {
			return fmt.Errorf("stopped while pruning: %w", err)
		}
	}
	return nil
}

// inReverse groups members by step, last step first.
func inReverse(members []observed.Member) [][]observed.Member {
	steps := make([][]observed.Member, manifest.StepCount)
	for _, m := range members {
		at := manifest.StepCount - 1 - manifest.StepOf(m.ID.GroupKind())
		steps[at] = append(steps[at], m)
	}
	// Namespaces and CRDs share a step of applying. A CRD's objects hold up a
	// Namespace they are in, not the other way round: CRDs first.
	last := steps[manifest.StepCount-1]
	var crds, namespaces []observed.Member
	for _, m := range last {
		if m.ID.GroupKind() == manifest.CRDKind {
			crds = append(crds, m)
		} else {
			namespaces = append(namespaces, m)
		}
	}
	return append(steps[:manifest.StepCount-1], crds, namespaces)
}

// deleteGuarded deletes one object unless that would destroy data unapproved.
func (p *pruning) deleteGuarded(ctx context.Context, guard guard, m observed.Member, deadline time.Time) Outcome {
	is, err := guard.check(ctx, m)
	if err != nil {
		return failed(Outcome{ID: m.ID}, fmt.Errorf("what it still holds could not be found out: %w", err))
	}
	if is.reason != "" {
		return is.outcome(m)
	}
	return p.deleteObserved(ctx, m, deadline)
}

// deleteObserved deletes the very object and version that it has just looked at, and
// calls it pruned only when it is gone, for which it waits until the deadline. What a
// watch or a list said of the object is why it is looked at, and never proof enough:
// the proof is the object itself, label and entry, and the preconditions hold the API
// server to it. An object that changes meanwhile (a workload's status does all the
// time) is looked at again, and needs the same proof again.
func (p *pruning) deleteObserved(ctx context.Context, m observed.Member, deadline time.Time) Outcome {
	for range deleteTries {
		live, err := p.plan.set.client.GetMetadata(ctx, m.GVR, m.ID.Namespace, m.ID.Name)
		switch {
		case kube.DoesNotExist(err):
			return p.confirmGone(ctx, m)
		case kube.NotServed(err):
			return p.unserved(m)
		case err != nil:
			return failed(Outcome{ID: m.ID}, fmt.Errorf("look at it before it is deleted: %w", err))
		}
		now := observed.NewMember(m.ID.GroupKind(), m.GVR, live)
		if now.ID != m.ID || now.UID != m.UID || p.plan.verdict(now) != prune.Own || p.plan.set.neverDeleted(now) != "" {
			return blocked(m, "a user changed it meanwhile, so that it is not ours to delete any more")
		}
		deleted, reason, err := p.deleteVersion(ctx, now)
		switch {
		case reason != "":
			return blocked(m, reason)
		case kube.DoesNotExist(err):
			return p.confirmGone(ctx, m)
		case kube.NotServed(err):
			return p.unserved(m)
		case apierrors.IsConflict(err):
		case err != nil:
			return failed(Outcome{ID: m.ID}, fmt.Errorf("delete: %w", kube.Explain(p.plan.webhooks.Blame(ctx, p.plan.set.cluster.typed, err), m.GVR.Group, m.GVR.Resource, p.plan.set.options.Tier)))
		case deleted.Gone:
			return Outcome{ID: m.ID, Action: Pruned}
		default:
			return p.observeGone(ctx, now, deadline)
		}
	}
	return blocked(m, "it keeps changing while it is looked at; the next sync tries again")
}

// unserved is the outcome of an object whose kind is not served at the moment: that
// says nothing of the object.
func (p *pruning) unserved(m observed.Member) Outcome {
	p.plan.set.cluster.distrustKinds()
	return blocked(m, "its kind is not served at the moment; the next sync looks again")
}

// confirmGone asks once more for an object that is said not to be there: one wrong
// answer shall not pass for a deletion.
func (p *pruning) confirmGone(ctx context.Context, m observed.Member) Outcome {
	live, err := p.plan.set.client.GetMetadata(ctx, m.GVR, m.ID.Namespace, m.ID.Name)
	switch {
	case kube.DoesNotExist(err), err == nil && live.UID != m.UID:
		return Outcome{ID: m.ID, Action: Pruned}
	case kube.NotServed(err):
		return p.unserved(m)
	case err != nil:
		return failed(Outcome{ID: m.ID}, fmt.Errorf("look whether the object is gone: %w", err))
	}
	return failed(Outcome{ID: m.ID}, errors.New("delete: the API server answered that there is no such object, but it is still there"))
}

// deleteVersion deletes one version of one object, unless there is a reason against it
// when its turn has come.
func (p *pruning) deleteVersion(ctx context.Context, m observed.Member) (deleted kube.Deletion, reason string, err error) {
	err = p.plan.set.cluster.write(ctx, func() (err error) {
		if reason = p.postponed(ctx, m.ID); reason != "" {
			return nil
		}
		deleted, err = p.plan.set.client.Delete(ctx, m.GVR, m.ID.Namespace, m.ID.Name, m.UID, m.ResourceVersion)
		return err
	})
	return deleted, reason, err
}

// observeGone waits until a deletion that has begun ends, and remembers it if
// that takes longer.
func (p *pruning) observeGone(ctx context.Context, m observed.Member, deadline time.Time) Outcome {
	p.plan.set.ledger.DeletionBegan(m)
	if err := p.plan.set.awaitGone(ctx, m, deadline); err != nil {
		return blocked(m, err.Error())
	}
	p.plan.set.ledger.DeletionEnded(m.ID)
	return Outcome{ID: m.ID, Action: Pruned}
}

// goneSince returns the deletions that an earlier sync began and that have ended.
func (p *pruning) goneSince() []Outcome {
	var outcomes []Outcome
	for _, id := range p.plan.set.ledger.GoneSince(p.plan.members, func(id manifest.ID) bool { return p.plan.blind[id.GroupKind()] != nil }) {
		outcomes = append(outcomes, Outcome{ID: id, Action: Pruned})
	}
	return outcomes
}
