package pack

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"
)

// hash is an object's name.
const hash = "0123456789abcdef0123456789abcdef01234567"

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noise is text of n bytes that does not compress well, the same in each run.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x\n", random.Uint64())
	}
	return b.String()[:n]
}

// trees are objects that are made up.
type trees map[plumbing.Hash]*plumbing.MemoryObject

func (f trees) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if o, ok := f[hash]; ok {
		return o, nil
	}
	return nil, plumbing.ErrObjectNotFound
}

func (f trees) Size(hash plumbing.Hash) (int64, error) { return f[hash].Size(), nil }
func (f trees) Limits() limits.Limits                  { return limits.Limits{} }
func (f trees) Has(hash plumbing.Hash) bool            { _, ok := f[hash]; return ok }

func (f trees) add(kind plumbing.ObjectType, content []byte) plumbing.Hash {
	o := new(plumbing.MemoryObject)
	o.SetType(kind)
	_, _ = o.Write(content)
	f[o.Hash()] = o
	return o.Hash()
}

// commit adds a commit of an empty directory.
func (f trees) commit() *object.Commit {
	tree := f.add(plumbing.TreeObject, nil)
	hash := f.add(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n", tree))
	return &object.Commit{Hash: hash, TreeHash: tree}
}
