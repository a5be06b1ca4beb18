package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// prune deletes what left git, and observes it gone. Everything it deletes has
// proof: our label, our own entry in managedFields, no set of this daemon that
// declares it, and a revision that was fetched, transformed, loaded and checked
// without error (else there would be no plan). What needs approval and has none
// stays, with the reason in its outcome. It returns whether nothing is left that
// could be pruned.
func (s *Set) prune(ctx context.Context, plan *Plan, result *Result) (all bool, err error) {
	result.Outcomes = append(result.Outcomes, s.goneSince(plan)...)
	if result.Waits, err = s.settleOthers(ctx, plan); err != nil {
		return false, err
	}
	leaving := s.sortOut(plan)
	result.Outcomes = append(result.Outcomes, leaving.kept...)
	for _, m := range leaving.terminating {
		s.remember(m)
	}
	if result.Waits != "" {
		for _, m := range leaving.candidates {
			result.Outcomes = append(result.Outcomes, blocked(m, result.Waits))
		}
		return false, nil
	}
	if s.hold(plan, leaving.candidates, result) {
		return false, nil
	}
	before := len(result.Outcomes)
	err = s.deleteInSteps(ctx, plan, leaving.candidates, result)
	remains := slices.ContainsFunc(result.Outcomes[before:], func(o Outcome) bool { return o.Action != Pruned })
	return len(leaving.terminating) == 0 && !remains && len(plan.blind) == 0, err
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
		result.Outcomes = append(result.Outcomes, blocked(m, "pruning waits for approval"))
	}
	return true
}

// leavers are the members that are declared no more.
type leavers struct {
	candidates  []member  // may be deleted
	terminating []member  // are being deleted already, which nobody can approve or prevent any more
	kept        []Outcome // of the terminating, and of those that stay whatever anybody approves
}

// sortOut tells what is declared no more and may be deleted from what may not.
func (s *Set) sortOut(plan *Plan) leavers {
	var sorted leavers
	for _, m := range plan.leaving {
		if _, claimed := s.cluster.claimant(m.ID); claimed {
			continue // another repo declares it: it is handed over, never deleted
		}
		switch reason := s.keeps(m); {
		case reason != "":
			sorted.kept = append(sorted.kept, blocked(m, reason))
		case m.Terminating:
			sorted.terminating = append(sorted.terminating, m)
			sorted.kept = append(sorted.kept, blocked(m, "the object is being deleted"+pendingReason(m.Finalizers)))
		default:
			sorted.candidates = append(sorted.candidates, m)
		}
	}
	return sorted
}

// keeps returns why an object is not deleted whatever anybody approves, "" if
// nothing speaks for that.
func (s *Set) keeps(m member) string {
	switch {
	case m.Suspended:
		return "suspended by the annotation " + suspendAnnotation
	case m.Kept:
		return fmt.Sprintf("kept by the annotation %s: \"false\"", pruneAnnotation)
	case m.Owned:
		return "a controller owns it (ownerReferences): it goes with its owner"
	case !s.allowsObject(m.ID):
		return "outside the namespaces in which the configuration allows writing"
	case !s.options.Prune:
		return "pruning is switched off (PRUNE)"
	}
	return ""
}

// untilResolved says of a reason to hold a prune that nobody has to approve anything.
const untilResolved = " (pruning goes on by itself when that is resolved)"

// holds returns why pruning as a whole has to wait for approval.
func (s *Set) holds(plan *Plan, result Result, leaving int) []string {
	var reasons []string
	counts := result.Counts()
	if n := counts[Failed] + counts[Refused]; n > 0 {
		reasons = append(reasons, countObjects(n)+" could not be applied"+untilResolved)
	}
	if n := counts[Parked]; n > 0 {
		reasons = append(reasons, countObjects(n)+" parked"+untilResolved)
	}
	for _, gk := range plan.leftUnknown() {
		// What cannot be counted must not make a prune small enough for its limit.
		reasons = append(reasons, fmt.Sprintf("what is left of %s is not known", gk)+untilResolved)
	}
	if len(plan.objects)+len(plan.held) == 0 {
		reasons = append(reasons, "the revision declares no objects at all")
	}
	if s.options.PruneLimit.exceeded(leaving, plan.had) {
		reasons = append(reasons, fmt.Sprintf("%d of %d objects is more than PRUNE_LIMIT=%s allows", leaving, plan.had, s.options.PruneLimit))
	}
	return append(reasons, plan.sourceChanges()...)
}

// sourceChanges says in what the manifests' source differs from what the parent
// remembers: such a change can make every object leave git by mistake.
func (p Plan) sourceChanges() []string {
	if p.parent.data(dataURL) == "" {
		return nil
	}
	var changes []string
	compare := func(what, key, now string) bool {
		before := p.parent.data(key)
		if before != now {
			changes = append(changes, fmt.Sprintf("%s changed from %q to %q", what, before, now))
		}
		return before == now
	}
	compare("the repo's URL", dataURL, p.Revision.URL)
	if compare("the source of the manifests", dataSource, p.Revision.Source) {
		compare("the directory", dataDirectory, p.Revision.Dir) // another source has another one
	}
	return changes
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
