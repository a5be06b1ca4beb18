package apply

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

// proofRoom is how many bytes of a parent's 1 MiB the proofs and what is recorded beside
// them may take. Where it does not suffice, proofs are left out: that costs writes.
const proofRoom = 900_000

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
func (s *Set) prove(d *declared, o manifest.Object, plan *Plan) {
	id := o.ID()
	live, there := plan.members[id]
	if !there {
		if s.finishedBefore(id, o.Digest()) {
			d.sent, d.finished = o.Digest(), true
		}
		return
	}
	// What is not recorded as ours is sent, so that the answer puts it on the record.
	if p := newProof(id, live.UID, o.Digest(), live.Entry); live.Set == s.id && live.Applied && s.proofs[p] && s.recorded.Has(live.UID) {
		d.sent, d.uid, d.entry, d.finished, d.proof = o.Digest(), live.UID, live.Entry, live.Finished, p
	}
}

// proven returns what the record is to hold: the proofs of everything that was sent
// or, ahead of a sync, only of what it will not send with other content; no more than
// there is room for.
func (s *Set) proven(ahead bool, room int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := make([]proof, 0, len(s.objects))
	for _, d := range s.objects {
		if d.proof != (proof{}) && (!ahead || d.sent == d.object.Digest()) {
			sorted = append(sorted, d.proof)
		}
	}
	slices.SortFunc(sorted, func(a, b proof) int { return bytes.Compare(a[:], b[:]) })
	sorted = sorted[:min(len(sorted), room/proofSize)]
	recorded := make([]byte, 0, len(sorted)*proofSize)
	for _, one := range sorted {
		recorded = append(recorded, one[:]...)
	}
	return recorded
}

// recall reads what an earlier process recorded, before the set declares anything
// for the first time. It is good for that moment only: from then on this process
// writes. The caller holds mu.
func (s *Set) recall(from parent) {
	s.proofs, s.ended = readProofs(from.binary(binaryProofs)), finished{}
	if text := from.data(dataFinished); text != "" {
		if err := json.Unmarshal([]byte(text), &s.ended); err != nil {
			s.ended = finished{} // a user edited it
		}
	}
}

// finished are the Jobs that have ended, each with the content it had, as a parent
// records them.
type finished map[string]string

// finishedBefore reports whether an earlier process saw a Job of that content end. The
// caller holds mu.
func (s *Set) finishedBefore(id manifest.ID, content manifest.Digest) bool {
	return id.GroupKind() == manifest.JobKind && s.ended[id.String()] == content.String()
}

// finishedNow returns what is to be recorded of Jobs, "" for nothing.
func (s *Set) finishedNow() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := finished{}
	for _, objects := range []map[manifest.ID]*declared{s.resting, s.objects} {
		for id, d := range objects {
			if d.finished {
				now[id.String()] = d.sent.String()
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
