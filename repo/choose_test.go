package repo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/repo/refs"
)

// id makes a hash of a few digits.
func id(digits string) plumbing.Hash {
	return plumbing.NewHash(digits + strings.Repeat("0", 40-len(digits)))
}

// someRefs makes refs of branches and light tags: "main=1", and HEAD.
func someRefs(head, headCommit string, branches, tags []string) refs.List {
	r := refs.List{Branches: map[string]plumbing.Hash{}, Tags: map[string]refs.Tag{}, Head: head}
	if headCommit != "" {
		r.HeadCommit = id(headCommit)
	}
	for _, b := range branches {
		name, digits, _ := strings.Cut(b, "=")
		r.Branches[name] = id(digits)
	}
	for _, one := range tags {
		name, digits, _ := strings.Cut(one, "=")
		r.Tags[name] = refs.Light(id(digits))
	}
	return r
}

// someHistory makes a history of "commit=seconds" without parents.
func someHistory(commits ...string) refs.History {
	h := refs.History{Commits: map[plumbing.Hash]refs.Past{}}
	for _, c := range commits {
		var seconds int64
		digits, at, _ := strings.Cut(c, "=")
		_, _ = fmt.Sscan(at, &seconds)
		h.Commits[id(digits)] = refs.Past{Committed: seconds}
	}
	return h
}

// expectation is what a choice is to be: a ref and commit, or an error.
type expectation struct {
	ref, commit string
	err         []string
}

func (want expectation) check(t *testing.T, got selection, err error) {
	t.Helper()
	if want.err != nil {
		says(t, err, want.err...)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.ref.String() != want.ref || got.Commit != id(want.commit) {
		t.Errorf("got %s at %s", got.ref, got.Commit)
	}
}

func TestChooseBranch(t *testing.T) {
	t.Parallel()
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("b%02d=1", i)
	}
	for name, test := range map[string]struct {
		refs refs.List
		expectation
	}{
		"there":     {someRefs("", "", []string{"x=1", "y=2"}, nil), expectation{ref: "refs/heads/x", commit: "1"}},
		"not there": {someRefs("", "", []string{"z=1", "y=2"}, nil), expectation{err: []string{"no branch x", "branches are y, z"}}},
		"only tags": {someRefs("", "", nil, []string{"x=1"}), expectation{err: []string{"no branch x", "has no branches"}}},
		"empty":     {someRefs("", "", nil, nil), expectation{err: []string{"no branch x", "repository is empty"}}},
		"many":      {someRefs("", "", many, nil), expectation{err: []string{"b00, b01", "b09 and 2 more"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseBranch(test.refs, "x")
			test.check(t, got, err)
		})
	}
}

func TestChooseDefault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refs         refs.List
		masterSynced bool
		expectation
	}{
		"master":                     {someRefs("master", "1", []string{"master=1"}, nil), false, expectation{ref: "refs/heads/master", commit: "1"}},
		"master though HEAD differs": {someRefs("main", "2", []string{"master=1", "main=2"}, nil), false, expectation{ref: "refs/heads/master", commit: "1"}},
		"only main":                  {someRefs("main", "2", []string{"main=2", "x=3"}, nil), false, expectation{ref: "refs/heads/main", commit: "2"}},
		"master was there once":      {someRefs("main", "2", []string{"main=2"}, nil), true, expectation{err: []string{"no branch master", "main"}}},
		"HEAD on no branch":          {someRefs("", "3", []string{"x=1"}, nil), false, expectation{ref: "HEAD", commit: "3"}},
		"HEAD nowhere":               {someRefs("", "", []string{"x=1"}, nil), false, expectation{err: []string{"no branch master", "branches are x"}}},
		"empty":                      {someRefs("", "", nil, nil), false, expectation{err: []string{"repository is empty"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseDefault(test.refs, test.masterSynced)
			test.check(t, got, err)
		})
	}
}

