package repo

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
)

const master = "master"

// selection is the commit that a version mode chose.
type selection struct {
	tag
	ref plumbing.ReferenceName // how it was found, empty for a commit named by its hash
}

// chooseBranch returns the newest commit of a branch.
func chooseBranch(r refs, name string) (selection, error) {
	hash, ok := r.branches[name]
	if !ok {
		return selection{}, r.nothing(fmt.Sprintf("there is no branch %s", name), existing("branches", r.branches))
	}
	return selection{tag{hash, hash}, plumbing.NewBranchReferenceName(name)}, nil
}

// chooseDefault returns the newest commit of the default branch: master, or what
// HEAD points at where there is no master and never was one. Where there was, a
// repository that lost its master is an error, not a reason to apply something
// else.
func chooseDefault(r refs, masterSynced bool) (selection, error) {
	_, hasMaster := r.branches[master]
	switch {
	case hasMaster || masterSynced:
		return chooseBranch(r, master)
	case r.head != "":
		return chooseBranch(r, r.head)
	case !r.headCommit.IsZero():
		return selection{tag{r.headCommit, r.headCommit}, plumbing.HEAD}, nil
	default:
		return selection{}, r.nothing("there is no branch master, and HEAD points at no commit", existing("branches", r.branches))
	}
}

// chooseTag returns what a tag points at.
func chooseTag(r refs, name string) (selection, error) {
	t, ok := r.tags[name]
	if !ok {
		return selection{}, r.nothing(fmt.Sprintf("there is no tag %s", name), existing("tags", r.tags))
	}
	return selection{t, plumbing.NewTagReferenceName(name)}, nil
}

// chooseSemver returns, of the tags that are semantic versions, the highest one
// inside a range. Of two spellings of one version (v1.2.0 and 1.2.0) it takes
// the one that sorts last.
func chooseSemver(r refs, within *semver.Constraints) (selection, error) {
	var best string
	for name := range r.tags {
		v := version(name)
		if v != nil && within.Check(v) && (best == "" || compareVersions(name, best) > 0) {
			best = name
		}
	}
	if best == "" {
		return selection{}, r.nothing(fmt.Sprintf("no tag is a semantic version in the range %s", within), existing("tags", r.tags))
	}
	return chooseTag(r, best)
}

// chooseLatest returns, of the tags whose commit is in the history of the default
// branch, the one whose commit is newest by committer date; of equals the higher
// version, then the name that sorts last.
func chooseLatest(r refs, of history) (selection, error) {
	var best string
	for name, t := range r.tags {
		c, reachable := of.commits[t.commit]
		if !reachable {
			continue
		}
		newer := best == ""
		if !newer {
			than := of.commits[r.tags[best].commit]
			newer = c.committed > than.committed ||
				(c.committed == than.committed && compareVersions(name, best) > 0)
		}
		if newer {
			best = name
		}
	}
	if best == "" {
		return selection{}, r.nothing("no tag is on the default branch", existing("tags", r.tags))
	}
	return chooseTag(r, best)
}

// chooseCommit returns the one commit of a history whose hash begins with some
// digits.
func chooseCommit(r refs, of history, digits string) (selection, error) {
	var found []plumbing.Hash
	for hash := range of.commits {
		if strings.HasPrefix(hash.String(), digits) {
			found = append(found, hash)
		}
	}
	switch len(found) {
	case 0:
		return selection{}, r.noCommit(digits)
	case 1:
		return selection{tag: tag{found[0], found[0]}}, nil
	}
	plumbing.HashesSort(found)
	names := map[string]bool{}
	for _, hash := range found {
		names[hash.String()] = true
	}
	return selection{}, fmt.Errorf("commit %s is ambiguous, give more digits: %s", digits, existing("commits that begin so", names))
}

// noCommit is the error of a commit that is not there.
func (r refs) noCommit(digits string) error {
	return r.nothing(fmt.Sprintf("there is no commit %s in the history of its branches and tags (was it pushed?)", digits), existing("branches", r.branches))
}

// nothing is the error of a mode that selects nothing.
func (r refs) nothing(reason, instead string) error {
	if r.empty() {
		return &nothingError{reason + ": the repository is empty, nothing was ever pushed to it"}
	}
	return &nothingError{reason + "; " + instead}
}

// nothingError says that there is not what was looked for, and what there is.
type nothingError struct{ text string }

func (e *nothingError) Error() string { return e.text }

// version reads a tag as a semantic version, with or without a leading v; nil if
// it is none. Abbreviations (v1, 2024.1) are none: a tag "v1" that is moved along
// would win over every v1.x.y.
func version(name string) *semver.Version {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
	if err != nil {
		return nil
	}
	return v
}

// compareVersions orders tag names: versions by precedence and above all other
// names, what is left by name.
func compareVersions(a, b string) int {
	va, vb := version(a), version(b)
	switch {
	case va != nil && vb != nil:
		if c := va.Compare(vb); c != 0 {
			return c
		}
	case va != nil:
		return 1
	case vb != nil:
		return -1
	}
	return strings.Compare(a, b)
}
