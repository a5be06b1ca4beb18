package ledger

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/apply/prune"
)

// Ledger is what a set knows of its objects. Its methods may be called concurrently.
type Ledger struct {
	set string // the apply set ID

	mu      sync.Mutex             // guards what follows
	objects map[manifest.ID]*Entry // nil before the first sync
	// unsent are those of the objects that are declared with other content than was sent.
	unsent map[manifest.ID]*Entry
	// resting is what is known of objects that are declared and pending: whoever corrects
	// them may have to know, of a Job, that it has run.
	resting map[manifest.ID]*Entry
	homes   map[string]bool                 // the Namespaces that are declared, or objects in them
	dying   map[manifest.ID]observed.Member // what is declared, and was found being deleted
	// What an earlier process recorded, until the set declares something.
	proofs proofs
	ended  finished
	// listed are the proofs of all objects that have one, sorted; nil where they are to be
	// gathered anew.
	listed []proof
	// recorded are the UIDs that the answers to the set's own writes have named, also those
	// to an earlier process, as the parent records them. Nothing else is deleted.
	recorded   prune.Record
	encoded    []byte // the record as the parent holds it; nil where it has changed
	parentless bool   // the parent was not there when a plan began
	// left says since when members are declared no more.
	left map[manifest.ID]time.Time
	// rejected holds what the API server called a mistake in the manifest, with
	// the content it was said of: sending the same again would not help.
	rejected map[manifest.ID]rejection
	// deleting holds the deletions that were begun and not yet observed to end.
	deleting map[manifest.ID]observed.Member
}

// rejection is a manifest error that stands until the content changes.
type rejection struct {
	content manifest.Digest // of what was sent
	err     error
}

// New returns the ledger of a set that knows nothing yet, by its apply set ID.
func New(set string) *Ledger {
	return &Ledger{
		set: set, recorded: prune.Record{}, dying: map[manifest.ID]observed.Member{},
		rejected: map[manifest.ID]rejection{}, deleting: map[manifest.ID]observed.Member{},
	}
}

// Declaration is what a set declares from now on.
type Declaration struct {
	Objects []manifest.Object    // to be applied
	Pending []manifest.ID        // that are held back
	All     map[manifest.ID]bool // both, and nothing else
	// Live are the live objects of the set, as far as they are known.
	Live map[manifest.ID]observed.Member
	// Terminating are the Namespaces that are being deleted.
	Terminating map[string]bool
	// Proofs and Finished are what the parent records, for the first declaration of a process.
	Proofs   []byte
	Finished string
}

// Declare makes the objects those that the set declares from now on. What is known
// of those that it declared before stays known; of the others the proofs of an
// earlier process may say it. It returns the entries that are declared no more, which may
// still be being written: see [AwaitIdle].
func (l *Ledger) Declare(now Declaration) (left []*Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.objects
	if before == nil {
		l.proofs, l.ended = readProofs(now.Proofs), readFinished(now.Finished)
	}
	l.objects, l.unsent, l.listed = make(map[manifest.ID]*Entry, len(now.Objects)), map[manifest.ID]*Entry{}, nil
	for _, o := range now.Objects {
		id := o.ID()
		e := cmp.Or(before[id], l.resting[id])
		if e == nil {
			e = newEntry()
			live, there := now.Live[id]
			l.prove(e, o, live, there)
		}
		l.objects[id] = e
		l.become(e, o)
		delete(before, id)
	}
	l.rest(now.Pending, before)
	l.noteHomes(now)
	l.proofs, l.ended = nil, nil
	return slices.Collect(maps.Values(before))
}

// Change gives objects that are declared, and stay so, another content or origin.
func (l *Ledger) Change(objects []manifest.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range objects {
		l.become(l.objects[o.ID()], o)
	}
}

// become has an entry stand for what is declared now of its object. The caller holds mu.
func (l *Ledger) become(e *Entry, o manifest.Object) {
	if was := e.object.Content; was != nil && was.Digest() == e.sent && was.Digest() != o.Digest() {
		e.before = was
	}
	e.object = o
	l.noteUnsent(e)
}

// noteUnsent notes whether the content that is declared of an object was sent. The caller
// holds mu.
func (l *Ledger) noteUnsent(e *Entry) {
	switch id := e.object.ID(); {
	case l.objects[id] != e:
	case e.sent == e.object.Digest():
		delete(l.unsent, id)
	default:
		l.unsent[id] = e
	}
}

// rest keeps what is known of the objects that are held back. No one corrects them, and
// their health is nobody's concern. The caller holds mu.
func (l *Ledger) rest(pending []manifest.ID, before map[manifest.ID]*Entry) {
	resting := map[manifest.ID]*Entry{}
	for _, id := range pending {
		if e := cmp.Or(before[id], l.resting[id]); e != nil {
			e.drift = nil // events do not reach it, so that its end would go unseen
			resting[id] = e
		}
	}
	l.resting = resting
}

