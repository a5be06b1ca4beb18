package ledger

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// Entry is an object that a set declares, and what the set knows of the live one from its own
// last write. The ledger's mutex guards it, but for busy.
type Entry struct {
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

	drift    *Drift // nil while the live object is as sent
	conflict conflict
}

func newEntry() *Entry { return &Entry{busy: make(chan struct{}, 1)} }

// Begin waits until no one writes the object, and keeps others from it until [Ledger.End].
func (e *Entry) Begin(ctx context.Context) error {
	select {
	case e.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitIdle waits until none of the objects is being written.
func AwaitIdle(ctx context.Context, entries []*Entry) error {
	for _, e := range entries {
		if err := e.Begin(ctx); err != nil {
			return err
		}
		<-e.busy
	}
	return nil
}

// Condition is how a live object stands to what was sent.
type Condition int

// Conditions.
const (
	AsSent      Condition = iota
	Missing               // deleted, or without any apply set's label
	Changed               // another writer has taken fields from us
	Claimed               // a client-side applier claims fields as well
	Elsewhere             // carries another apply set's label
	Terminating           // is being deleted
)

// String words it for a person.
func (c Condition) String() string {
	switch c {
	case AsSent:
		return "as applied"
	case Missing:
		return "deleted"
	case Changed:
		return "changed"
	case Claimed:
		return "claimed by client-side apply"
	case Elsewhere:
		return "taken over by another apply set"
	case Terminating:
		return "being deleted"
	}
	return fmt.Sprintf("Condition(%d)", int(c))
}

// condition judges the live object. It compares ownership, not values: another
// writer that changes a field which we applied takes it out of our entry in
// managedFields; status, defaults, and the fields of others do not touch it.
func (l *Ledger) condition(e *Entry, live observed.Member, there bool) Condition {
	switch {
	case !there:
		return Missing
	case live.Set != l.set:
		return Elsewhere
	case live.Terminating:
		return Terminating
	case live.UID != e.uid, live.Entry != e.entry:
		return Changed
	case live.Claimed:
		return Claimed
	}
	return AsSent
}

// ended notes that a live object is a Job that was sent and has run, and reports whether
// that is news. The caller holds the ledger's mutex.
func (e *Entry) ended(live observed.Member, there bool) bool {
	if e == nil || e.finished || !there || !live.Finished || live.UID != e.uid {
		return false
	}
	e.finished = true
	return true
}
