// Package gitbytes makes what git and its servers send by hand, also what they never would:
// the lines of a message, objects, and text that does not compress.
package gitbytes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"
)

// Packets returns the lines of a message as packets; "0000" and "0001" are those.
func Packets(lines ...string) []byte {
	var out bytes.Buffer
	packets := pktline.NewEncoder(&out)
	for _, line := range lines {
		if line == "0000" || line == "0001" {
			out.WriteString(line)
		} else {
			_ = packets.EncodeString(line + "\n")
		}
	}
	return out.Bytes()
}

// Noise is text of n bytes that does not compress well, the same in each run.
func Noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x\n", random.Uint64())
	}
	return b.String()[:n]
}

// Objects is a store of objects that are made up, as a user who means ill might.
type Objects map[plumbing.Hash]*plumbing.MemoryObject

// Object returns an object, or plumbing.ErrObjectNotFound.
func (o Objects) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if found, ok := o[hash]; ok {
		return found, nil
	}
	return nil, plumbing.ErrObjectNotFound
}

// Size is that of an object that is there.
func (o Objects) Size(hash plumbing.Hash) (int64, error) { return o[hash].Size(), nil }

// Limits are none.
func (o Objects) Limits() limits.Limits { return limits.Limits{} }

// Has reports whether an object is there.
func (o Objects) Has(hash plumbing.Hash) bool { _, ok := o[hash]; return ok }

// Add adds an object.
func (o Objects) Add(kind plumbing.ObjectType, content []byte) plumbing.Hash {
	added := new(plumbing.MemoryObject)
	added.SetType(kind)
	_, _ = added.Write(content)
	o[added.Hash()] = added
	return added.Hash()
}

// Tree adds a directory with names as they are given, in that order.
func (o Objects) Tree(entries ...object.TreeEntry) plumbing.Hash {
	var content []byte
	for _, e := range entries {
		content = fmt.Appendf(content, "%o %s\x00", e.Mode, e.Name)
		content = append(content, e.Hash[:]...)
	}
	return o.Add(plumbing.TreeObject, content)
}

// Commit adds a commit of a directory.
func (o Objects) Commit(tree plumbing.Hash) *object.Commit {
	hash := o.Add(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n", tree))
	return &object.Commit{Hash: hash, TreeHash: tree}
}