// noteHomes notes where the set has objects, and which of these Namespaces are being
// deleted. The caller holds mu.
func (l *Ledger) noteHomes(now Declaration) {
	l.homes, l.dying = map[string]bool{}, map[manifest.ID]observed.Member{}
	for id := range now.All {
		if home := id.Home(); home != "" {
			l.homes[home] = true
		}
	}
	for _, pending := range now.Pending {
		if home := pending.Home(); now.Terminating[home] {
			id := manifest.ID{Kind: manifest.NamespaceKind.Kind, Name: home}
			l.dying[id] = observed.Member{ID: id}
		}
	}
}

// Close declares nothing any more, and returns the entries that may still be being written.
func (l *Ledger) Close() []*Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.objects
	l.objects = nil
	return slices.Collect(maps.Values(objects))
}

// HasDeclared reports whether the set has been applied by this process.
func (l *Ledger) HasDeclared() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objects != nil
}

// IDs returns the identities of the objects that the set declares, in no order.
func (l *Ledger) IDs() []manifest.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.objects))
}

// Objects returns those of some objects that the set declares.
func (l *Ledger) Objects(ids []manifest.ID) []manifest.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	var declared []manifest.Object
	for _, id := range ids {
		if e := l.objects[id]; e != nil {
			declared = append(declared, e.object)
		}
	}
	return declared
}

// Entry returns what is known of an object that the set declares, nil if it
// declares it no more.
func (l *Ledger) Entry(id manifest.ID) *Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objects[id]
}

// LivesIn reports whether the set declares a Namespace, or objects in it.
func (l *Ledger) LivesIn(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.homes[namespace]
}

// Applied returns what the set knows to have applied of the very object that it is
// about to know anew.
func (l *Ledger) Applied(id manifest.ID, uid types.UID) observed.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.objects[id]; e != nil && e.uid == uid {
		return e.entry
	}
	return observed.Entry{}
}

// Before returns what was declared and sent before, nil if that is not known.
func (l *Ledger) Before(e *Entry) *manifest.Content {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.before
}

// End lets others write the object. It reports whether an event came in meanwhile, which is
// to be looked at now, and the managedFields of that.
func (l *Ledger) End(e *Entry) (id manifest.ID, stirred bool, by []metav1.ManagedFieldsEntry) {
	<-e.busy
	l.mu.Lock()
	defer l.mu.Unlock()
	stirred, by = e.stirred, e.stirredBy
	e.stirred, e.stirredBy = false, nil
	return e.object.ID(), stirred, by
}

// Wrote notes the answer to a successful write.
func (l *Ledger) Wrote(e *Entry, o manifest.Object, m observed.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// An event may have shown a Job's end before this answer, which was given earlier.
	ended := e.finished && e.uid == m.UID && e.sent == o.Digest()
	l.recordAnswer(e.uid, m.UID)
	e.sent, e.uid, e.entry, e.drift, e.before = o.Digest(), m.UID, m.Entry, nil, nil
	e.finished = m.Finished || ended
	l.noteUnsent(e)
	l.reprove(e, newProof(m.ID, m.UID, o.Digest(), m.Entry))
}

// Standing is how a declared object stands to what was sent of it.
type Standing struct {
	Sent     bool // what is declared now was sent
	Is       Condition
	Finished bool          // it is a Job that has run
	Drift    *Drift        // what is known of its drift
	Wait     time.Duration // for which it is to be let be, for it is in conflict
}

// Standing says how the live object stands to what was sent.
func (l *Ledger) Standing(o manifest.Object, live observed.Member, there bool, now time.Time) Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.objects[o.ID()]
	e.ended(live, there)
	return Standing{
		Sent: e.sent != (manifest.Digest{}) && e.sent == o.Digest(), Is: l.condition(e, live, there),
		Finished: e.finished, Drift: e.drift, Wait: e.conflict.wait(now),
	}
}

// Settled reports whether nothing is under way: no drift, no conflict, no deletion.
func (l *Ledger) Settled(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.deleting)+len(l.dying) > 0 {
		return false
	}
	for _, e := range l.objects {
		if e.drift != nil || e.conflict.wait(now) > 0 {
			return false
		}
	}
	return true
}

// Reject remembers that the API server called an object's content a mistake.
func (l *Ledger) Reject(o manifest.Object, problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rejected[o.ID()] = rejection{content: o.Digest(), err: problem}
}

// Rejected returns what the API server said of the very same content, nil if nothing.
func (l *Ledger) Rejected(o manifest.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	earlier, found := l.rejected[o.ID()]
	if found && earlier.content == o.Digest() {
		return earlier.err
	}
	delete(l.rejected, o.ID())
	return nil
}
