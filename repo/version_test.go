package repo

import (
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("0a", 20)
	for text, want := range map[string]Version{
		"":                       {},
		"branch:master":          {modeBranch, "master"},
		"branch:feature/x":       {modeBranch, "feature/x"},
		"commit:" + full:         {modeCommit, full},
		"commit:ABCD":            {modeCommit, "abcd"},
		"tag:v1":                 {modeTag, "v1"},
		"tag:latest":             {mode: modeLatest},
		"semver:>=1.0.0 <2.0.0":  {modeSemver, ">=1.0.0 <2.0.0"},
		"semver:^1.2 || ~3.4":    {modeSemver, "^1.2 || ~3.4"},
		"semver:>=1.0.0-0 <99.0": {modeSemver, ">=1.0.0-0 <99.0"},
		"worktree":               {mode: modeWorktree},
	} {
		got, err := ParseVersion(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		if text != "" && got.String() != text && got.String() != strings.ToLower(text) {
			t.Errorf("%q: String is %q", text, got)
		}
	}
	if got := (Version{}).String(); got != "default branch" {
		t.Errorf("the zero Version is %q", got)
	}
}

func TestParseVersionRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"master", "branch", "branch:", "branch:a b", "branch:..", "branch:-x", "branch:a^", "commit:", "commit:abc", "commit:xyz1",
		"commit:" + strings.Repeat("a", 41), "tag:", "tag:a:b", "semver:", "semver:one", "worktree:x", ":x", "Branch:master",
	} {
		_, err := ParseVersion(text)
		says(t, err, text, "branch:NAME", "tag:latest", "worktree")
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{"", "branch:master", "commit:abcd", "tag:latest", "semver:^1", "worktree", "tag:\x00", "branch:\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseVersion(text)
		if err != nil || text == "" {
			return
		}
		if again, err := ParseVersion(v.String()); err != nil || again != v {
			t.Errorf("%q is %+v, which reads as %+v, %v", text, v, again, err)
		}
	})
}
