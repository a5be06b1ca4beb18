// Package refs has what a repository offers to choose from: its branches and tags
// ([List]), and the shape of their history ([History]). A [Scope] says which of them are
// needed, so that a poll costs the same however many there are.
package refs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// maxListed is how many names an error lists of those that exist.
	maxListed = 10
	// MaxName bounds the name of a ref, in bytes; git keeps them as files.
	MaxName = 4096
)

// List is what a repository has to choose from.
type List struct {
	// Scope is what was asked for; there may be more in the repository.
	Scope    Scope
	Branches map[string]plumbing.Hash // without refs/heads/
	Tags     map[string]Tag           // without refs/tags/
	// Head is the branch that HEAD points at, empty if it points at a commit or
	// the server does not say. headCommit is zero if HEAD leads nowhere.
	Head       string
	HeadCommit plumbing.Hash
}

func New(of Scope) List {
	return List{Scope: of, Branches: map[string]plumbing.Hash{}, Tags: map[string]Tag{}}
}

// Tag is what a tag points at. For a light tag tip and commit are the same; for
// an annotated one tip is the tag object, which is what a server knows the tag
// by, and commit what that object leads to.
type Tag struct {
	Tip    plumbing.Hash
	Commit plumbing.Hash
}

// Light is a branch, or a light tag, which point at a commit.
func Light(commit plumbing.Hash) Tag { return Tag{Tip: commit, Commit: commit} }

// IsName reports a name that git would let a ref have, as far as it matters to those who
// read it: it is shown in logs.
func IsName(name string) bool {
	return len(name) <= MaxName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// Add notes a ref, and what it is a link to, if it is one. Refs that are neither
// HEAD nor a branch nor a tag are left out.
func (r *List) Add(name plumbing.ReferenceName, t Tag, link plumbing.ReferenceName) {
	switch {
	case name == plumbing.HEAD:
		r.HeadCommit = t.Tip
		if link.IsBranch() {
			// Where only HEAD was asked for, this is all that is known of its branch.
			r.Head = Short(link)
			r.Branches[r.Head] = t.Tip
		}
	case name.IsBranch():
		r.Branches[Short(name)] = t.Tip
	case name.IsTag():
		r.Tags[Short(name)] = t
	}
}

// Short is the name of a branch or a tag, byte by byte: go-git's own way reads text,
// and puts another character for what is none.
func Short(name plumbing.ReferenceName) string {
	for _, kind := range []string{"refs/heads/", "refs/tags/"} {
		if rest, ok := strings.CutPrefix(string(name), kind); ok {
			return rest
		}
	}
	return string(name)
}

// Tips returns everything that a branch, a tag or HEAD points at.
func (r List) Tips() []Tag {
	seen := map[plumbing.Hash]bool{}
	var tips []Tag
	add := func(t Tag) {
		if !t.Tip.IsZero() && !seen[t.Tip] {
			seen[t.Tip] = true
			tips = append(tips, t)
		}
	}
	for _, hash := range r.Branches {
		add(Tag{Tip: hash, Commit: hash})
	}
	for _, t := range r.Tags {
		add(t)
	}
	add(Tag{Tip: r.HeadCommit, Commit: r.HeadCommit})
	return tips
}

// empty reports whether nothing was ever committed.
func (r List) empty() bool {
	return len(r.Branches) == 0 && len(r.Tags) == 0 && r.HeadCommit.IsZero()
}

// Existing lists up to ten names for an error that says what there is instead of
// what was asked for: "there are main, v2 and 31 more".
func Existing[V any](what string, of map[string]V) string {
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

// NoCommit is the error of a commit that is not there.
func (r List) NoCommit(digits string) error {
	return r.Nothing(fmt.Sprintf("there is no commit %s in the history of its branches and tags (was it pushed?)", digits), Existing("branches", r.Branches))
}

// Nothing is the error of a mode that selects nothing.
func (r List) Nothing(reason, instead string) error {
	if r.empty() {
		return &NothingError{reason + ": the repository is empty, nothing was ever pushed to it"}
	}
	return &NothingError{reason + "; " + instead}
}

// NothingError says that there is not what was looked for, and what there is.
type NothingError struct{ text string }

func (e *NothingError) Error() string { return e.text }
