package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
)

// The proofs that a set leaves for the process after it: for each object a hash of
// its uid, the content that was sent, and what managedFields then said of it. A live
// object whose uid and entry, with the content that git declares now, give a hash
// that was recorded has not been written by anybody since in what we apply, and
// needs no write. Before other content is sent its proof is taken off the record, so
// that a crash leaves objects without proof, never with a wrong one.
//
// What this cannot see is what a comparison of ownership never sees: fields that
// admission rewrites, and writers that call themselves kubesync too. Secrets have
// no proof: a hash of a weak password would reveal it. They are sent again.

// proofSize is how many bytes of a hash are recorded: enough that no one finds a
// second content to one, few enough that 20,000 objects take a third of a ConfigMap.
const proofSize = 12

// ProofRoom is how many bytes of a parent's 1 MiB the proofs and what is recorded beside
// them may take. Where it does not suffice, proofs are left out: that costs writes.
const ProofRoom = 900_000

type proof [proofSize]byte

// proofs are what was recorded.
type proofs map[proof]bool

// newProof makes the proof of one object; zero for those that have none.
func newProof(id manifest.ID, uid types.UID, content manifest.Digest, applied observed.Entry) (p proof) {
	if content == (manifest.Digest{}) || id.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return proof{}
	}
	hash := sha256.New()
	hash.Write([]byte(uid))
	hash.Write(content[:])
	hash.Write([]byte(applied.Value()))
	copy(p[:], hash.Sum(nil))
	return p
}

// readProofs reads what a parent records.
func readProofs(recorded []byte) proofs {
	read := proofs{}
	for chunk := range slices.Chunk(recorded, proofSize) {
		if len(chunk) == proofSize {
			read[proof(chunk)] = true
		}
	}
	return read
}

// prove fills in what is known of an object that the set did not declare before:
// that it is as an earlier process sent it, if there is proof of that. The caller
// holds mu.
func (l *Ledger) prove(e *Entry, o manifest.Object, live observed.Member, there bool) {
	id := o.ID()
	if !there {
		if id.GroupKind() == manifest.JobKind && l.ended[id.String()] == o.Digest().String() {
			e.sent, e.finished = o.Digest(), true
		}
		return
	}
	// What is not recorded as ours is sent, so that the answer puts it on the record.
	if p := newProof(id, live.UID, o.Digest(), live.Entry); live.Set == l.set && live.Applied && l.proofs[p] && l.recorded.Has(live.UID) {
		e.sent, e.uid, e.entry, e.finished, e.proof = o.Digest(), live.UID, live.Entry, live.Finished, p
	}
}

// Proofs returns what the record is to hold: the proofs of everything that was sent
// or, ahead of a sync, only of what it will not send with other content; no more bytes than
// there is room for.
func (l *Ledger) Proofs(ahead bool, room int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil {
		l.list()
	}
	wrong := proofs{} // of what is about to be sent with other content
	for _, e := range l.unsent {
		if ahead {
			wrong[e.proof] = true
		}
	}
	recorded := make([]byte, 0, len(l.listed)*proofSize)
	for _, one := range l.listed {
		if len(recorded)+proofSize > room {
			break
		}
		if len(wrong) == 0 || !wrong[one] {
			recorded = append(recorded, one[:]...)
		}
	}
	return recorded
}

// list gathers the proofs of all objects. The caller holds mu.
func (l *Ledger) list() {
	l.listed = make([]proof, 0, len(l.objects))
	for _, e := range l.objects {
		if e.proof != (proof{}) {
			l.listed = append(l.listed, e.proof)
		}
	}
	slices.SortFunc(l.listed, proof.compare)
}

// reprove gives an entry another proof. The caller holds mu.
func (l *Ledger) reprove(e *Entry, now proof) {
	before := e.proof
	e.proof = now
	if before == now || l.listed == nil || l.objects[e.object.ID()] != e {
		return
	}
	if at, found := slices.BinarySearchFunc(l.listed, before, proof.compare); found {
		l.listed = slices.Delete(l.listed, at, at+1)
	}
	if at, found := slices.BinarySearchFunc(l.listed, now, proof.compare); !found && now != (proof{}) {
		l.listed = slices.Insert(l.listed, at, now)
	}
}

func (p proof) compare(other proof) int { return bytes.Compare(p[:], other[:]) }

// finished are the Jobs that have ended, each with the content it had, as a parent
// records them.
type finished map[string]string

// readFinished reads what a parent records of them.
func readFinished(text string) finished {
	var ended finished
	if err := json.Unmarshal([]byte(text), &ended); err != nil {
		return nil // nothing was recorded, or a user edited it
	}
	return ended
}

// Finished returns what is to be recorded of Jobs, "" for nothing.
func (l *Ledger) Finished() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := finished{}
	for _, objects := range []map[manifest.ID]*Entry{l.resting, l.objects} {
		for id, e := range objects {
			if e.finished {
				now[id.String()] = e.sent.String()
			}
		}
	}
	if len(now) == 0 {
		return ""
	}
	text, err := json.Marshal(now)
	if err != nil {
		return "" // a map of strings can always be encoded
	}
	return string(text)
}
