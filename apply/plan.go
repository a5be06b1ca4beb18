package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/internal/revision"
)

// Provenance is the revision that a set shall become, and where it came from.
type Provenance struct {
	revision.Revision // a trailer in its message may approve pruning

	URL    string    // the repo, without credentials
	Source string    // what chose the manifests: CMD, YMLDIR, kubernetes/ or root
	Dir    string    // the directory they were read from
	Built  string    // what made manifests of it: kustomize, or nothing
	Mode   string    // what selects revisions, as VERSION_MODE has it
	Polled time.Time // when the repo was polled for it
	// Descends reports whether the revision's commit has another one among its ancestors.
	// An error says why that cannot be known; nil stands for never.
	Descends func(ctx context.Context, ancestor string) (bool, error)
}

// Plan is what a sync is going to do: everything that was found out without
// writing anything.
type Plan struct {
	Revision Provenance
	Warnings []string // about the manifests, for a person

	set      *Set              // whose it is
	objects  []manifest.Object // to be applied, checked and prepared
	held     []Outcome
	declared map[manifest.ID]bool // all that the revision declares, pending or not
	kinds    *kube.Kinds
	live     liveNamespaces
	parent   parent.Parent
	members  map[manifest.ID]observed.Member // live objects of the kinds in use: the set's own, and what of the declared is another's
	unseen   inventory.Unseen
	blind    map[schema.GroupKind]error // kinds that could not be looked at, and why
	leaving  []observed.Member          // this set's members that are declared no more
	found    []manifest.ID              // members that were found without a parent to name them
	had      int                        // how many live objects on the set's record there were when it was planned: what merely carries its label must not make a prune look small
	consent  consent                    // what a person has approved
	taken    map[manifest.ID]string     // what another repo of this daemon declares already

	base    *base             // nil where everything is looked at
	changed []manifest.Object // that differ from the base

	basis    *basis         // nil where it is not all seen
	seen     inventory.Seen // of the set's objects, when the plan was begun
	owners   *owners        // who owns what is another's, as far as that was looked up
	webhooks *kube.Webhooks // which configurations webhooks are in, looked up when one fails
}

// Plan loads and checks a revision's manifests and compares them with what the
// cluster holds of the set. It writes nothing. Manifests that may not be applied
// are an error of type Problems; then nothing of the revision counts, and
// nothing may be pruned for it.
func (s *Set) Plan(ctx context.Context, files fs.FS, revision Provenance) (Plan, error) {
	if s.cluster.watched() == nil {
		if err := s.awaitDying(ctx); err != nil {
			return Plan{}, err
		}
	}
	last := s.base
	s.base = nil // until a plan of its own ends well
	begun, seen, known := s.begin()
	loaded, loadErr := compute(ctx, s.cluster, func() (manifest.Loaded, error) { return s.loader.Load(files) })
	plan := Plan{set: s, Revision: revision, Warnings: skippedWarnings(loaded.Skipped), owners: &owners{}, webhooks: &kube.Webhooks{}}
	if known {
		plan.basis, plan.seen = &begun, seen
	}
	var err error
	if plan.kinds, err = s.kindsFor(ctx, loaded.Objects); err != nil {
		return Plan{}, errors.Join(loadErr, err)
	}
	if plan.live, err = s.cluster.namespaces(ctx); err != nil {
		return Plan{}, errors.Join(loadErr, err)
	}
	checked, checkErr := compute(ctx, s.cluster, func() (manifest.Checked, error) { return s.checker.Check(loaded.Objects, plan.rules()) })
	if err := manifest.JoinProblems(loadErr, checkErr); err != nil {
		return Plan{}, err
	}
	plan.Warnings = append(plan.Warnings, checked.Warnings...)
	if plan.parent, err = s.readParent(ctx); err != nil {
		return Plan{}, err
	}
	if plan.buildOn(last, checked) {
		plan.consent = plan.consented(ctx)
		s.cluster.readAt(s.options.Name, revision.Polled)
		return plan, nil
	}
	keeps := s.cluster.whatKeeps(ctx, dyingHomes(checked.Objects, plan.live))
	plan.objects, plan.held = pendHomeless(checked.Objects, unserved(checked.Unserved, plan.kinds), plan.live, keeps)
	s.ledger.ReadRecord(plan.parent.Live != nil, plan.parent.Binary(parent.BinaryMembers))
	if err := plan.lookForMembers(ctx); err != nil {
		return Plan{}, err
	}
	plan.consent = plan.consented(ctx)
	plan.declared = declaredBy(checked)
	if err := plan.survey(ctx); err != nil {
		return Plan{}, err
	}
	plan.warnOfFound()
	plan.pendBlind()
	plan.had = s.ledger.Recorded(plan.members)
	plan.claim()
	return plan, nil
}

// survey finds the live objects of the kinds in use, and which of the set's are
// declared no more.
func (p *Plan) survey(ctx context.Context) error {
	found, err := p.set.inventoryOf(ctx, p.kinds, p.scope(), p.interestOf())
	if err != nil {
		return fmt.Errorf("find the set's live objects: %w", err)
	}
	p.members, p.unseen = found.Members, found.Unseen
	if p.blind == nil {
		p.blind = map[schema.GroupKind]error{}
	}
	maps.Copy(p.blind, found.Blind) // what one look missed no other makes good
	p.leaving = p.findLeaving()
	return nil
}

// kindsFor returns discovery that is no older than the question whether the
// kinds of the objects are served.
func (s *Set) kindsFor(ctx context.Context, objects []manifest.Object) (*kube.Kinds, error) {
	current, err := s.cluster.currentKinds(ctx)
	if err != nil {
		return nil, err
	}
	var last schema.GroupVersionKind // most are of the kind of the one before
	unknown := slices.ContainsFunc(objects, func(o manifest.Object) bool {
		before := last
		last = o.GroupVersionKind()
		return last != before && current.Scope(last) == manifest.ScopeUnknown
	})
	if unknown {
		return s.cluster.refreshKinds(ctx)
	}
	return current, nil
}

