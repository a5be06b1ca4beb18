package ledger

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/fstest"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/observed"
	"github.com/kubesync/kubesync/internal/limits"
)

// written is the ledger of a set that has sent n ConfigMaps, and knows their answers.
func written(t *testing.T, n int) *Ledger {
	t.Helper()
	l := New("mine")
	var all []manifest.Object
	for i := range n {
		all = append(all, numbered(t, i, "old"))
	}
	l.Declare(Declaration{Objects: all})
	for i, o := range all {
		l.Wrote(l.Entry(o.ID()), o, observed.Member{ID: o.ID(), UID: types.UID(fmt.Sprint("uid", i)), Entry: unique.Make("{}")})
	}
	return l
}

// numbered returns the ConfigMap of a number, with a value.
func numbered(t *testing.T, number int, value string) manifest.Object {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: \"%d\"}, data: {key: %s}}", number, value))
}

// object reads one manifest.
func object(t *testing.T, text string) manifest.Object {
	t.Helper()
	loaded, err := manifest.NewLoader(limits.Limits{}).Load(fstest.MapFS{"a.yaml": {Data: []byte(text)}})
	if err != nil || len(loaded.Objects) != 1 {
		t.Fatalf("%d objects, %v", len(loaded.Objects), err)
	}
	return loaded.Objects[0]
}

func TestProofsAreRecalled(t *testing.T) {
	t.Parallel()
	l := written(t, 100)
	recorded := l.Proofs(false, ProofRoom)
	if len(recorded) != 100*proofSize {
		t.Fatalf("%d bytes are recorded", len(recorded))
	}
	known := readProofs(recorded)
	for id, d := range l.objects {
		tests := map[string]struct {
			proof proof
			known bool
		}{
			"as it was":       {newProof(id, d.uid, d.sent, d.entry), true},
			"another object":  {newProof(id, "another", d.sent, d.entry), false},
			"another content": {newProof(id, d.uid, manifest.DigestOf([]byte("other")), d.entry), false},
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
	l := written(t, 3)
	changing := l.objects[manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "1"}]
	l.Change([]manifest.Object{numbered(t, 1, "new")})
	ahead := readProofs(l.Proofs(true, ProofRoom))
	if len(ahead) != 2 || ahead[changing.proof] {
		t.Errorf("%d proofs ahead of the write, among them that of what changes: %v", len(ahead), ahead[changing.proof])
	}
}

// What is kept of proofs between two records agrees with what all objects have.
func TestProofsAgree(t *testing.T) {
	t.Parallel()
	const size = 10
	random := rand.New(rand.NewPCG(1, 2))
	l := written(t, size)
	all := map[manifest.ID]bool{}
	for id := range l.objects {
		all[id] = true
	}
	for step := range 500 {
		at := random.IntN(size)
		o := numbered(t, at, "v"+strconv.Itoa(random.IntN(3)))
		e := l.Entry(o.ID())
		switch random.IntN(8) {
		case 0: // a revision of another set of objects
			var objects []manifest.Object
			for i := range size {
				objects = append(objects, numbered(t, i, "v"+strconv.Itoa(random.IntN(2))))
			}
			l.Declare(Declaration{Objects: objects, All: all})
		case 1, 2, 3:
			l.Change([]manifest.Object{o})
		case 4: // a correction sends what was sent last
			l.Wrote(e, numbered(t, at, "old"), observed.Member{ID: o.ID(), UID: e.uid, Entry: e.entry})
		default:
			l.Wrote(e, e.object, observed.Member{ID: o.ID(), UID: types.UID(strconv.Itoa(random.IntN(50))), Entry: e.entry})
		}
		for _, ahead := range []bool{true, false} {
			want := proofs{}
			for _, e := range l.objects {
				if !ahead || e.sent == e.object.Digest() {
					want[e.proof] = true
				}
			}
			if got := readProofs(l.Proofs(ahead, ProofRoom)); !maps.Equal(got, want) {
				t.Fatalf("after %d steps, ahead %t: %d proofs, want %d", step+1, ahead, len(got), len(want))
			}
		}
		if want := l.recorded.Encode(MaxRecorded); !bytes.Equal(l.Members(), want) {
			t.Fatalf("after %d steps the record is not as it is kept", step+1)
		}
	}
}

func TestSecretsHaveNoProof(t *testing.T) {
	t.Parallel()
	if p := newProof(manifest.ID{Kind: "Secret", Namespace: "default", Name: "x"}, "uid", manifest.DigestOf([]byte("x")), unique.Make("{}")); p != (proof{}) {
		t.Error("a hash of a Secret's content would be recorded")
	}
}

// What a user edited proves nothing, and harms nothing.
func TestProofsThatWereCutOff(t *testing.T) {
	t.Parallel()
	if known := readProofs(make([]byte, proofSize+1)); len(known) != 1 {
		t.Errorf("%d proofs in a whole one and a byte", len(known))
	}
}
