package apply

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/parent"
)

// Apply makes the cluster what the plan says: the parent first, then the objects
// step by step, then what left git, then the parent's record of it. An error
// says that it could not be carried through; what was done until then is in the
// result, and nothing was pruned after it. What could refuse every write goes before all
// else (pruning.first).
func (s *Set) Apply(ctx context.Context, plan Plan) (Result, error) {
	reason := s.suspended(plan.parent)
	if s.activate(reason == ""); reason != "" {
		return Result{Suspended: reason, Warnings: plan.Warnings}, nil
	}
	if err := s.checkWriter(ctx, plan.parent); err != nil {
		s.activate(false)
		return Result{}, err
	}
	if err := s.declare(ctx, &plan); err != nil {
		return Result{}, err
	}
	result := Result{}
	pruning := plan.pruning(&result)
	if err := pruning.first(ctx); err != nil { // before anything that it could refuse
		return result, err
	}
	if err := s.widen(ctx, &plan); err != nil {
		return result, err
	}
	if s.options.Tier == manifest.Application {
		if err := plan.enterNamespaces(ctx); err != nil {
			return result, err
		}
	}
	result.Warnings, result.Outcomes = plan.Warnings, append(result.Outcomes, plan.held...)
	if err := s.applySteps(ctx, &plan, &result); err != nil {
		return result, err
	}
	pruned, err := pruning.rest(ctx)
	result.Approve = s.approval(plan.Revision.ID, pruning.candidates, result)
	if err != nil {
		return result, err
	}
	if err := s.record(ctx, pruning, pruned); err != nil {
		return result, err
	}
	s.stand(&plan, result)
	return result, nil
}

// suspended returns what has stopped every write to the set, "" if nothing has.
func (s *Set) suspended(p parent.Parent) string {
	switch {
	case s.options.Suspend:
		return "the configuration suspends the repo"
	case p.Suspended():
		return fmt.Sprintf("the annotation %s on ConfigMap %s suspends the repo", manifest.SuspendAnnotation, s.parentRef())
	}
	return ""
}

// activate says whether drift may be corrected from now on.
func (s *Set) activate(active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = active
}

// mayCorrect reports whether drift may be corrected now: a sync has been let through, and
// no one has suspended the set since, which counts at once, however long the next sync
// takes to get that far.
func (s *Set) mayCorrect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active && s.steering[manifest.SuspendAnnotation] != "true"
}

// verifies reports whether this sync is one that applies everything, known to be as
// applied or not: what ownership does not show, such as a field that admission
// rewrote, goes no further than that. Where drift is only to be reported there is none.
func (s *Set) verifies(now time.Time) bool {
	if s.options.Resync <= 0 || s.options.Drift == ReportDrift {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	due := !s.verify.IsZero() && now.After(s.verify)
	if due || s.verify.IsZero() {
		s.verify = now.Add(s.options.Resync*9/10 + rand.N(s.options.Resync/5+1))
	}
	return due
}

// verifyDue reports whether the next sync is to apply everything.
func (s *Set) verifyDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.verify.IsZero() && now.After(s.verify)
}

// applySteps writes the objects, each step finished before the next. A single
// object's failure stops nothing else; an API server that cannot be reached does.
func (s *Set) applySteps(ctx context.Context, plan *Plan, result *Result) error {
	w := &writer{plan: plan, kinds: plan.kinds, verify: plan.base == nil && s.verifies(time.Now()), goneBy: soon()}
	all := plan.toLookAt()
	result.Others = len(plan.objects) - len(all)
	result.Outcomes = slices.Grow(result.Outcomes, len(all))
	for at, objects := range manifest.InSteps(all) {
		outcomes, err := inStep(ctx, s.cluster, w.toWrite(objects, result), w.write)
		result.Outcomes = append(result.Outcomes, outcomes...)
		if err != nil {
			return err
		}
		if manifest.Step(at) == manifest.StepFoundations {
			if w.kinds, err = s.awaitKinds(ctx, w.kinds, objects, result.Outcomes); err != nil {
				return err
			}
		}
	}
	return nil
}

