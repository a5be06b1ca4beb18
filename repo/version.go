package repo

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
)

// minAbbreviation is the shortest commit hash taken, git's own minimum.
const minAbbreviation = 4

const acceptedVersions = "accepted are branch:NAME, commit:SHA (full, or its first 4 digits or more), tag:NAME, tag:latest, semver:RANGE and worktree"

type mode int

const (
	modeDefault mode = iota // master, or what HEAD points at where there never was one
	modeBranch
	modeCommit
	modeTag
	modeLatest
	modeSemver
	modeWorktree
)

// Version says which revision of a repository is wanted: a parsed VERSION_MODE.
// The zero value is VERSION_MODE unset: branch master, or the branch that HEAD
// points at where there is and was no master. Versions are comparable.
type Version struct {
	mode mode
	arg  string // the branch, tag or range; the commit in lower case
}

// ParseVersion reads a VERSION_MODE. The empty string is the zero Version. The
// error says what is accepted.
func ParseVersion(s string) (Version, error) {
	kind, arg, _ := strings.Cut(s, ":")
	fail := func(reason string) (Version, error) {
		return Version{}, fmt.Errorf("version mode %q: %s; %s", s, reason, acceptedVersions)
	}
	switch kind {
	case "":
		if s == "" {
			return Version{}, nil
		}
	case "branch":
		if err := plumbing.NewBranchReferenceName(arg).Validate(); err != nil {
			return fail("that is no branch name")
		}
		return Version{modeBranch, arg}, nil
	case "commit":
		arg = strings.ToLower(arg)
		if len(arg) < minAbbreviation || len(arg) > 40 || strings.Trim(arg, "0123456789abcdef") != "" {
			return fail("a commit is 4 to 40 hexadecimal digits")
		}
		return Version{modeCommit, arg}, nil
	case "tag":
		if arg == "latest" {
			return Version{mode: modeLatest}, nil
		}
		if err := plumbing.NewTagReferenceName(arg).Validate(); err != nil {
			return fail("that is no tag name")
		}
		return Version{modeTag, arg}, nil
	case "semver":
		if _, err := semver.NewConstraint(arg); err != nil {
			return fail("that is no range of versions, as >=1.2.0 <2 or ~1.4 is")
		}
		return Version{modeSemver, arg}, nil
	case "worktree":
		if s == "worktree" {
			return Version{mode: modeWorktree}, nil
		}
	}
	return fail("there is no such mode")
}

// String returns the VERSION_MODE, and "default branch" for the zero value.
func (v Version) String() string {
	switch v.mode {
	case modeBranch:
		return "branch:" + v.arg
	case modeCommit:
		return "commit:" + v.arg
	case modeTag:
		return "tag:" + v.arg
	case modeLatest:
		return "tag:latest"
	case modeSemver:
		return "semver:" + v.arg
	case modeWorktree:
		return "worktree"
	default:
		return "default branch"
	}
}

// IsWorktree reports whether the files as they lie on disk are wanted, which only
// a file:// URL can give.
func (v Version) IsWorktree() bool { return v.mode == modeWorktree }
