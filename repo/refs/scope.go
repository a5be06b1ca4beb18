package refs

import "github.com/go-git/go-git/v5/plumbing"

// Scope is which refs are needed to choose a commit. A server of protocol v2 sends
// no others, so that a poll costs the same however many branches and tags there
// are; others send all. A listing may have more than was asked for: a server knows
// of prefixes only, and refs/heads/a is one of refs/heads/ab.
type Scope struct {
	Branch string // this one; "" for none
	Tag    string // this one; "" for none
	Tags   bool   // all of them
	Head   bool   // what HEAD points at
	All    bool   // everything there is
	// None is set for a commit that is known by its hash: all that is asked is
	// whether the server still answers.
	None bool
}

// Prefixes are what the full names of the refs begin with; none for all.
func (s Scope) Prefixes() []string {
	var out []string
	switch {
	case s.All:
		return nil
	case s.None:
		// No ref can be named so, but for a server a prefix is a prefix.
		return []string{"refs/heads//"}
	}
	if s.Head {
		out = append(out, plumbing.HEAD.String())
	}
	if s.Branch != "" {
		out = append(out, plumbing.NewBranchReferenceName(s.Branch).String())
	}
	switch {
	case s.Tags:
		out = append(out, plumbing.NewTagReferenceName("").String())
	case s.Tag != "":
		out = append(out, plumbing.NewTagReferenceName(s.Tag).String())
	}
	return out
}

// ListsTags reports whether a listing of that scope has all tags.
func (s Scope) ListsTags() bool { return s.All || s.Tags }
