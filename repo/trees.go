package repo

import (
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/repo/pack"
)

// maxCachedEntries bounds the directory entries that a treeCache holds; each takes
// some 100 bytes.
const maxCachedEntries = 20_000

// treeCache holds directories that were read, as each file in them is looked up
// many times. The zero value is empty; nil holds nothing.
type treeCache struct {
	mu      sync.Mutex
	trees   map[plumbing.Hash]*parsedTree
	entries int
}

// parsedTree is a directory. No one changes it.
type parsedTree struct {
	entries []object.TreeEntry
	byName  map[string]int
}

// tree returns a directory.
func (f *files) tree(hash plumbing.Hash) (*parsedTree, error) {
	if t := f.trees.get(hash); t != nil {
		return t, nil
	}
	entries, err := pack.ReadTree(f.from, hash)
	if err != nil {
		return nil, err
	}
	t := &parsedTree{entries: entries, byName: make(map[string]int, len(entries))}
	for i, e := range entries {
		t.byName[e.Name] = i
	}
	f.trees.put(hash, t)
	return t, nil
}

func (c *treeCache) get(hash plumbing.Hash) *parsedTree {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trees[hash]
}

func (c *treeCache) put(hash plumbing.Hash, t *parsedTree) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries += len(t.entries); c.trees == nil || c.entries > maxCachedEntries {
		c.trees, c.entries = map[plumbing.Hash]*parsedTree{}, len(t.entries)
	}
	c.trees[hash] = t
}
