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
func (p *Plan) enterNamespaces(ctx context.Context) error {
	bindings := p.set.cluster.KeepBindings(ctx)
	if slices.ContainsFunc(p.unseenNamespaces(), p.live.has) {
		if err := p.survey(ctx); err != nil {
			return err
		}
	}
	if len(p.unseen) == 0 {
		return nil
	}
	waiting := inventory.ScopeOf(slices.Collect(maps.Keys(p.declared))).Namespaces
	if !slices.ContainsFunc(p.unseenNamespaces(), func(ns string) bool { return p.live.has(ns) || !waiting[ns] }) {
		return nil // the objects that wait for these namespaces keep them in the parent
	}
	live, err := p.dismissGone(ctx)
	if err != nil {
		return err
	}
	return p.judgeUnseen(ctx, live, bindings)
}

// dismissGone takes back that a namespace could not be looked at where there is none by
// now: nothing of the set is left in it. It lists the namespaces anew, since a list from
// before the look would prove nothing.
func (p *Plan) dismissGone(ctx context.Context) (liveNamespaces, error) {
	live, err := p.set.cluster.listNamespaces(ctx)
	if err != nil {
		return live, fmt.Errorf("look for the namespaces that could not be looked at: %w", err)
	}
	maps.DeleteFunc(p.unseen, func(ns string, _ map[schema.GroupKind]error) bool { return !live.has(ns) })
	return live, nil
}

// judgeUnseen says what is wrong if a repo cannot see what it has in some namespaces: where
// it may write, that is an error, unless only some kinds are closed to it; where it may
// not any more, what it has there stays.
func (p *Plan) judgeUnseen(ctx context.Context, live liveNamespaces, bindings error) error {
	mayWrite := p.set.cluster.namespacesFor([]ListedRepo{{Namespaces: p.set.options.Namespaces}}, live)
	var lacking, closed []string
	for _, ns := range p.unseenNamespaces() {
		switch {
		case mayWrite[ns] && p.set.cluster.limitedMayWrite(ctx, ns):
			p.setAside(ns)
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
		p.Warnings = append(p.Warnings, fmt.Sprintf("what the repo has in %s cannot be seen and stays as it is, since it may not write there any more",
			strings.Join(closed, ", ")))
	}
	return nil
}

// setAside fails the objects of the kinds that the repo may not look at in a namespace,
// although it may write others there: whose such an object is is not known. What it
// has there of these kinds stays.
func (p *Plan) setAside(namespace string) {
	closed := p.unseen[namespace]
	var names []string
	for gk := range closed {
		names = append(names, gk.String())
	}
	slices.Sort(names)
	p.Warnings = append(p.Warnings, fmt.Sprintf("what the repo has of %s in %s cannot be seen and stays as it is: ClusterRole admin does not let application repos list it",
		strings.Join(names, ", "), namespace))
	seen := make([]manifest.Object, 0, len(p.objects))
	for _, o := range p.objects {
		err, unseen := closed[o.ID().GroupKind()]
		if !unseen || o.ID().Namespace != namespace {
			seen = append(seen, o)
			continue
		}
		served, _ := p.kinds.Lookup(o.ID().GroupKind())
		p.held = append(p.held, failed(Outcome{ID: o.ID(), Origin: o.Origin}, kube.Explain(err, o.ID().Group, served.GVR.Resource, p.set.options.Tier)))
	}
	p.objects = seen
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
		maps.Copy(is.Kinds, p.parent.Kinds())
	}
	return is
}
