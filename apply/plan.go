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
)

// SetRevision is the revision that a set shall become, and where it came from.
type SetRevision struct {
	Revision string    // the commit's full hash, or what stands for it
	Ref      string    // what selected it, for example refs/heads/master
	Subject  string    // the first line of the commit message
	Message  string    // all of it: its trailers may approve pruning
	URL      string    // the repo, without credentials
	Source   string    // what chose the manifests: CMD, YMLDIR, kubernetes/ or root
	Dir      string    // the directory they were read from
	Built    string    // what made manifests of it: kustomize, or nothing
	Mode     string    // what selects revisions, as VERSION_MODE has it
	Polled   time.Time // when the repo was asked for it
	// Descends reports whether the revision's commit has another one among its ancestors.
	// An error says why that cannot be known; nil stands for never.
	Descends func(ctx context.Context, ancestor string) (bool, error)
}

// Plan is what a sync is going to do: everything that was found out without
// writing anything.
type Plan struct {
	Revision SetRevision
	Warnings []string // about the manifests, for a person

	objects  []Object // to be applied, checked and prepared
	held     []Outcome
	declared map[ID]bool // all that the revision declares, parked or not
	kinds    *kinds
	live     liveNamespaces
	parent   parent
	members  map[ID]member // live objects of the kinds in use: the set's own, and what of the declared is another's
	unseen   unseen
	blind    map[schema.GroupKind]error // kinds that could not be looked at, and why
	leaving  []member                   // this set's members that are declared no more
	found    []ID                       // members that were found without a parent to name them
	had      int                        // how many live objects on the set's record there were when it was planned
	consent  consent                    // what a person has approved
	taken    map[ID]string              // what another repo of this daemon declares already

	strangers *strangers // who owns what is another's, as far as that was looked up
	webhooks  *webhooks  // which configurations webhooks are in, looked up when one fails
}

// Plan loads and checks a revision's manifests and compares them with what the
// cluster holds of the set. It writes nothing. Manifests that may not be applied
// are an error of type Problems; then nothing of the revision counts, and
// nothing may be pruned for it.
func (s *Set) Plan(ctx context.Context, files fs.FS, revision SetRevision) (Plan, error) {
	if s.cluster.watched() == nil {
		if err := s.awaitDying(ctx); err != nil {
			return Plan{}, err
		}
	}
	loaded, loadErr := compute(ctx, s.cluster, func() (Loaded, error) { return s.loader.Load(files) })
	plan := Plan{Revision: revision, Warnings: skippedWarnings(loaded.Skipped), strangers: &strangers{}, webhooks: &webhooks{}}
	var err error
	if plan.kinds, err = s.kindsFor(ctx, loaded.Objects); err != nil {
		return Plan{}, errors.Join(loadErr, err)
	}
	if plan.live, err = s.cluster.namespaces(ctx); err != nil {
		return Plan{}, errors.Join(loadErr, err)
	}
	checked, checkErr := compute(ctx, s.cluster, func() (Checked, error) { return s.checker.Check(loaded.Objects, s.rules(plan)) })
	if err := JoinProblems(loadErr, checkErr); err != nil {
		return Plan{}, err
	}
	plan.Warnings = append(plan.Warnings, checked.Warnings...)
	keeps := s.cluster.whatKeeps(ctx, dyingHomes(checked.Objects, plan.live))
	plan.objects, plan.held = parkHomeless(checked.Objects, unreached(checked.Parked, plan.kinds), plan.live, keeps)
	if plan.parent, err = s.readParent(ctx); err != nil {
		return Plan{}, err
	}
	s.readRecord(plan.parent)
	if err := s.lookForMembers(ctx, &plan); err != nil {
		return Plan{}, err
	}
	plan.consent = s.consented(ctx, &plan)
	plan.declared = declaredBy(checked)
	if err := s.survey(ctx, &plan); err != nil {
		return Plan{}, err
	}
	s.warnOfFound(&plan)
	plan.parkBlind()
	plan.had = s.recordedOf(plan)
	s.claim(&plan)
	return plan, nil
}

// survey finds the live objects of the kinds in use, and which of the set's are
// declared no more.
func (s *Set) survey(ctx context.Context, plan *Plan) error {
	found, err := s.inventoryOf(ctx, plan.kinds, plan.scope(), s.interestOf(plan))
	if err != nil {
		return fmt.Errorf("find the set's live objects: %w", err)
	}
	plan.members, plan.unseen = found.members, found.unseen
	if plan.blind == nil {
		plan.blind = map[schema.GroupKind]error{}
	}
	maps.Copy(plan.blind, found.blind) // what one look missed no other makes good
	plan.leaving = s.leaving(*plan)
	return nil
}

