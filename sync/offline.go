package sync

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/repo/limits"
)

// Offline is the applier of a dry run without a cluster: it loads what would be
// applied, checks it and holds it against the schemas of the newest supported
// Kubernetes; its outcomes hold the manifests instead of a diff.
type Offline struct {
	rules   apply.Rules
	bounds  limits.Limits
	loader  *apply.Loader
	planned []apply.Outcome
}

// NewOffline returns an applier that checks by rules. Their Scope and HasStatus
// are best left nil, which stands for the kinds of Kubernetes itself.
func NewOffline(rules apply.Rules, bounds limits.Limits) *Offline {
	return &Offline{rules: rules, bounds: bounds, loader: apply.NewLoader(bounds)}
}

// Plan loads and checks. A kind that is not one of Kubernetes' own and not defined
// in the set may well be served by the cluster: its objects are shown as they are.
func (o *Offline) Plan(_ context.Context, files fs.FS, revision apply.SetRevision) (apply.Plan, error) {
	loaded, loadErr := o.loader.Load(files)
	rules := o.rules
	rules.Schemas = openapi.Builtin()
	checked, checkErr := apply.Check(loaded.Objects, rules)
	var problems apply.Problems
	if errors.As(checkErr, &problems) {
		apply.Locate(files, problems, o.bounds)
	}
	if err := apply.JoinProblems(loadErr, checkErr); err != nil {
		return apply.Plan{}, err
	}
	o.planned = nil
	for _, object := range checked.Objects {
		o.planned = append(o.planned, outline(object))
	}
	for _, parked := range checked.Parked {
		for _, object := range loaded.Objects {
			if object.Origin == parked.Origin && object.ID() == parked.ID {
				unknown := outline(object)
				unknown.Unverified, unknown.Reason = true, "its kind is known to the cluster alone"
				o.planned = append(o.planned, unknown)
			}
		}
	}
	plan := apply.Plan{Revision: revision, Warnings: checked.Warnings}
	for _, skipped := range loaded.Skipped {
		plan.Warnings = append(plan.Warnings, skipped.String())
	}
	return plan, nil
}

// outline is the outcome for an object that is merely shown.
func outline(object apply.Object) apply.Outcome {
	return apply.Outcome{ID: object.ID(), Origin: object.Origin, Action: apply.Created, Diff: apply.Manifest(object)}
}

// Apply returns what Plan has found.
func (o *Offline) Apply(_ context.Context, plan apply.Plan) (apply.Result, error) {
	return apply.Result{Outcomes: o.planned, Warnings: plan.Warnings}, nil
}

// Unwell returns nothing: without a cluster there is no health.
func (*Offline) Unwell(context.Context, []apply.ID) ([]apply.Unwell, error) { return nil, nil }

// Close has nothing to give up.
func (*Offline) Close() {}

// Rehearsal turns a set's Apply into its dry run.
type Rehearsal struct{ *apply.Set }

// Apply tells what would be done and does none of it.
func (r Rehearsal) Apply(ctx context.Context, plan apply.Plan) (apply.Result, error) {
	return r.DryRun(ctx, plan)
}
