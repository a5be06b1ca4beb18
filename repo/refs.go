package repo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	// maxListed is how many names an error lists of those that exist.
	maxListed = 10
	// maxRef bounds the name of a ref, in bytes; git keeps them as files.
	maxRef = 4096
)

// refs are what a repository has to choose from.
type refs struct {
	// of is what was asked for; there may be more in the repository.
	of       scope
	branches map[string]plumbing.Hash // without refs/heads/
	tags     map[string]tag           // without refs/tags/
	// head is the branch that HEAD points at, empty if it points at a commit or
	// the server does not tell. headCommit is zero if HEAD leads nowhere.
	head       string
	headCommit plumbing.Hash
}

func newRefs(of scope) refs {
	return refs{of: of, branches: map[string]plumbing.Hash{}, tags: map[string]tag{}}
}

// tag is what a tag points at. For a light tag tip and commit are the same; for
// an annotated one tip is the tag object, which is what a server knows the tag
// by, and commit what that object leads to.
type tag struct {
	tip    plumbing.Hash
	commit plumbing.Hash
}

// isRef tells a name that git would let a ref have, as far as it matters to those who
// read it: it is shown in logs.
func isRef(name string) bool {
	return len(name) <= maxRef && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// advertised reads the refs of a server's greeting in protocol v0.
func advertised(adv *packp.AdvRefs) (refs, error) {
	out := newRefs(scope{all: true})
	for name, hash := range adv.References {
		if !isRef(name) {
			return refs{}, garbled(name)
		}
		t := tag{tip: hash, commit: hash}
		if peeled, ok := adv.Peeled[name]; ok {
			t.commit = peeled
		}
		out.add(plumbing.ReferenceName(name), t, "")
	}
	if adv.Head != nil {
		out.add(plumbing.HEAD, tag{tip: *adv.Head}, "")
	}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		from, to, _ := strings.Cut(link, ":")
		if target := plumbing.ReferenceName(to); from == plumbing.HEAD.String() && target.IsBranch() && isRef(to) {
			out.head = short(target)
		}
	}
	return out, nil
}

// add notes a ref, and what it is a link to, if it is one. Refs that are neither
// HEAD nor a branch nor a tag are left out.
func (r *refs) add(name plumbing.ReferenceName, t tag, link plumbing.ReferenceName) {
	switch {
	case name == plumbing.HEAD:
		r.headCommit = t.tip
		if link.IsBranch() {
			// Where only HEAD was asked for, this is all that is heard of its branch.
			r.head = short(link)
			r.branches[r.head] = t.tip
		}
	case name.IsBranch():
		r.branches[short(name)] = t.tip
	case name.IsTag():
		r.tags[short(name)] = t
	}
}

// short is the name of a branch or a tag, byte by byte: go-git's own way reads text,
// and puts another character for what is none.
func short(name plumbing.ReferenceName) string {
	for _, kind := range []string{"refs/heads/", "refs/tags/"} {
		if rest, ok := strings.CutPrefix(string(name), kind); ok {
			return rest
		}
	}
	return string(name)
}

// tips returns everything that a branch, a tag or HEAD points at.
func (r refs) tips() []tag {
	seen := map[plumbing.Hash]bool{}
	var tips []tag
	add := func(t tag) {
		if !t.tip.IsZero() && !seen[t.tip] {
			seen[t.tip] = true
			tips = append(tips, t)
		}
	}
	for _, hash := range r.branches {
		add(tag{tip: hash, commit: hash})
	}
	for _, t := range r.tags {
		add(t)
	}
	add(tag{tip: r.headCommit, commit: r.headCommit})
	return tips
}

// empty tells whether nothing was ever committed.
func (r refs) empty() bool {
	return len(r.branches) == 0 && len(r.tags) == 0 && r.headCommit.IsZero()
}

// existing lists up to ten names for an error that says what there is instead of
// what was asked for: "there are main, v2 and 31 more".
func existing[V any](what string, of map[string]V) string {
	names := slices.Sorted(maps.Keys(of))
	switch n := len(names); {
	case n == 0:
		return "the repository has no " + what
	case n > maxListed:
		return fmt.Sprintf("its %s are %s and %d more", what, strings.Join(names[:maxListed], ", "), n-maxListed)
	default:
		return fmt.Sprintf("its %s are %s", what, strings.Join(names, ", "))
	}
}

// tagsOf returns the tips of the tags that lead to a commit and can be read, each
// once.
func (r refs) tagsOf(from objects, commit plumbing.Hash) []plumbing.Hash {
	var tips []plumbing.Hash
	for _, t := range r.tags {
		if t.commit == commit && from.has(t.tip) {
			tips = append(tips, t.tip)
		}
	}
	plumbing.HashesSort(tips)
	return slices.Compact(tips)
}
