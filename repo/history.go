package repo

import (
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// history is the shape of a repository's past: commits without their content.
type history struct {
	// tips are the commits that it is the whole past of.
	tips    []plumbing.Hash
	commits map[plumbing.Hash]past
}

// past is what there is to know of one commit.
type past struct {
	parents   []plumbing.Hash
	committed int64 // committer date, seconds since 1970
}

// newHistory returns an empty one that is to become the past of tips.
func newHistory(tips []tag) history {
	h := history{commits: map[plumbing.Hash]past{}}
	for _, t := range tips {
		h.tips = append(h.tips, t.commit)
	}
	return h
}

// add notes a commit.
func (h history) add(c *object.Commit) {
	h.commits[c.Hash] = past{parents: c.ParentHashes, committed: c.Committer.When.Unix()}
}

// completed returns what can be reached from h's tips over h itself and an older
// history that h was fetched on top of. A missing ancestor is an error, except
// behind the commits of shallow, where the repository itself is cut off. A tip
// that is no commit (a tag may point at a file) is left out.
func (h history) completed(older history, shallow map[plumbing.Hash]bool) (history, error) {
	find := func(hash plumbing.Hash) (past, bool) {
		if c, ok := h.commits[hash]; ok {
			return c, true
		}
		c, ok := older.commits[hash]
		return c, ok
	}
	out := history{commits: map[plumbing.Hash]past{}}
	var todo []plumbing.Hash
	for _, tip := range h.tips {
		if _, ok := find(tip); ok {
			out.tips = append(out.tips, tip)
			todo = append(todo, tip)
		}
	}
	for len(todo) > 0 {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := out.commits[hash]; seen {
			continue
		}
		c, ok := find(hash)
		if !ok {
			return history{}, fmt.Errorf("commit %s is missing from its history", hash)
		}
		out.commits[hash] = c
		if !shallow[hash] {
			todo = append(todo, c.parents...)
		}
	}
	return out, nil
}
