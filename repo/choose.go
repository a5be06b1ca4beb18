package repo

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/repo/refs"
)

const master = "master"

// selection is the commit that a version mode chose.
type selection struct {
	refs.Tag
	ref plumbing.ReferenceName // how it was found, empty for a commit named by its hash
}

// chooseBranch returns the newest commit of a branch.
func chooseBranch(r refs.List, name string) (selection, error) {
	hash, ok := r.Branches[name]
	if !ok {
		return selection{}, r.Nothing(fmt.Sprintf("there is no branch %s", name), refs.Existing("branches", r.Branches))
	}
	return selection{refs.Light(hash), plumbing.NewBranchReferenceName(name)}, nil
}

// chooseDefault returns the newest commit of the default branch: master, or what
// HEAD points at where there is no master and never was one. Where there was, a
// repository that lost its master is an error, not a reason to apply something
// else.
func chooseDefault(r refs.List, masterSynced bool) (selection, error) {
	_, hasMaster := r.Branches[master]
	switch {
	case hasMaster || masterSynced:
		return chooseBranch(r, master)
	case r.Head != "":
		return chooseBranch(r, r.Head)
	case !r.HeadCommit.IsZero():
		return selection{refs.Light(r.HeadCommit), plumbing.HEAD}, nil
	default:
		return selection{}, r.Nothing("there is no branch master, and HEAD points at no commit", refs.Existing("branches", r.Branches))
	}
}

// chooseTag returns what a tag points at.
func chooseTag(r refs.List, name string) (selection, error) {
	t, ok := r.Tags[name]
	if !ok {
		return selection{}, r.Nothing(fmt.Sprintf("there is no tag %s", name), refs.Existing("tags", r.Tags))
	}
	return selection{t, plumbing.NewTagReferenceName(name)}, nil
}

// chooseSemver returns, of the tags that are semantic versions, the highest one
// inside a range. Of two spellings of one version (v1.2.0 and 1.2.0) it takes
// the one that sorts last.
func chooseSemver(r refs.List, within *semver.Constraints) (selection, error) {
	var best string
	for name := range r.Tags {
		v := version(name)
		if v != nil && within.Check(v) && (best == "" || compareVersions(name, best) > 0) {
			best = name
		}
	}
	if best == "" {
		return selection{}, r.Nothing(fmt.Sprintf("no tag is a semantic version in the range %s", within), refs.Existing("tags", r.Tags))
	}
	return chooseTag(r, best)
}

// chooseLatest returns, of the tags whose commit is in the history of the default
// branch, the one whose commit is newest by committer date; of equals the higher
// version, then the name that sorts last.
func chooseLatest(r refs.List, of refs.History) (selection, error) {
	var best string
	for name, t := range r.Tags {
		c, reachable := of.Commits[t.Commit]
		if !reachable {
			continue
		}
		newer := best == ""
		if !newer {
			than := of.Commits[r.Tags[best].Commit]
			newer = c.Committed > than.Committed ||
				(c.Committed == than.Committed && compareVersions(name, best) > 0)
		}
		if newer {
			best = name
		}
	}
	if best == "" {
		return selection{}, r.Nothing("no tag is on the default branch", refs.Existing("tags", r.Tags))
	}
	return chooseTag(r, best)
}

// chooseCommit returns the one commit of a history whose hash begins with some
// digits.
func chooseCommit(r refs.List, of refs.History, digits string) (selection, error) {
	var found []plumbing.Hash
	for hash := range of.Commits {
		if strings.HasPrefix(hash.String(), digits) {
			found = append(found, hash)
		}
	}
	switch len(found) {
	case 0:
		return selection{}, r.NoCommit(digits)
	case 1:
		return selection{Tag: refs.Light(found[0])}, nil
	}
	plumbing.HashesSort(found)
	names := map[string]bool{}
	for _, hash := range found {
		names[hash.String()] = true
	}
	return selection{}, fmt.Errorf("commit %s is ambiguous, give more digits: %s", digits, refs.Existing("commits that begin so", names))
}

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