func TestChooseSemver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		within string
		tags   []string
		expectation
	}{
		"highest":             {"^1", []string{"v1.9.0=1", "v1.10.0=2", "v2.0.0=3"}, expectation{ref: "refs/tags/v1.10.0", commit: "2"}},
		"without v":           {"<2", []string{"1.9.0=1", "v1.1.0=2"}, expectation{ref: "refs/tags/1.9.0", commit: "1"}},
		"no versions":         {"*", []string{"v1=1", "1.2=2", "release=3", "v1.0.0.0=4"}, expectation{err: []string{"no tag", "range *", "1.2, release, v1"}}},
		"none in range":       {">3", []string{"v1.0.0=1"}, expectation{err: []string{"range >3", "tags are v1.0.0"}}},
		"no tags":             {"*", nil, expectation{err: []string{"has no tags"}}},
		"pre-release not":     {">=1.0.0", []string{"v1.0.0=1", "v1.1.0-rc.1=2"}, expectation{ref: "refs/tags/v1.0.0", commit: "1"}},
		"pre-release asked":   {">=1.0.0-0", []string{"v1.0.0=1", "v1.1.0-rc.1=2"}, expectation{ref: "refs/tags/v1.1.0-rc.1", commit: "2"}},
		"spelled twice":       {"*", []string{"1.0.0=1", "v1.0.0=2"}, expectation{ref: "refs/tags/v1.0.0", commit: "2"}},
		"build by name":       {"*", []string{"v1.0.0+b=1", "v1.0.0+a=2"}, expectation{ref: "refs/tags/v1.0.0+b", commit: "1"}},
		"two ranges":          {"^1 || ^3", []string{"v1.0.0=1", "v2.0.0=2", "v3.0.0=3", "v4.0.0=4"}, expectation{ref: "refs/tags/v3.0.0", commit: "3"}},
		"number of many tens": {"*", []string{"v0.9.0=1", "v0.10.0=2", "v0.100.0=3"}, expectation{ref: "refs/tags/v0.100.0", commit: "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within, err := semver.NewConstraint(test.within)
			if err != nil {
				t.Fatal(err)
			}
			r := someRefs("", "", nil, test.tags)
			r.HeadCommit = id("9")
			got, err := chooseSemver(r, within)
			test.check(t, got, err)
		})
	}
}

func TestChooseLatest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tags []string
		of   refs.History
		expectation
	}{
		"newest commit":          {[]string{"b=1", "a=2", "c=3"}, someHistory("1=10", "2=30", "3=20"), expectation{ref: "refs/tags/a", commit: "2"}},
		"not on the branch":      {[]string{"a=1", "b=2"}, someHistory("1=10"), expectation{ref: "refs/tags/a", commit: "1"}},
		"equal date, by version": {[]string{"v1.9.0=1", "v1.10.0=2", "z=3"}, someHistory("1=10", "2=10", "3=10"), expectation{ref: "refs/tags/v1.10.0", commit: "2"}},
		"equal date, by name":    {[]string{"a=1", "c=2", "b=3"}, someHistory("1=10", "2=10", "3=10"), expectation{ref: "refs/tags/c", commit: "2"}},
		"one commit, two tags":   {[]string{"v1.0.0=1", "stable=1"}, someHistory("1=10"), expectation{ref: "refs/tags/v1.0.0", commit: "1"}},
		"before 1970":            {[]string{"a=1", "b=2"}, someHistory("1=-20", "2=-30"), expectation{ref: "refs/tags/a", commit: "1"}},
		"none on the branch":     {[]string{"a=1"}, someHistory("2=10"), expectation{err: []string{"no tag is on the default branch", "tags are a"}}},
		"no tags":                {nil, someHistory("1=10"), expectation{err: []string{"has no tags"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseLatest(someRefs("main", "9", nil, test.tags), test.of)
			test.check(t, got, err)
		})
	}
}

func TestChooseCommit(t *testing.T) {
	t.Parallel()
	listed := someRefs("", "", []string{"y=abcd2", "x=abcd1"}, nil)
	of := someHistory("abcd1=1", "abcd2=2", "12345=3")
	for name, test := range map[string]struct {
		digits string
		expectation
	}{
		"one":       {"1234", expectation{commit: "12345"}},
		"long":      {"abcd20", expectation{commit: "abcd2"}},
		"ambiguous": {"abcd", expectation{err: []string{"ambiguous", "more digits", id("abcd1").String(), id("abcd2").String()}}},
		"unknown":   {"ffff", expectation{err: []string{"no commit ffff", "branches are x, y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chooseCommit(listed, of, test.digits)
			test.check(t, got, err)
		})
	}
}
