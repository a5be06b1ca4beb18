package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/apply/prune"
)

// verdict says what a live object is to the set that declares it no more.
func (p *Plan) verdict(m observed.Member) prune.Verdict {
	return prune.Ownership{
		Label:    m.Set == p.set.id,
		Entry:    m.Applied,
		Recorded: p.set.ledger.IsRecorded(m),
		Named:    p.consent.given.NamesOne(p.Revision.ID, m.ID.String()),
	}.Verdict()
}

// forgetGone takes off the record what was pruned. What merely is not seen stays on it: a
// list that lacks an object proves nothing, and would make the object another owner's. Only
// where the record has grown far beyond what is there, because others have deleted much,
// it is cut back to that.
func (s *Set) forgetGone(plan *Plan, result Result) {
	var gone []observed.Member
	for _, o := range result.Outcomes {
		if m, found := plan.members[o.ID]; found && o.Action == Pruned {
			gone = append(gone, m)
		}
	}
	s.ledger.Disown(gone)
	if plan.base == nil && plan.seesAll() {
		s.ledger.CutBack(plan.members)
	}
}

// seesAll reports whether all could be looked at that the set may have: no kind of it is
// unserved, or could not be listed, anywhere.
func (p Plan) seesAll() bool {
	for gk := range p.parent.Kinds() {
		if _, served := p.kinds.Lookup(gk); !served {
			return false
		}
	}
	return len(p.blind) == 0 && len(p.unseen) == 0
}

// memory is what the parent is to remember besides data: which objects the set has
// written, what of them may go, and the proofs, ahead of the sync's writes or after them,
// for which the rest of the room is.
func (s *Set) memory(plan *Plan, ahead bool, data map[string]string, spend func(prune.Approval) prune.Approval) parent.Memory {
	binaries := map[string][]byte{parent.BinaryMembers: s.ledger.Members()}
	all := map[string]string{parent.DataApproved: ""}
	if len(plan.consent.approved) > 0 {
		binaries[parent.BinaryApproved] = plan.consent.approved.Encode(ledger.MaxRecorded)
		all[parent.DataApproved] = plan.Revision.ID
	}
	maps.Copy(all, data)
	room := max(0, ledger.ProofRoom-len(binaries[parent.BinaryMembers])-len(binaries[parent.BinaryApproved]))
	binaries[parent.BinaryProofs] = s.ledger.Proofs(ahead, room)
	return parent.Memory{Data: all, Binaries: binaries, Spend: spend}
}

// lookForMembers finds, where the set has no parent, what nevertheless carries its label
// and an entry of ours, by looking at every kind that is served: the parent that said
// where to look was deleted, or objects were restored from a backup that has none. A
// repo that is new has nothing to be found.
func (p *Plan) lookForMembers(ctx context.Context) error {
	if p.parent.Live != nil {
		return nil
	}
	found, err := p.set.cluster.membersOf(ctx, p.kinds, p.set)
	if err != nil {
		return fmt.Errorf("ConfigMap %s, the set's parent, does not exist; look for objects that the set has nevertheless: %w", p.set.parentRef(), err)
	}
	p.found = found
	return nil
}

// warnOfFound says what was found although there was no parent, and takes it off the
// record: it stays until a person names it.
func (p *Plan) warnOfFound() {
	if p.parent.Live != nil || len(p.leaving) == 0 {
		return
	}
	p.set.ledger.Disown(p.leaving)
	names := make([]string, 0, len(p.leaving))
	for _, m := range p.leaving {
		names = append(names, m.ID.String())
	}
	slices.Sort(names)
	shown := names[:min(len(names), maxNamed)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	p.Warnings = append(p.Warnings, fmt.Sprintf(
		"ConfigMap %s, the set's parent, did not exist, and with it all that was known of the set is gone: %s that git does not declare: %s; each stays until a person approves its deletion by name",
		p.set.parentRef(), prune.CountObjects(len(names)), text))
}
