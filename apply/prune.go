package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
)

// pruning deletes what left git, and observes it gone. Everything it deletes has proof:
// our label, our own entry in managedFields, its UID on the set's record, no set of this
// daemon that declares it, and a revision that was fetched, transformed, loaded and
// checked without error (else there would be no plan). What needs approval and has none
// stays, with the reason in its outcome.
type pruning struct {
	plan   *Plan
	result *Result

	candidates []observed.Member // that were found last, whatever became of them
	undecided  bool              // something that left git waits for what no one has decided yet
}

// pruning returns the pruning of a plan, whose outcomes go to the result.
func (p *Plan) pruning(result *Result) *pruning {
	return &pruning{plan: p, result: result}
}

// first deletes those webhook configurations and APIServices that left git, before
// anything is applied: one that is broken could fail every write, and the failure would
// keep it from being deleted. They hold no data. All else that a deletion needs they
// need, too.
func (p *pruning) first(ctx context.Context) error {
	if !slices.ContainsFunc(p.plan.leaving, func(m observed.Member) bool { return inTheWay(m.ID.GroupKind()) }) {
		return nil
	}
	waits, err := p.settleOthers(ctx)
	if err != nil || waits != "" {
		return err // they are looked at again after applying
	}
	going, err := p.release(ctx, p.sortOut(), func(h *prune.Hold) { h.Failed, h.Waiting, h.Unseen = 0, 0, nil })
	if err != nil {
		return err
	}
	var now []observed.Member
	for _, m := range going.members {
		if inTheWay(m.ID.GroupKind()) {
			now = append(now, m)
		}
	}
	if len(now) == 0 {
		return nil
	}
	err = p.deleteInSteps(ctx, now)
	// What could not be deleted yet is looked at again after applying.
	p.result.Outcomes = slices.DeleteFunc(p.result.Outcomes, func(o Outcome) bool { return o.Origin.File == "" && o.Action != Pruned })
	if err != nil {
		return err
	}
	return p.plan.survey(ctx)
}

// inTheWay reports whether objects of a kind can refuse requests for others.
func inTheWay(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return true
	}
	return false
}

// rest deletes all that left git, after everything was applied. It returns whether
// nothing is left that could be pruned.
func (p *pruning) rest(ctx context.Context) (all bool, err error) {
	result := p.result
	result.Outcomes = append(result.Outcomes, p.goneSince()...)
	if result.Waits, err = p.settleOthers(ctx); err != nil {
		return false, err
	}
	leaving := p.sortOut()
	p.candidates = leaving.candidates
	result.Outcomes = append(result.Outcomes, leaving.kept...)
	for _, m := range leaving.terminating {
		p.plan.set.ledger.DeletionBegan(m)
	}
	p.undecided = leaving.switchedOff || !p.plan.seesAll()
	if result.Waits != "" {
		for _, m := range leaving.candidates {
			result.Outcomes = append(result.Outcomes, blocked(m, result.Waits))
		}
		p.undecided = true
		return false, nil
	}
	going, err := p.release(ctx, leaving, func(*prune.Hold) {})
	if err != nil {
		return false, err
	}
	p.undecided = p.undecided || len(going.held) > 0
	p.noteHeld(going)
	before := len(result.Outcomes)
	err = p.deleteInSteps(ctx, going.members)
	remains := slices.ContainsFunc(result.Outcomes[before:], func(o Outcome) bool { return o.Action != Pruned })
	return len(leaving.terminating) == 0 && len(going.held) == 0 && !remains && len(p.plan.blind) == 0, err
}

// going is what of the candidates may be deleted now, and what waits for approval.
type going struct {
	members []observed.Member
	held    []observed.Member
	reasons []string // why they are held
}

// release decides which candidates may be deleted. What a person approves now is
// recorded before anything of it is deleted.
func (p *pruning) release(ctx context.Context, leaving leavers, adjust func(*prune.Hold)) (going, error) {
	decided := p.decide(leaving.candidates, adjust)
	if len(decided.approved) == 0 {
		return decided.going, nil
	}
	return decided.going, p.approve(ctx, decided.approved)
}

// decided is a verdict on candidates.
type decided struct {
	going
	approved []observed.Member // of those that may go, the ones that a person approves only now
}

// decide says which candidates may be deleted, as values have it: what was approved
// before, or is approved now, goes; the rest goes unless there is a reason to hold it.
func (p *pruning) decide(candidates []observed.Member, adjust func(*prune.Hold)) decided {
	var d decided
	var open []observed.Member
	for _, m := range candidates {
		if p.plan.allows(m) {
			d.members = append(d.members, m)
		} else {
			open = append(open, m)
		}
	}
	if len(open) == 0 {
		return d
	}
	if p.plan.consent.covers(p.plan.Revision.ID, asObjects(open)) {
		d.members, d.approved = candidates, open
		return d
	}
	hold := p.hold(len(open))
	adjust(&hold)
	if d.reasons = hold.Reasons(); len(d.reasons) > 0 {
		d.held = open
		return d
	}
	d.members = candidates
	return d
}

