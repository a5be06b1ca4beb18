package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/internal/revision"
)

// maxNamed is how many objects a command names that approves single ones; of more it
// gives the hash.
const maxNamed = 10

// consent is what a person has approved of what a revision deletes, as far as it is known
// when the revision is planned.
type consent struct {
	trailer   bool   // the commit's message has the trailer
	void      string // why that does not count; empty if it does
	given     prune.Approval
	malformed error        // why the annotation cannot be read
	approved  prune.Record // what was approved and is not gone; nil if nothing was
}

// consented reads what was approved for the plan's revision, and asks for its ancestors if
// its commit has the trailer.
func (p *Plan) consented(ctx context.Context) consent {
	c := consent{trailer: p.Revision.HasTrailer("Kubesync-Prune", "approved")}
	c.given, c.malformed = prune.ParseApproval(p.parent.Annotation(parent.ApproveAnnotation))
	if p.parent.Data(parent.DataApproved) == p.Revision.ID {
		c.approved = prune.Decode(p.parent.Binary(parent.BinaryApproved))
	}
	if !c.trailer {
		return c
	}
	step := p.step()
	unproven := map[string]string{}
	for _, ancestor := range step.Ancestors() {
		unproven[ancestor] = p.Revision.unproven(ctx, ancestor)
	}
	c.void = step.Void(unproven)
	return c
}

// step is the way from what was applied before to the plan's revision.
func (p Plan) step() prune.Step {
	return prune.Step{
		Revision:   p.Revision.ID,
		Mode:       p.Revision.Mode,
		Applied:    p.parent.Data(parent.DataRevision),
		AppliedBy:  p.parent.Data(parent.DataMode),
		Pruned:     p.parent.Data(parent.DataPruned),
		Counted:    p.parent.Data(parent.DataTrailer),
		UsedBefore: parent.SplitList(p.parent.Data(parent.DataUsed)),
	}
}

// unproven returns why a revision is not known to be an ancestor of this one, "" if it is.
func (r Provenance) unproven(ctx context.Context, ancestor string) string {
	if r.Descends == nil {
		return fmt.Sprintf("whether it descends from %s, applied before, cannot be known", revision.Short(ancestor))
	}
	descends, err := r.Descends(ctx, ancestor)
	switch {
	case err != nil:
		return fmt.Sprintf("whether it descends from %s, applied before, could not be found out: %v", revision.Short(ancestor), err)
	case !descends:
		return fmt.Sprintf("it does not descend from %s, applied before: a rollback, another branch or a forced push", revision.Short(ancestor))
	}
	return ""
}

// counts reports whether the commit's trailer approves what the revision deletes.
func (c consent) counts() bool { return c.trailer && c.void == "" }

// covers reports whether a person has approved the deletion of all of the objects, and of
// no others.
func (c consent) covers(revision string, going []prune.Object) bool {
	return c.counts() || c.given.Covers(revision, going) == nil
}

// allows reports whether a person has approved the deletion of one object.
func (p Plan) allows(m observed.Member) bool {
	return p.consent.approved.Has(m.UID) || p.consent.given.NamesOne(p.Revision.ID, m.ID.String())
}

// objections says, for a person, why what was approved does not count for these objects.
func (c consent) objections(revision string, going []prune.Object) []string {
	var texts []string
	if c.trailer && c.void != "" {
		texts = append(texts, "the trailer of its commit does not count: "+c.void)
	}
	switch err := c.given.Covers(revision, going); {
	case c.malformed != nil:
		texts = append(texts, fmt.Sprintf("the annotation %s does not count: %v", parent.ApproveAnnotation, c.malformed))
	case c.given.Revision != "" && err != nil:
		texts = append(texts, fmt.Sprintf("the annotation %s does not count: %v", parent.ApproveAnnotation, err))
	}
	return texts
}

