package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// prune deletes what left git, and observes it gone. Everything it deletes has
// proof: our label, our own entry in managedFields, no set of this daemon that
// declares it, and a revision that was fetched, transformed, loaded and checked
// without error (else there would be no plan). What needs approval and has none
// stays, with the reason in its outcome.
func (s *Set) prune(ctx context.Context, plan *Plan, result *Result) error {
	result.Outcomes = append(result.Outcomes, s.goneSince(plan)...)
	candidates, kept := s.candidates(plan)
	result.Outcomes = append(result.Outcomes, kept...)
	if s.hold(plan, candidates, result) {
		return nil
	}
	return s.deleteInSteps(ctx, plan, candidates, result)
}

// hold notes in the result that the whole prune waits, if it has to.
func (s *Set) hold(plan *Plan, candidates []member, result *Result) bool {
	if len(candidates) == 0 || plan.approved() {
		return false
	}
	reasons := strings.Join(s.holds(plan, *result, len(candidates)), "; ")
	if reasons == "" {
		return false
	}
	result.PruneHeld = fmt.Sprintf("pruning %s waits for approval of revision %s: %s; %s",
		countObjects(len(candidates)), plan.Revision.Revision, reasons, s.howToApprove(plan.Revision.Revision))
	for _, m := range candidates {
		result.Outcomes = append(result.Outcomes, blocked(m, "waits for approval: "+reasons))
	}
	return true
}

// candidates splits what is declared no more into what may be deleted and what
// may not, whatever anybody approves.
func (s *Set) candidates(plan *Plan) (candidates []member, kept []Outcome) {
	for _, m := range plan.leaving {
		switch other, claimed := s.cluster.claimant(m.ID); {
		case claimed && other != s.options.Name:
			// Another repo declares it: it is handed over, never deleted.
		case m.Annotations[suspendAnnotation] == "true":
			kept = append(kept, blocked(m, "suspended by the annotation "+suspendAnnotation))
		case m.Annotations[pruneAnnotation] == "false":
			kept = append(kept, blocked(m, fmt.Sprintf("kept by the annotation %s: \"false\"", pruneAnnotation)))
		case m.Owned:
			kept = append(kept, blocked(m, "a controller owns it (ownerReferences): it goes with its owner"))
		case m.ID.Namespace != "" && !s.allows(m.ID.Namespace):
			kept = append(kept, blocked(m, fmt.Sprintf("namespace %s is not among those in which the configuration allows writing", m.ID.Namespace)))
		case !s.options.Prune:
			kept = append(kept, blocked(m, "pruning is switched off (PRUNE)"))
		default:
			candidates = append(candidates, m)
		}
	}
	return candidates, kept
}

// holds returns why pruning as a whole has to wait for approval.
func (s *Set) holds(plan *Plan, result Result, leaving int) []string {
	var reasons []string
	counts := result.Counts()
	if n := counts[Failed] + counts[Refused]; n > 0 {
		reasons = append(reasons, countObjects(n)+" could not be applied")
	}
	if n := counts[Parked]; n > 0 {
		reasons = append(reasons, countObjects(n)+" parked")
	}
	if len(plan.objects)+len(plan.held) == 0 {
		reasons = append(reasons, "the revision declares no objects at all")
	}
	live := 0
	for _, m := range plan.members {
		if m.Set == s.id {
			live++
		}
	}
	if s.options.PruneLimit.exceeded(leaving, live) {
		reasons = append(reasons, fmt.Sprintf("%d of %d objects is more than PRUNE_LIMIT=%s allows", leaving, live, s.options.PruneLimit))
	}
	return append(reasons, plan.sourceChanges()...)
}

// sourceChanges says in what the manifests' source differs from what the parent
// remembers: such a change can make every object leave git by mistake.
func (p Plan) sourceChanges() []string {
	var changes []string
	for _, compared := range []struct{ what, key, now string }{
		{"the repo's URL", dataURL, p.Revision.URL},
		{"the source of the manifests", dataSource, p.Revision.Source},
		{"the directory", dataDirectory, p.Revision.Dir},
	} {
		before := p.parent.data(compared.key)
		if p.parent.data(dataURL) != "" && before != compared.now {
			changes = append(changes, fmt.Sprintf("%s changed from %q to %q", compared.what, before, compared.now))
		}
	}
	return changes
}