// kindsFor returns discovery that is no older than the question whether the
// kinds of the objects are served.
func (s *Set) kindsFor(ctx context.Context, objects []Object) (*kinds, error) {
	current, err := s.cluster.currentKinds(ctx)
	if err != nil {
		return nil, err
	}
	unknown := slices.ContainsFunc(objects, func(o Object) bool {
		return current.scope(o.GroupVersionKind()) == ScopeUnknown
	})
	if unknown {
		return s.cluster.refreshKinds(ctx)
	}
	return current, nil
}

// rules are what the set's objects are checked against.
func (s *Set) rules(plan Plan) Rules {
	return Rules{
		Tier:             s.options.Tier,
		Namespace:        s.options.Namespace,
		NamespaceFromPod: s.options.NamespaceFromPod,
		Namespaces:       [][]string{s.cluster.options.Namespaces, s.options.Namespaces},
		SystemNamespace:  func(name string) bool { return s.cluster.isSystem(name, plan.live) },
		Scope:            plan.kinds.scope,
		HasStatus:        plan.kinds.hasStatus,
		Lasting:          plan.kinds.lasting,
	}
}

// parkHomeless parks the objects whose Namespace is neither there nor declared beside
// them, or is being deleted; keeps says what keeps it then.
func parkHomeless(objects []Object, parked []Outcome, live liveNamespaces, keeps map[string]string) ([]Object, []Outcome) {
	declared := map[string]bool{}
	for _, o := range objects {
		if o.ID().GroupKind() == namespaceKind {
			declared[o.ID().Name] = true
		}
	}
	housed := make([]Object, 0, len(objects))
	for _, o := range objects {
		reason := waitsForHome(o.ID(), declared[o.ID().home()], live, keeps)
		if reason == "" {
			housed = append(housed, o)
			continue
		}
		parked = append(parked, Outcome{ID: o.ID(), Origin: o.Origin, Action: Parked, Reason: reason})
	}
	return housed, parked
}

// unreached gives those objects a better reason to be parked of whose group nobody
// knows what it serves.
func unreached(parked []Outcome, k *kinds) []Outcome {
	for i, o := range parked {
		if err := k.groupUnreachable(o.ID.Group); err != nil {
			parked[i].Reason = fmt.Sprintf("waits for its kind: %v", err)
		}
	}
	return parked
}

// parkBlind parks the objects of kinds that could not be looked at: whether they are
// there, and whose they are, is not known. What is there of such a kind and has left
// git is not known either, which is said.
func (p *Plan) parkBlind() {
	if len(p.blind) == 0 {
		return
	}
	seen := make([]Object, 0, len(p.objects))
	for _, o := range p.objects {
		err := p.blind[o.ID().GroupKind()]
		if err == nil {
			seen = append(seen, o)
			continue
		}
		p.held = append(p.held, Outcome{ID: o.ID(), Origin: o.Origin, Action: Parked, Reason: fmt.Sprintf("waits until its kind can be looked at: %v", err)})
	}
	p.objects = seen
	for _, gk := range p.leftUnknown() {
		p.Warnings = append(p.Warnings, fmt.Sprintf("what is left of kind %s, which is declared no more, cannot be looked for: %v; nothing of it is pruned until it can", gk, p.blind[gk]))
	}
	slices.Sort(p.Warnings)
}

// leftUnknown returns, in order, the kinds that are declared no more and could not be
// looked at: how many objects leave with them nobody knows.
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
func (p Plan) scope() scope {
	in := scopeOf(append(idsOf(p.objects), p.found...))
	maps.Copy(in.kinds, p.parent.kinds())
	for _, ns := range p.parent.namespaces() {
		in.namespaces[ns] = true
	}
	in.absent = map[string]bool{}
	for ns := range in.namespaces {
		if !p.live.has(ns) {
			in.absent[ns] = true
		}
	}
	return in
}

// declaredBy returns what a revision declares. What is parked is declared too.
func declaredBy(checked Checked) map[ID]bool {
	declared := make(map[ID]bool, len(checked.Objects)+len(checked.Parked))
	for _, o := range checked.Objects {
		declared[o.ID()] = true
	}
	for _, p := range checked.Parked {
		declared[p.ID] = true
	}
	return declared
}

// leaving finds the set's members that the revision declares no more, and that
// kubesync itself has written.
func (s *Set) leaving(plan Plan) []member {
	var found []member
	for id, m := range plan.members {
		if m.Set == s.id && m.Applied && !plan.declared[id] {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b member) int { return compareIDs(a.ID, b.ID) })
	return found
}

// recordedOf counts the live objects that are on the set's record: what merely carries
// its label must not make a prune look small.
func (s *Set) recordedOf(plan Plan) (count int) {
	for _, m := range plan.members {
		if m.Set == s.id && s.isRecorded(m) {
			count++
		}
	}
	return count
}

// skippedWarnings words what was left out because it is no Kubernetes object.
func skippedWarnings(skipped []Problem) []string {
	warnings := make([]string, len(skipped))
	for i, problem := range skipped {
		warnings[i] = problem.String()
	}
	return warnings
}