// consider takes members for approved.
func (c *consent) consider(members []observed.Member) {
	if c.approved == nil {
		c.approved = prune.Record{}
	}
	for _, m := range members {
		c.approved.Add(m.UID)
	}
}

// approve has the members deleted that go, since a person has approved that, and
// records them first: an approval counts once, for these objects and no others, also
// where their deletion takes several syncs.
func (p *pruning) approve(ctx context.Context, going []observed.Member) error {
	p.plan.consent.consider(going)
	data := map[string]string{}
	if p.plan.consent.counts() {
		data[parent.DataUsed] = strings.Join(prune.Use(parent.SplitList(p.plan.parent.Data(parent.DataUsed)), p.plan.Revision.ID), ",")
	}
	all := func(given prune.Approval) prune.Approval {
		if !given.For(p.plan.Revision.ID) {
			return given
		}
		return given.Spent(true, nil)
	}
	err := p.plan.set.saveParent(ctx, p.plan, p.plan.scope(), p.plan.set.memory(p.plan, false, data, all))
	if err != nil {
		return fmt.Errorf("record what was approved: %w", err)
	}
	return nil
}

// spent is what is left of the annotation after the deletions of a sync: where nothing is
// left to prune, only what names an object that is still to be created again.
func (p Plan) spent(result Result, pruned bool) func(prune.Approval) prune.Approval {
	return func(given prune.Approval) prune.Approval {
		if !given.For(p.Revision.ID) {
			return given
		}
		gone, waiting := map[string]bool{}, map[string]bool{}
		for _, o := range result.Outcomes {
			gone[o.ID.String()] = o.Action == Pruned || o.Action == Configured
			waiting[o.ID.String()] = o.Action == Failed
		}
		if pruned {
			for _, name := range given.Names {
				gone[name] = !waiting[name]
			}
		}
		return given.Spent(pruned, gone)
	}
}

// asObjects returns the members as approvals know them.
func asObjects(members []observed.Member) []prune.Object {
	objects := make([]prune.Object, len(members))
	for i, m := range members {
		objects[i] = prune.Object{UID: m.UID, Name: m.ID.String()}
	}
	return objects
}

// howToApprove says what releases a deletion, given the items of an approval. A preview's
// revision is none that anyone could approve, and its commit is still to come.
func (s *Set) howToApprove(revision string, items ...string) string {
	if s.options.Preview {
		return "to approve it: the trailer \"Kubesync-Prune: approved\" in the message of the commit"
	}
	return fmt.Sprintf("to approve it: %s, or the trailer \"Kubesync-Prune: approved\" in the message of the next commit", s.approvalCommand(revision, items...))
}

// approvalCommand approves what a revision deletes.
func (s *Set) approvalCommand(revision string, items ...string) string {
	return fmt.Sprintf("kubectl annotate configmap --namespace %s %s --overwrite %s=%s",
		s.cluster.options.OwnNamespace, s.parentName, parent.ApproveAnnotation, strings.Join(append([]string{revision}, items...), ","))
}

// approval returns the command that releases what waits for approval after a prune, ""
// if nothing does. The candidates are what the prune began with.
func (s *Set) approval(revision string, candidates []observed.Member, result Result) string {
	becameOf := map[manifest.ID]Outcome{}
	for _, o := range result.Outcomes {
		if o.Origin.File == "" {
			becameOf[o.ID] = o
		}
	}
	var names []string
	var left []observed.Member
	for _, o := range result.Outcomes {
		if o.Action == Failed && o.NeedsApproval {
			names = append(names, o.ID.String()) // is to be created again
		}
	}
	for _, m := range candidates {
		o := becameOf[m.ID]
		if o.Action == Blocked && !s.ledger.IsDeleting(m) {
			left = append(left, m)
		}
		if o.NeedsApproval {
			names = append(names, m.ID.String())
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case result.PruneHeld != "" || len(names) > maxNamed:
		return s.approvalCommand(revision, prune.Hash(asObjects(left)))
	}
	return s.approvalCommand(revision, names...)
}