// hold is what decides whether so many objects wait for approval.
func (p *pruning) hold(leaving int) prune.Hold {
	counts := p.result.Counts()
	h := prune.Hold{
		Failed:   counts[Failed] + counts[Refused],
		Waiting:  counts[Pending],
		Declared: len(p.plan.objects) + len(p.plan.held),
		Changes:  p.plan.sourceChanges(),
	}
	for _, gk := range p.plan.leftUnknown() {
		h.Unseen = append(h.Unseen, gk.String())
	}
	if p.plan.set.options.PruneLimit.Exceeded(leaving, p.plan.had) {
		h.Limit = fmt.Sprintf("%d of %d objects is more than PRUNE_LIMIT=%s allows", leaving, p.plan.had, p.plan.set.options.PruneLimit)
	}
	return h
}

// noteHeld notes in the result what waits for approval as a whole, if anything does.
func (p *pruning) noteHeld(g going) {
	if len(g.held) == 0 {
		return
	}
	p.result.PruneHeld = p.whyHeld(g)
	for _, m := range g.held {
		p.result.Outcomes = append(p.result.Outcomes, needsApproval(m, "pruning waits for approval"))
	}
}

// whyHeld says which prune waits for approval, why, and what releases it.
func (p *pruning) whyHeld(g going) string {
	revision, objects := p.plan.Revision.ID, asObjects(g.held)
	reasons := append(slices.Clone(g.reasons), p.plan.consent.objections(revision, objects)...)
	return fmt.Sprintf("pruning %s waits for approval of revision %s: %s; %s",
		prune.CountObjects(len(g.held)), revision, strings.Join(reasons, "; "), p.plan.set.howToApprove(revision, prune.Hash(objects)))
}

// leavers are the members that are declared no more.
type leavers struct {
	candidates  []observed.Member // may be deleted
	terminating []observed.Member // are being deleted already, which no one can approve or prevent any more
	kept        []Outcome         // of the terminating, and of those that stay whatever anybody approves
	switchedOff bool              // some are kept by the configuration, which may be changed back
}

// sortOut separates what is declared no more and may be deleted from what may not.
func (p *pruning) sortOut() leavers {
	var sorted leavers
	for _, m := range p.plan.leaving {
		if _, claimed := p.plan.set.cluster.claims.Holder(m.ID); claimed {
			continue // another repo declares it: it is handed over, never deleted
		}
		exempt, off := exempts(m), p.plan.set.switchedOff(m)
		switch {
		case exempt != "":
			sorted.kept = append(sorted.kept, exempted(m, exempt))
		case off != "":
			sorted.switchedOff = true
			sorted.kept = append(sorted.kept, exempted(m, off))
		case m.Terminating:
			sorted.terminating = append(sorted.terminating, m)
			sorted.kept = append(sorted.kept, blocked(m, "the object is being deleted"+pendingReason(m.Finalizers)))
		case p.plan.verdict(m) != prune.Own:
			sorted.kept = append(sorted.kept, blocked(m, p.copied(m)))
		default:
			sorted.candidates = append(sorted.candidates, m)
		}
	}
	return sorted
}

// copied says why an object that looks like the set's own stays.
func (p *pruning) copied(m observed.Member) string {
	revision := p.plan.Revision.ID
	return fmt.Sprintf("copied or restored: it carries the label of this set, which has no record of having applied this very object (uid %s); delete it by hand, or approve its deletion by name: %s",
		m.UID, p.plan.set.approvalCommand(revision, m.ID.String()))
}

// neverDeleted returns why an object is not deleted whatever a user approves, "" if
// there is no such reason.
func (s *Set) neverDeleted(m observed.Member) string {
	if reason := exempts(m); reason != "" {
		return reason
	}
	return s.switchedOff(m)
}

// exempts returns what on an object itself keeps it from being deleted, "" if nothing does.
func exempts(m observed.Member) string {
	switch {
	case m.Suspended:
		return "suspended by the annotation " + manifest.SuspendAnnotation
	case m.Kept:
		return fmt.Sprintf("kept by the annotation %s: \"false\"", manifest.PruneAnnotation)
	case m.Owned:
		return "a controller owns it (ownerReferences): it goes with its owner"
	}
	return ""
}

// switchedOff returns what in the configuration keeps an object from being deleted, "" if
// nothing does.
func (s *Set) switchedOff(m observed.Member) string {
	switch {
	case !s.allowsObject(m.ID):
		return "outside the namespaces in which the configuration allows writing"
	case !s.options.Prune:
		return "pruning is switched off (PRUNE)"
	}
	return ""
}

// blocked is the outcome of an object that left git and stays for now.
func blocked(m observed.Member, reason string) Outcome {
	return Outcome{ID: m.ID, Action: Blocked, Reason: reason}
}

// exempted is the outcome of an object that stays whatever anybody approves.
func exempted(m observed.Member, reason string) Outcome {
	return Outcome{ID: m.ID, Action: Blocked, Reason: reason, Exempt: true}
}

// needsApproval is the outcome of an object that goes when a person approves it.
func needsApproval(m observed.Member, reason string) Outcome {
	return Outcome{ID: m.ID, Action: Blocked, Reason: reason, NeedsApproval: true}
}
