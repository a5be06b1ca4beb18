package apply

import (
	"cmp"
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// declared is an object that a set declares, and what the set knows of the live one
// from its own last write. The set's mutex guards it, but for busy.
type declared struct {
	object manifest.Object
	before *manifest.Content // what was declared and sent before that; nil once that is sent, too

	// sent is the content that the set has sent last, successfully, or has proof of
	// having sent; zero if it knows of none. The answer named the uid and what we have
	// applied since.
	sent     manifest.Digest
	uid      types.UID
	entry    observed.Entry
	proof    proof // of these three; zero for none
	finished bool  // a Job that was seen Complete or Failed with this content

	// busy is held while the object is being written. Stirred then says that an event
	// came in, which cannot be judged before the answer is there; stirredBy are its
	// managedFields.
	busy      chan struct{}
	stirred   bool
	stirredBy []metav1.ManagedFieldsEntry

	drift    *drift // nil while the live object is as sent
	conflict conflict
}

// condition is how a live object stands to what was sent.
type condition int

const (
	asSent      condition = iota
	missing               // deleted, or without any apply set's label
	changed               // another writer has taken fields from us
	claimed               // a client-side applier claims fields as well
	elsewhere             // carries another apply set's label
	terminating           // is being deleted
)

// condition judges the live object. It compares ownership, not values: another
// writer that changes a field which we applied takes it out of our entry in
// managedFields; status, defaults, and the fields of others do not touch it.
func (s *Set) condition(d *declared, live observed.Member, there bool) condition {
	switch {
	case !there:
		return missing
	case live.Set != s.id:
		return elsewhere
	case live.Terminating:
		return terminating
	case live.UID != d.uid, live.Entry != d.entry:
		return changed
	case live.Claimed:
		return claimed
	}
	return asSent
}

// ended notes that a live object is a Job that was sent and has run, and reports whether
// that is news. The caller holds the set's mutex.
func (d *declared) ended(live observed.Member, there bool) bool {
	if d == nil || d.finished || !there || !live.Finished || live.UID != d.uid {
		return false
	}
	d.finished = true
	return true
}

// declare makes the objects those that the set declares from now on. What is known
// of those that it declared before stays known; of the others the proofs of an
// earlier process may say it. An object that is declared no more is not being written
// when this returns.
func (s *Set) declare(ctx context.Context, plan *Plan) error {
	s.mu.Lock()
	before := s.objects
	if before == nil {
		s.recall(plan.parent)
	}
	s.objects = make(map[manifest.ID]*declared, len(plan.objects))
	for _, o := range plan.objects {
		id := o.ID()
		d := before[id]
		if d == nil {
			d = s.resting[id]
		}
		if d == nil {
			d = &declared{busy: make(chan struct{}, 1)}
			s.prove(d, o, plan)
		}
		if was := d.object.Content; was != nil && was.Digest() == d.sent && was.Digest() != o.Digest() {
			d.before = was
		}
		d.object = o
		s.objects[id] = d
		delete(before, id)
	}
	s.rest(plan, before)
	s.noteDying(plan)
	s.proofs, s.ended = nil, nil
	s.pending, s.waiting = len(plan.held) > 0, nil
	s.mu.Unlock()
	if s.housedMeanwhile(plan) {
		s.wake()
	}
	for _, left := range before {
		if err := left.begin(ctx); err != nil {
			return err
		}
		<-left.busy
	}
	return nil
}

// rest keeps what is known of the objects that the plan holds back. No one corrects them, and
// their health is nobody's concern. The caller holds mu.
func (s *Set) rest(plan *Plan, before map[manifest.ID]*declared) {
	resting := map[manifest.ID]*declared{}
	for _, o := range plan.held {
		if d := cmp.Or(before[o.ID], s.resting[o.ID]); d != nil {
			d.drift = nil // events do not reach it, so that its end would go unseen
			resting[o.ID] = d
		}
	}
	s.resting = resting
}

// declares returns the identities of the objects that the set declares, in no order.
func (s *Set) declares() []manifest.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

// declaration returns what the set knows of an object that it declares, nil if it
// declares it no more.
func (s *Set) declaration(id manifest.ID) *declared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[id]
}

// hadApplied returns what the set knows to have applied of the very object that it is
// about to know anew.
func (s *Set) hadApplied(id manifest.ID, uid types.UID) observed.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.objects[id]; d != nil && d.uid == uid {
		return d.entry
	}
	return observed.Entry{}
}

// begin waits until no one writes the object, and keeps others from it.
func (d *declared) begin(ctx context.Context) error {
	select {
	case d.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end lets others write the object, and looks at what came in meanwhile.
func (s *Set) end(d *declared) {
	<-d.busy
	s.mu.Lock()
	stirred, by, id := d.stirred, d.stirredBy, d.object.ID()
	d.stirred, d.stirredBy = false, nil
	s.mu.Unlock()
	if stirred {
		s.consider(id, by)
	}
}

// wrote notes the answer to a successful write.
func (s *Set) wrote(d *declared, o manifest.Object, live metav1.Object, m observed.Member) {
	s.mu.Lock()
	// An event may have shown a Job's end before this answer, which was given earlier.
	ended := d.finished && d.uid == m.UID && d.sent == o.Digest()
	s.recordAnswer(d.uid, m.UID)
	d.sent, d.uid, d.entry, d.drift, d.before = o.Digest(), m.UID, m.Entry, nil, nil
	d.finished, d.proof = m.Finished || ended, newProof(m.ID, m.UID, o.Digest(), m.Entry)
	s.mu.Unlock()
	if w := s.cluster.watched(); w != nil {
		w.members.Put(o.ID(), live)
	}
}

// look returns what is known of a live object: what is seen of it now or, when the
// cluster is not being watched, what the plan found.
func (s *Set) look(plan *Plan, id manifest.ID) (live observed.Member, there bool) {
	if w := s.cluster.watched(); w != nil {
		if live, there, known := w.members.Find(id); known || there {
			return live, there
		}
	}
	live, there = plan.members[id]
	return live, there
}
