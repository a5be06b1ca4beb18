package refs

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// History is the shape of a repository's past: commits without their content.
type History struct {
	// Tips are the commits that it is the whole past of.
	Tips    []plumbing.Hash
	Commits map[plumbing.Hash]Past
}

// Past is what there is to know of one commit.
type Past struct {
	Parents   []plumbing.Hash
	Committed int64 // committer date, seconds since 1970
}

// NewHistory returns an empty one that is to become the past of tips.
func NewHistory(tips []Tag) History {
	h := History{Commits: map[plumbing.Hash]Past{}}
	for _, t := range tips {
		h.Tips = append(h.Tips, t.Commit)
	}
	return h
}

// Add notes a commit.
func (h History) Add(c *object.Commit) {
	h.Commits[c.Hash] = Past{Parents: c.ParentHashes, Committed: c.Committer.When.Unix()}
}

// Completed returns what can be reached from h's tips over h itself and an older
// history that h was fetched on top of. A missing ancestor is an error, except
// behind the commits of shallow, where the repository itself is cut off. A tip
// that is no commit (a tag may point at a file) is left out.
func (h History) Completed(older History, shallow map[plumbing.Hash]bool) (History, error) {
	find := func(hash plumbing.Hash) (Past, bool) {
		if c, ok := h.Commits[hash]; ok {
			return c, true
		}
		c, ok := older.Commits[hash]
		return c, ok
	}
	out := History{Commits: map[plumbing.Hash]Past{}}
	var todo []plumbing.Hash
	for _, tip := range h.Tips {
		if _, ok := find(tip); ok {
			out.Tips = append(out.Tips, tip)
			todo = append(todo, tip)
		}
	}
	for len(todo) > 0 {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := out.Commits[hash]; seen {
			continue
		}
		c, ok := find(hash)
		if !ok {
			return History{}, fmt.Errorf("commit %s is missing from its history", hash)
		}
		out.Commits[hash] = c
		if !shallow[hash] {
			todo = append(todo, c.Parents...)
		}
	}
	return out, nil
}
