package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubesync/kubesync/apply/ledger"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/parent"
)

// declare makes the objects those that the set declares from now on. An object that is
// declared no more is not being written when this returns.
func (s *Set) declare(ctx context.Context, plan *Plan) error {
	if plan.base != nil {
		s.ledger.Change(plan.changed)
		s.mu.Lock()
		s.pending, s.waiting = false, nil
		s.mu.Unlock()
		return nil
	}
	pending := make([]manifest.ID, len(plan.held))
	for i, o := range plan.held {
		pending[i] = o.ID
	}
	left := s.ledger.Declare(ledger.Declaration{
		Objects: plan.objects, Pending: pending, All: plan.declared, Live: plan.members, Terminating: plan.live.terminating,
		Proofs: plan.parent.Binary(parent.BinaryProofs), Finished: plan.parent.Data(parent.DataFinished),
	})
	s.mu.Lock()
	s.pending, s.waiting = len(plan.held) > 0, nil
	s.gated = gatedOf(plan.objects)
	s.mu.Unlock()
	if plan.housedMeanwhile() {
		s.wake()
	}
	return ledger.AwaitIdle(ctx, left)
}

// end lets others write an object, and looks at what came in meanwhile.
func (s *Set) end(e *ledger.Entry) {
	if id, stirred, by := s.ledger.End(e); stirred {
		s.consider(id, by)
	}
}

// wrote notes the answer to a successful write.
func (s *Set) wrote(e *ledger.Entry, o manifest.Object, live metav1.Object, m observed.Member) {
	s.ledger.Wrote(e, o, m)
	if w := s.cluster.watched(); w != nil {
		w.members.Put(o.ID(), live)
	}
}

// look returns what is known of a live object: what is seen of it now or, when the
// cluster is not being watched, what the plan found.
func (p *Plan) look(id manifest.ID) (live observed.Member, there bool) {
	if live, there, known := p.set.look(id); known || there {
		return live, there
	}
	live, there = p.members[id]
	return live, there
}

// look returns what is seen of a live object; known reports whether it was looked for.
func (s *Set) look(id manifest.ID) (live observed.Member, there, known bool) {
	if w := s.cluster.watched(); w != nil {
		return w.members.Find(id)
	}
	return observed.Member{}, false, false
}
