package sync

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/internal/limits"
)

// Offline is the applier of a dry run without a cluster: it loads what would be
// applied, and checks it against the tier and the schemas of the newest supported
// Kubernetes. Its outcomes hold the manifests instead of a diff.
type Offline struct {
	rules   manifest.Rules
	bounds  limits.Limits
	loader  *manifest.Loader
	planned []apply.Outcome
}

// NewOffline returns an applier that checks by rules. Their Scope and HasStatus
// stay nil, which stands for the kinds of Kubernetes itself.
func NewOffline(rules manifest.Rules, bounds limits.Limits) *Offline {
	return &Offline{rules: rules, bounds: bounds, loader: manifest.NewLoader(bounds)}
}

// Plan loads and checks. A kind that is not one of Kubernetes' own and not defined
// in the set may well be served by the cluster: its objects are shown as they are.
func (o *Offline) Plan(_ context.Context, files fs.FS, revision apply.Provenance) (apply.Plan, error) {
	loaded, loadErr := o.loader.Load(files)
	rules := o.rules
	rules.Schemas = openapi.Builtin()
	checked, checkErr := manifest.Check(loaded.Objects, rules)
	var problems manifest.Problems
	if errors.As(checkErr, &problems) {
		manifest.Locate(files, problems, o.bounds)
	}
	if err := manifest.JoinProblems(loadErr, checkErr); err != nil {
		return apply.Plan{}, err
	}
	o.planned = nil
	for _, object := range checked.Objects {
		o.planned = append(o.planned, outline(object))
	}
	for _, unserved := range checked.Unserved {
		unknown := outline(unserved.Object)
		unknown.Unverified, unknown.Reason = true, "only the cluster knows its kind"
		o.planned = append(o.planned, unknown)
	}
	plan := apply.Plan{Revision: revision, Warnings: checked.Warnings}
	for _, skipped := range loaded.Skipped {
		plan.Warnings = append(plan.Warnings, skipped.String())
	}
	return plan, nil
}

// outline is the outcome for an object that is only shown.
func outline(object manifest.Object) apply.Outcome {
	return apply.Outcome{ID: object.ID(), Origin: object.Origin, Action: apply.Created, Diff: manifest.YAML(object)}
}

// Apply returns what Plan found.
func (o *Offline) Apply(_ context.Context, plan apply.Plan) (apply.Result, error) {
	return apply.Result{Outcomes: o.planned, Warnings: plan.Warnings}, nil
}

// Standing returns nothing: what a preview shows is found out each time.
func (*Offline) Standing(apply.Provenance) (apply.Result, bool) { return apply.Result{}, false }

// NotReady returns nothing: without a cluster there is no health.
func (*Offline) NotReady(context.Context, []manifest.ID) ([]apply.NotReady, error) { return nil, nil }

// Close does nothing.
func (*Offline) Close() {}

// Rehearsal turns a set's Apply into its dry run.
type Rehearsal struct{ *apply.Set }

// Apply returns what would be done and does none of it.
func (r Rehearsal) Apply(ctx context.Context, plan apply.Plan) (apply.Result, error) {
	return r.DryRun(ctx, plan)
}
