package apply

import (
	"fmt"
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// declaredSet is a set that has sent n ConfigMaps, and knows their answers.
func declaredSet(n int) *Set {
	s := &Set{id: "mine", objects: map[ID]*declared{}}
	for i := range n {
		id := ID{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprint(i)}
		d := &declared{uid: types.UID(fmt.Sprint("uid", i)), entry: unique.Make("{}"), sent: digestOf([]byte{byte(i)})}
		d.object = Object{manifest: &manifest{id: id, content: d.sent}}
		d.proof = newProof(id, d.uid, d.sent, d.entry)
		s.objects[id] = d
	}
	return s
}

func TestProofsAreRecalled(t *testing.T) {
	t.Parallel()
	s := declaredSet(100)
	recorded := s.proven(false, proofRoom)
	if len(recorded) != 100*proofSize {
		t.Fatalf("%d bytes are recorded", len(recorded))
	}
	known := readProofs(recorded)
	for id, d := range s.objects {
		tests := map[string]struct {
			proof proof
			known bool
		}{
			"as it was":       {newProof(id, d.uid, d.sent, d.entry), true},
			"another object":  {newProof(id, "another", d.sent, d.entry), false},
			"another content": {newProof(id, d.uid, digestOf([]byte("other")), d.entry), false},
			"fields lost":     {newProof(id, d.uid, d.sent, unique.Make(`{"f:data":{}}`)), false},
		}
		for name, test := range tests {
			if known[test.proof] != test.known {
				t.Errorf("%s: %s is known: %v", id, name, !test.known)
			}
		}
	}
}

// Before other content is sent its proof goes off the record: a crash after the write
// must not leave a proof of what was there before.
func TestProofsAheadOfAWrite(t *testing.T) {
	t.Parallel()
	s := declaredSet(3)
	changing := s.objects[ID{Kind: "ConfigMap", Namespace: "default", Name: "1"}]
	changing.object.content = digestOf([]byte("new"))
	ahead := readProofs(s.proven(true, proofRoom))
	if len(ahead) != 2 || ahead[changing.proof] {
		t.Errorf("%d proofs ahead of the write, among them that of what changes: %v", len(ahead), ahead[changing.proof])
	}
}

func TestSecretsHaveNoProof(t *testing.T) {
	t.Parallel()
	if p := newProof(ID{Kind: "Secret", Namespace: "default", Name: "x"}, "uid", digestOf([]byte("x")), unique.Make("{}")); p != (proof{}) {
		t.Error("a hash of a Secret's content would be recorded")
	}
}

// What somebody edited proves nothing, and harms nothing.
func TestProofsThatWereCutOff(t *testing.T) {
	t.Parallel()
	if known := readProofs(make([]byte, proofSize+1)); len(known) != 1 {
		t.Errorf("%d proofs in a whole one and a byte", len(known))
	}
}