// toWrite returns those of a step's objects that have to be written; the outcomes of the
// others are known.
func (w *writer) toWrite(objects []manifest.Object, result *Result) []manifest.Object {
	var rest []manifest.Object
	for _, o := range objects {
		if outcome, asIs := w.asIs(o); asIs {
			result.Outcomes = append(result.Outcomes, outcome)
		} else if waits := notBefore(o, w.plan.objects, result.Outcomes); waits != "" {
			result.Outcomes = append(result.Outcomes, w.plan.set.pend(Outcome{ID: o.ID(), Origin: o.Origin}, waits))
		} else {
			rest = append(rest, o)
		}
	}
	return rest
}

// inStep does one step's objects or members, as many at a time as the cluster
// allows, and stops when the API server cannot be reached.
func inStep[T any](ctx context.Context, c *Cluster, step []T, do func(context.Context, T) Outcome) ([]Outcome, error) {
	var mu sync.Mutex
	outcomes := make([]Outcome, 0, len(step))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(c.writes))
	for _, one := range step {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			outcome := do(ctx, one)
			mu.Lock()
			defer mu.Unlock()
			outcomes = append(outcomes, outcome)
			if ctx.Err() == nil && kube.Unreachable(outcome.Err) {
				return fmt.Errorf("the API server cannot be reached: %w", outcome.Err)
			}
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(outcomes, func(a, b Outcome) int { return a.ID.Compare(b.ID) })
	if err != nil {
		err = fmt.Errorf("stopped after %d of %d objects of this step: %w", len(outcomes), len(step), err)
	}
	return outcomes, err
}

// record writes into the parent what the sync came to: the scope shrinks to what
// is there now. Where the objects came from is recorded only when all that left git was
// decided over, since a changed source is one of the things that hold a prune; or when a
// person has approved it. Whether all was pruned that could be decides for how long an
// approval lasts.
func (s *Set) record(ctx context.Context, p *pruning, pruned bool) error {
	plan, result := p.plan, *p.result
	ids := append(idsOf(plan.objects), result.remaining()...)
	for _, held := range plan.held {
		ids = append(ids, held.ID)
	}
	data := map[string]string{
		parent.DataRevision: plan.Revision.ID,
		parent.DataRef:      plan.Revision.Ref,
		parent.DataSubject:  plan.Revision.Subject,
		parent.DataTier:     s.options.Tier.String(),
		parent.DataMode:     plan.Revision.Mode,
		parent.DataResult:   result.state(),
		parent.DataTrailer:  "",
		parent.DataFinished: s.ledger.Finished(),
	}
	if plan.consent.counts() {
		data[parent.DataTrailer] = plan.Revision.ID
	}
	if !p.undecided || len(plan.consent.approved) > 0 || plan.parent.Data(parent.DataURL) == "" {
		maps.Copy(data, s.sourceData(plan.Revision))
	}
	if pruned {
		data[parent.DataPruned] = plan.Revision.ID
		plan.consent.approved = nil
	}
	s.forgetGone(plan, result)
	now := s.memory(plan, false, data, plan.spent(result, pruned))
	return s.saveParent(ctx, plan, plan.keepUnknown(plan.keepUnseen(inventory.ScopeOf(ids))), now)
}

// keepUnknown adds to what a scope is to shrink to those kinds of which no one knows
// what is left: those that could not be looked at, and those that are not served,
// which may be for a moment only. Where they were they may still be.
func (p Plan) keepUnknown(is inventory.Scope) inventory.Scope {
	unknown := false
	for gk := range p.parent.Kinds() {
		if _, served := p.kinds.Lookup(gk); !served || p.blind[gk] != nil {
			is.Kinds[gk], unknown = true, true
		}
	}
	if unknown {
		for _, ns := range p.parent.Namespaces() {
			is.Namespaces[ns] = true
		}
	}
	return is
}

// idsOf returns the objects' identities.
func idsOf(objects []manifest.Object) []manifest.ID {
	ids := make([]manifest.ID, len(objects))
	for i, o := range objects {
		ids[i] = o.ID()
	}
	return ids
}
