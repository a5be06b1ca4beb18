package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// enterNamespaces gives an application repo its rights, and looks at what could
// not be looked at without them. A RoleBinding that could not be had matters only
// where the repo has or is to have objects, and may write.
func (s *Set) enterNamespaces(ctx context.Context, plan *Plan) error {
	bindings := s.cluster.KeepBindings(ctx)
	if slices.ContainsFunc(plan.unseenNamespaces(), plan.live.has) {
		if err := s.survey(ctx, plan); err != nil {
			return err
		}
	}
	waiting := inventory.ScopeOf(slices.Collect(maps.Keys(plan.declared))).Namespaces
	if !slices.ContainsFunc(plan.unseenNamespaces(), func(ns string) bool { return plan.live.has(ns) || !waiting[ns] }) {
		return nil // the objects that wait for these namespaces keep them in the parent
	}
	live, err := s.dismissGone(ctx, plan)
	if err != nil {
		return err
	}
	return s.judgeUnseen(ctx, plan, live, bindings)
}

// dismissGone takes back that a namespace could not be looked at where there is none by
// now: nothing of the set is left in it. It lists the namespaces anew, since a list from
// before the look would prove nothing.
func (s *Set) dismissGone(ctx context.Context, plan *Plan) (liveNamespaces, error) {
	live, err := s.cluster.listNamespaces(ctx)
	if err != nil {
		return live, fmt.Errorf("look for the namespaces that could not be looked at: %w", err)
	}
	maps.DeleteFunc(plan.unseen, func(ns string, _ map[schema.GroupKind]error) bool { return !live.has(ns) })
	return live, nil
}

// judgeUnseen says what is wrong if a repo cannot see what it has in some namespaces: where
// it may write, that is an error, unless only some kinds are closed to it; where it may
// not any more, what it has there stays.
func (s *Set) judgeUnseen(ctx context.Context, plan *Plan, live liveNamespaces, bindings error) error {
	mayWrite := s.cluster.namespacesFor([]ListedRepo{{Namespaces: s.options.Namespaces}}, live)
	var lacking, closed []string
	for _, ns := range plan.unseenNamespaces() {
		switch {
		case mayWrite[ns] && s.cluster.limitedMayWrite(ctx, ns):
			s.setAside(plan, ns)
		case mayWrite[ns]:
			lacking = append(lacking, ns)
		case live.exists(ns):
			closed = append(closed, ns)
		}
	}
	if len(lacking) > 0 {
		err := fmt.Errorf("user %s has no rights in %s, although RoleBinding %s should give it ClusterRole admin there",
			LimitedUser, strings.Join(lacking, ", "), manifest.BindingName)
		return errors.Join(err, bindings)
	}
	if len(closed) > 0 {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("what the repo has in %s cannot be seen and stays as it is, since it may not write there any more",
			strings.Join(closed, ", ")))
	}
	return nil
}

// setAside fails the objects of the kinds that the repo may not look at in a namespace,
// although it may write others there: whose such an object is is not known. What it
// has there of these kinds stays.
func (s *Set) setAside(plan *Plan, namespace string) {
	closed := plan.unseen[namespace]
	var names []string
	for gk := range closed {
		names = append(names, gk.String())
	}
	slices.Sort(names)
	plan.Warnings = append(plan.Warnings, fmt.Sprintf("what the repo has of %s in %s cannot be seen and stays as it is: ClusterRole admin does not let application repos list it",
		strings.Join(names, ", "), namespace))
	seen := make([]manifest.Object, 0, len(plan.objects))
	for _, o := range plan.objects {
		err, unseen := closed[o.ID().GroupKind()]
		if !unseen || o.ID().Namespace != namespace {
			seen = append(seen, o)
			continue
		}
		served, _ := plan.kinds.Lookup(o.ID().GroupKind())
		plan.held = append(plan.held, failed(Outcome{ID: o.ID(), Origin: o.Origin}, kube.Explain(err, o.ID().Group, served.GVR.Resource, s.options.Tier)))
	}
	plan.objects = seen
}

// unseenNamespaces returns those that could not be looked at, in order.
func (p Plan) unseenNamespaces() []string { return slices.Sorted(maps.Keys(p.unseen)) }

// keepUnseen adds to a scope the namespaces that could not be looked at, and the kinds
// that the set may have there: the parent must not forget them.
func (p Plan) keepUnseen(is inventory.Scope) inventory.Scope {
	if len(p.unseen) > 0 {
		for ns := range p.unseen {
			is.Namespaces[ns] = true
		}
		maps.Copy(is.Kinds, p.parent.kinds())
	}
	return is
}