// deleteInSteps deletes in the reverse order of applying. What would destroy
// data is looked at when its turn comes, when all that may go has gone.
func (s *Set) deleteInSteps(ctx context.Context, plan *Plan, candidates []member, result *Result) error {
	guard, err := s.newGuard(ctx, plan, candidates)
	if err != nil {
		return err
	}
	for _, members := range inReverse(candidates) {
		var mu sync.Mutex
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(cap(s.cluster.writes))
		for _, m := range members {
			group.Go(func() error {
				outcome := s.deleteGuarded(ctx, guard, m)
				mu.Lock()
				defer mu.Unlock()
				result.Outcomes = append(result.Outcomes, outcome)
				if unreachable(outcome.Err) {
					return fmt.Errorf("the API server cannot be reached: %w", outcome.Err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("stopped while pruning: %w", err)
		}
	}
	return nil
}

// inReverse groups members by step, last step first.
func inReverse(members []member) [][]member {
	steps := make([][]member, stepCount)
	for _, m := range members {
		at := stepCount - 1 - stepOf(m.ID.GroupKind())
		steps[at] = append(steps[at], m)
	}
	// Namespaces and CRDs share a step of applying. A CRD's objects hold up a
	// Namespace they are in, not the other way round: CRDs first.
	last := steps[stepCount-1]
	var crds, namespaces []member
	for _, m := range last {
		if m.ID.GroupKind() == crdKind {
			crds = append(crds, m)
		} else {
			namespaces = append(namespaces, m)
		}
	}
	return append(steps[:stepCount-1], crds, namespaces)
}

// deleteGuarded deletes one object unless that would destroy data unapproved.
func (s *Set) deleteGuarded(ctx context.Context, guard guard, m member) Outcome {
	if m.Terminating {
		s.remember(m)
		return blocked(m, "is being deleted"+pendingReason(m.Finalizers))
	}
	reason, err := guard.check(ctx, m)
	if err != nil {
		return blocked(m, fmt.Sprintf("what it still holds could not be found out: %v", err))
	}
	if reason != "" {
		return blocked(m, reason)
	}
	return s.deleteObserved(ctx, m)
}

// deleteObserved deletes the very object and version that was looked at, and
// calls it pruned only when it is gone.
func (s *Set) deleteObserved(ctx context.Context, m member) Outcome {
	var deleted deletion
	err := s.cluster.write(ctx, func() (err error) {
		deleted, err = s.client.delete(ctx, m.GVR, m.ID.Namespace, m.ID.Name, m.UID, m.ResourceVersion)
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		return Outcome{ID: m.ID, Action: Pruned}
	case apierrors.IsConflict(err):
		return blocked(m, "changed since it was looked at; looked at again at the next sync")
	case err != nil:
		return failed(Outcome{ID: m.ID}, fmt.Errorf("delete: %w", s.explain(err, m.object(), m.GVR.Resource)))
	case deleted.Gone:
		return Outcome{ID: m.ID, Action: Pruned}
	}
	s.remember(m)
	if err := s.awaitGone(ctx, m); err != nil {
		return blocked(m, err.Error())
	}
	s.forgetDeletion(m.ID)
	return Outcome{ID: m.ID, Action: Pruned}
}

// remember notes a deletion that was begun and not yet observed to end.
func (s *Set) remember(m member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleting[m.ID] = m
}

// forgetDeletion drops such a note.
func (s *Set) forgetDeletion(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.deleting, id)
}

// goneSince returns the deletions that an earlier sync began and that have ended.
func (s *Set) goneSince(plan *Plan) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var outcomes []Outcome
	for id, m := range s.deleting {
		if now, there := plan.members[id]; there && now.UID == m.UID {
			continue
		}
		delete(s.deleting, id)
		outcomes = append(outcomes, Outcome{ID: id, Action: Pruned})
	}
	slices.SortFunc(outcomes, func(a, b Outcome) int { return compareIDs(a.ID, b.ID) })
	return outcomes
}

// blocked is the outcome of an object that left git and stays for now.
func blocked(m member, reason string) Outcome {
	return Outcome{ID: m.ID, Action: Blocked, Reason: reason}
}

// countObjects words a number of objects.
func countObjects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
