package apply

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/apply/prune"
)

// Unreachable returns why the API server cannot be reached, nil if it answers, whatever
// it says.
func (c *Cluster) Unreachable(ctx context.Context) error {
	err := c.typed.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if kube.Unreachable(err) {
		return err
	}
	return nil
}

// DryRun reports what Apply would do, and does none of it: every object is sent as
// a server-side dry run, what left git goes through the same proofs, and no
// parent, RoleBinding or Lease is written. What depends on something that is
// itself still to come cannot be verified, and is marked so.
func (s *Set) DryRun(ctx context.Context, plan Plan) (Result, error) {
	if reason := s.suspended(plan.parent); reason != "" {
		return Result{Suspended: reason, Warnings: plan.Warnings}, nil
	}
	result := Result{Warnings: plan.Warnings, Outcomes: plan.held}
	notes, err := s.previewNotes(ctx, &plan)
	if err != nil {
		return result, err
	}
	result.Warnings = append(result.Warnings, notes...)
	if err := s.noteWriter(ctx, plan, &result); err != nil {
		return result, err
	}
	r := &rehearsal{plan: &plan}
	if err := r.findUnbound(ctx); err != nil {
		return result, err
	}
	for _, objects := range manifest.InSteps(plan.objects) {
		outcomes, err := inStep(ctx, s.cluster, objects, r.object)
		result.Outcomes = append(result.Outcomes, outcomes...)
		if err != nil {
			return result, err
		}
	}
	return result, plan.pruning(&result).rehearse(ctx)
}

// noteWriter warns of another kubesync that writes the set: no reason not to look, but
// worth knowing, unless it is the very one whose doing is to be seen.
func (s *Set) noteWriter(ctx context.Context, plan Plan, result *Result) error {
	if s.options.Preview {
		return nil
	}
	_, held, err := s.lookAtWriter(ctx, plan.parent, s.cluster.observedWriter(plan.parent.Data(parent.DataWriter)))
	if err == nil && held != nil {
		result.Warnings = append(result.Warnings, held.unwatched())
	}
	return err
}

// rehearsal is one dry run of one plan.
type rehearsal struct {
	plan    *Plan
	unbound map[string]bool // namespaces whose RoleBinding for application repos is still to come
}

// findUnbound notes where an application repo has no rights yet, since the
// RoleBinding that gives them would only now be created.
func (r *rehearsal) findUnbound(ctx context.Context) error {
	if r.plan.set.options.Tier != manifest.Application {
		return nil
	}
	present, err := r.plan.set.cluster.typed.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + manifest.BindingName})
	if err != nil {
		return fmt.Errorf("list RoleBindings %s: %w", manifest.BindingName, err)
	}
	r.unbound = map[string]bool{}
	for ns := range r.plan.live.labels {
		r.unbound[ns] = !r.plan.set.cluster.isSystem(ns, r.plan.live)
	}
	for _, binding := range present.Items {
		if grantsAdmin(binding) {
			r.unbound[binding.Namespace] = false
		}
	}
	return nil
}

// object rehearses one object.
func (r *rehearsal) object(ctx context.Context, o manifest.Object) Outcome {
	outcome := Outcome{ID: o.ID(), Origin: o.Origin}
	if err := r.plan.ownership(ctx, o.ID()); err != nil {
		return refused(outcome, err)
	}
	served, found := r.plan.kinds.Served[o.GroupVersionKind()]
	if reason := r.unverifiable(o, found); reason != "" {
		outcome.Action, outcome.Unverified, outcome.Reason = Created, true, reason
		outcome.Diff = manifest.Diff(nil, o.Tree())
		return outcome
	}
	live, err := r.plan.set.client.Get(ctx, served.GVR, o.ID().Namespace, o.ID().Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(outcome, r.plan.set.judge(o, served, err))
	}
	if apierrors.IsNotFound(err) {
		live = nil
	}
	return r.compare(ctx, outcome, served, o, live)
}

// unverifiable returns why the API server cannot be asked about an object yet.
func (r *rehearsal) unverifiable(o manifest.Object, served bool) string {
	ns := o.ID().Namespace
	switch {
	case !served:
		return "its CRD is still to come"
	case ns != "" && !r.plan.live.exists(ns):
		return fmt.Sprintf("Namespace %s is still to come", ns)
	case r.unbound[ns]:
		return fmt.Sprintf("RoleBinding %s in Namespace %s is still to come", manifest.BindingName, ns)
	}
	return ""
}

// compare sends the dry run and reports what it would change.
func (r *rehearsal) compare(ctx context.Context, outcome Outcome, served kube.ServedKind, o manifest.Object, live *unstructured.Unstructured) Outcome {
	if live != nil && observed.NewMember(o.ID().GroupKind(), served.GVR, live).Stopped(o.Annotations()) {
		outcome.Action, outcome.Reason = Unchanged, "suspended by the annotation "+manifest.SuspendAnnotation
		return outcome
	}
	declared := o.Tree()
	next, warnings, err := r.plan.set.client.DryRun(ctx, served.GVR, withLabel(o, r.plan.set.id))
	err = kube.WithoutSecrets(declared, err)
	outcome.Warnings = warnings
	if fields := kube.ImmutableFields(err); len(fields) > 0 && o.Annotations()[manifest.RecreateAnnotation] == "true" {
		outcome.Action, outcome.Diff = Configured, manifest.Diff(live, declared)
		outcome.Reason = "would be recreated, because immutable: " + strings.Join(fields, ", ")
		return outcome
	}
	switch {
	case err != nil:
		return failed(outcome, r.plan.set.judge(o, served, err))
	case live == nil:
		outcome.Action, outcome.Diff = Created, manifest.Diff(nil, declared)
		return outcome
	}
	if managers := observed.ClientSideManagers(live.GetManagedFields()); len(managers) > 0 {
		outcome.Reason = fmt.Sprintf("would be adopted from client-side apply (%s): fields that only it declared go too", strings.Join(managers, ", "))
	}
	if outcome.Diff = manifest.Diff(live, next); outcome.Diff == "" && outcome.Reason == "" {
		outcome.Action = Unchanged
		return outcome
	}
	outcome.Action = Configured
	return outcome
}

// rehearse takes what left git through the proofs of a real prune.
func (p *pruning) rehearse(ctx context.Context) error {
	leaving := p.sortOut()
	p.result.Outcomes = append(p.result.Outcomes, leaving.kept...)
	decided := p.decide(leaving.candidates, func(*prune.Hold) {})
	p.noteHeld(decided.going)
	p.plan.consent.consider(decided.approved)
	guard, err := newGuard(ctx, p.plan, decided.members)
	if err != nil {
		return err
	}
	for _, members := range inReverse(decided.members) {
		for _, m := range members {
			outcome := Outcome{ID: m.ID, Action: Pruned}
			is, err := guard.check(ctx, m)
			switch {
			case err != nil:
				return fmt.Errorf("%s: find out what it still holds: %w", m.ID, err)
			case is.reason != "":
				outcome = is.outcome(m)
			default:
				guard.going[m.UID] = true
			}
			p.result.Outcomes = append(p.result.Outcomes, outcome)
		}
	}
	return nil
}
