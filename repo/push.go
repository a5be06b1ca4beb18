package repo

import (
	"net/url"
	"slices"
	"strings"
)

// Push is what a git server reports of a push.
type Push struct {
	URLs []URL // spellings of the repository's address, as the server knows them
	// Refs are the full names of the refs that were pushed; none: the server did not
	// say which.
	Refs []string
	// DefaultBranch is the short name of the branch that HEAD points at; empty: the
	// server did not say.
	DefaultBranch string
}

// Concerns reports whether the push may change what a version of a repository selects. In
// doubt it may: all that hangs on it is a poll.
func (p Push) Concerns(repository URL, version Version) bool {
	if !slices.ContainsFunc(p.URLs, repository.sameRepository) {
		return false
	}
	return len(p.Refs) == 0 || slices.ContainsFunc(p.Refs, func(ref string) bool { return p.concerns(ref, version) })
}

// concerns reports whether a ref may change what a version selects.
func (p Push) concerns(ref string, version Version) bool {
	tag := strings.HasPrefix(ref, "refs/tags/")
	switch version.mode {
	case modeDefault:
		return p.isDefault(ref)
	case modeBranch:
		return ref == "refs/heads/"+version.arg
	case modeTag:
		return ref == "refs/tags/"+version.arg
	case modeLatest:
		return tag || p.isDefault(ref) // a tag may come to be reachable
	case modeSemver:
		return tag
	default: // a commit may come with any ref
		return true
	}
}

// isDefault reports whether a ref may be the default branch, which is master wherever
// there is one.
func (p Push) isDefault(ref string) bool {
	branch, found := strings.CutPrefix(ref, "refs/heads/")
	return found && (p.DefaultBranch == "" || branch == p.DefaultBranch || branch == "master")
}

// sameRepository reports whether two URLs name one repository, whatever the scheme, the
// port and the user: the same server has others for ssh than for https. Case does not
// count, as the large services ignore it.
func (u URL) sameRepository(other URL) bool {
	return u.IsFile() == other.IsFile() && u.host == other.host && strings.EqualFold(u.plainPath(), other.plainPath())
}

// plainPath is the path without slashes at its ends, .git and escapes.
func (u URL) plainPath() string {
	path := strings.Trim(u.path, "/")
	if u.scheme == "http" || u.scheme == "https" {
		if plain, err := url.PathUnescape(path); err == nil {
			path = strings.Trim(plain, "/")
		}
	}
	return strings.TrimSuffix(path, ".git")
}