// rules are what the set's objects are checked against.
func (p *Plan) rules() manifest.Rules {
	return manifest.Rules{
		Tier:             p.set.options.Tier,
		Namespace:        p.set.options.Namespace,
		NamespaceFromPod: p.set.options.NamespaceFromPod,
		Namespaces:       [][]string{p.set.cluster.options.Namespaces, p.set.options.Namespaces},
		SystemNamespace:  func(name string) bool { return p.set.cluster.isSystem(name, p.live) },
		Scope:            p.kinds.Scope,
		HasStatus:        p.kinds.HasStatus,
		Lasting:          p.kinds.Lasting,
	}
}

// pendHomeless holds back the objects whose Namespace is neither there nor declared beside
// them, or is being deleted; keeps says what keeps it then.
func pendHomeless(objects []manifest.Object, pending []Outcome, live liveNamespaces, keeps map[string]string) ([]manifest.Object, []Outcome) {
	declared := map[string]bool{}
	for _, o := range objects {
		if o.ID().GroupKind() == manifest.NamespaceKind {
			declared[o.ID().Name] = true
		}
	}
	housed := make([]manifest.Object, 0, len(objects))
	for _, o := range objects {
		reason := waitsForHome(o.ID(), declared[o.ID().Home()], live, keeps)
		if reason == "" {
			housed = append(housed, o)
			continue
		}
		pending = append(pending, Outcome{ID: o.ID(), Origin: o.Origin, Action: Pending, Reason: reason})
	}
	return housed, pending
}

// unserved returns the outcomes of objects whose kind is not served: they wait for their
// CRD or, if discovery could not reach their group, for that.
func unserved(objects []manifest.Unserved, k *kube.Kinds) []Outcome {
	pending := make([]Outcome, len(objects))
	for i, o := range objects {
		if err := k.GroupUnreachable(o.ID().Group); err != nil {
			o.Reason = fmt.Sprintf("waits for its kind: %v", err)
		}
		pending[i] = Outcome{ID: o.ID(), Origin: o.Origin, Action: Pending, Reason: o.Reason}
	}
	return pending
}

// pendBlind holds back the objects of kinds that could not be looked at: whether they are
// there, and whose they are, is not known. What is there of such a kind and has left
// git is not known either, which is said.
func (p *Plan) pendBlind() {
	if len(p.blind) == 0 {
		return
	}
	seen := make([]manifest.Object, 0, len(p.objects))
	for _, o := range p.objects {
		err := p.blind[o.ID().GroupKind()]
		if err == nil {
			seen = append(seen, o)
			continue
		}
		p.held = append(p.held, Outcome{ID: o.ID(), Origin: o.Origin, Action: Pending, Reason: fmt.Sprintf("waits until its kind can be looked at: %v", err)})
	}
	p.objects = seen
	for _, gk := range p.leftUnknown() {
		p.Warnings = append(p.Warnings, fmt.Sprintf("what is left of kind %s, which is declared no more, cannot be looked for: %v; nothing of it is pruned until it can", gk, p.blind[gk]))
	}
	slices.Sort(p.Warnings)
}

// leftUnknown returns, in order, the kinds that are declared no more and could not be
// looked at: how many objects leave with them no one knows.
func (p Plan) leftUnknown() []schema.GroupKind {
	if len(p.blind) == 0 {
		return nil // as nearly always: what is declared need not be gone through
	}
	declared := map[schema.GroupKind]bool{}
	for id := range p.declared {
		declared[id.GroupKind()] = true
	}
	var unknown []schema.GroupKind
	for gk := range p.blind {
		if !declared[gk] {
			unknown = append(unknown, gk)
		}
	}
	slices.SortFunc(unknown, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return unknown
}

// scope is where the set has or is to have objects.
func (p Plan) scope() inventory.Scope {
	if p.base != nil {
		return p.base.scope
	}
	in := inventory.ScopeOf(append(idsOf(p.objects), p.found...))
	maps.Copy(in.Kinds, p.parent.Kinds())
	in.Gated = map[schema.GroupKind]bool{}
	for id := range gatedOf(p.objects) {
		in.Gated[id.GroupKind()] = true
	}
	for _, ns := range p.parent.Namespaces() {
		in.Namespaces[ns] = true
	}
	in.Absent = map[string]bool{}
	for ns := range in.Namespaces {
		if !p.live.has(ns) {
			in.Absent[ns] = true
		}
	}
	return in
}

// declaredBy returns what a revision declares. What is pending is declared too.
func declaredBy(checked manifest.Checked) map[manifest.ID]bool {
	declared := make(map[manifest.ID]bool, len(checked.Objects)+len(checked.Unserved))
	for _, o := range checked.Objects {
		declared[o.ID()] = true
	}
	for _, p := range checked.Unserved {
		declared[p.ID()] = true
	}
	return declared
}

// findLeaving finds the set's members that the revision declares no more, and that
// kubesync itself has written.
func (p *Plan) findLeaving() []observed.Member {
	var found []observed.Member
	for id, m := range p.members {
		if m.Set == p.set.id && m.Applied && !p.declared[id] {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b observed.Member) int { return a.ID.Compare(b.ID) })
	return found
}

// skippedWarnings words what was left out because it is no Kubernetes object.
func skippedWarnings(skipped []manifest.Problem) []string {
	warnings := make([]string, len(skipped))
	for i, problem := range skipped {
		warnings[i] = problem.String()
	}
	return warnings
}
