package repo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// clone is a work tree with a .git, driven by the real git.
type clone struct {
	t   testing.TB
	dir string
}

// newClone makes an empty repository whose branch is called branch.
func newClone(t testing.TB, branch string) clone {
	t.Helper()
	c := clone{t, filepath.Join(t.TempDir(), "app")}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.git("init", "--quiet", "--initial-branch="+branch)
	return c
}

// git runs git there and returns its output. Nothing of the machine's or user's
// own configuration counts.
func (c clone) git(args ...string) string {
	c.t.Helper()
	return c.gitEnv(nil, args...)
}

func (c clone) gitEnv(env []string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = c.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com",
	}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// write writes a file.
func (c clone) write(name, content string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// commit commits everything and returns the commit's hash.
func (c clone) commit(message string) string {
	c.t.Helper()
	c.git("add", "--all")
	c.git("commit", "--quiet", "--allow-empty", "--message", message)
	return c.git("rev-parse", "HEAD")
}

// commitAt commits with a committer date, in seconds after the beginning of 2020.
func (c clone) commitAt(second int, message string) string {
	c.t.Helper()
	c.git("add", "--all")
	date := fmt.Sprintf("%d +0000", 1577836800+second)
	c.gitEnv([]string{"GIT_COMMITTER_DATE=" + date}, "commit", "--quiet", "--allow-empty", "--message", message)
	return c.git("rev-parse", "HEAD")
}

func (c clone) url() string { return "file://" + c.dir }

// open makes a Repo of it; options may be changed first.
func open(t testing.TB, rawURL, version string, change ...func(*Options)) *Repo {
	t.Helper()
	u, err := ParseURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{URL: u, Version: v, Log: zerolog.Nop()}
	for _, f := range change {
		f(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resolve resolves and expects success.
func resolve(t testing.TB, r *Repo) Revision {
	t.Helper()
	rev, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// resolveFails resolves and expects an error that says all of that.
func resolveFails(t testing.TB, r *Repo, wants ...string) {
	t.Helper()
	rev, err := r.Resolve(t.Context())
	if err == nil {
		t.Fatalf("got revision %s, want an error", rev.ID)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}
