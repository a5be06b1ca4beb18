package repo

import "github.com/go-git/go-git/v5/plumbing"

// scope is which refs are needed to choose a commit. A server of protocol v2 sends
// no others, so that a poll costs the same however many branches and tags there
// are; others send all. A listing may have more than was asked for: a server knows
// of prefixes only, and refs/heads/a is one of refs/heads/ab.
type scope struct {
	branch string // this one; "" for none
	tag    string // this one; "" for none
	tags   bool   // all of them
	head   bool   // what HEAD points at
	all    bool   // everything there is
	// none is set for a commit that is known by its hash: all that is asked is
	// whether the server still answers.
	none bool
}

// scope returns what the version mode chooses from.
func (r *Repo) scope() scope {
	switch v := r.options.Version; v.mode {
	case modeBranch:
		return scope{branch: v.arg}
	case modeTag:
		return scope{tag: v.arg}
	case modeSemver:
		return scope{tags: true}
	case modeCommit:
		known := r.current != nil || plumbing.IsHash(v.arg)
		return scope{none: known, all: !known}
	case modeLatest:
		return scope{branch: master, head: !r.masterSynced, tags: true}
	default:
		return scope{branch: master, head: !r.masterSynced}
	}
}

// prefixes are what the full names of the refs begin with; none for all.
func (s scope) prefixes() []string {
	var out []string
	switch {
	case s.all:
		return nil
	case s.none:
		// No ref can be named so, but for a server a prefix is a prefix.
		return []string{"refs/heads//"}
	}
	if s.head {
		out = append(out, plumbing.HEAD.String())
	}
	if s.branch != "" {
		out = append(out, plumbing.NewBranchReferenceName(s.branch).String())
	}
	switch {
	case s.tags:
		out = append(out, plumbing.NewTagReferenceName("").String())
	case s.tag != "":
		out = append(out, plumbing.NewTagReferenceName(s.tag).String())
	}
	return out
}

// listsTags tells whether a listing of that scope has all tags.
func (s scope) listsTags() bool { return s.all || s.tags }
