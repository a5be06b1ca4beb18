package repo

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// site is a repository on a server, driven by the real git. What fails in it
// fails the test.
type site struct {
	t testing.TB
	*gitserver.Repo
}

// newSite makes an empty repository in a server's directory.
func newSite(t testing.TB, dir, branch string) site {
	t.Helper()
	r, err := gitserver.CreateRepo(dir, "site", branch)
	if err != nil {
		t.Fatal(err)
	}
	return site{t, r}
}

// git runs git in the work tree.
func (s site) git(args ...string) string {
	s.t.Helper()
	out, err := s.Git(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// commit commits exactly these files and pushes.
func (s site) commit(message string, files map[string]string) string {
	s.t.Helper()
	hash, err := s.Commit(message, files)
	if err != nil {
		s.t.Fatal(err)
	}
	return hash
}

// commitAt commits nothing new with a committer date in days after 2020 began.
func (s site) commitAt(day int, message string) string {
	s.t.Helper()
	when := time.Date(2020, time.January, day, 0, 0, 0, 0, time.UTC)
	if _, err := s.GitAt(when, "commit", "--quiet", "--allow-empty", "--message", message); err != nil {
		s.t.Fatal(err)
	}
	s.git("push", "--quiet", "--force", "origin", "HEAD")
	return s.git("rev-parse", "HEAD")
}

// tag makes or moves tags on HEAD and pushes them; those named by annotated are
// tag objects.
func (s site) tag(annotated bool, names ...string) {
	s.t.Helper()
	for _, name := range names {
		args := []string{"tag", "--force", name}
		if annotated {
			args = []string{"tag", "--force", "--annotate", "--message", "release", name}
		}
		s.git(args...)
		s.git("push", "--quiet", "--force", "origin", "refs/tags/"+name)
	}
}

// deleteBranch deletes the branch that is checked out, here and on the server, and
// leaves instead checked out.
func (s site) deleteBranch(name, instead string) {
	s.t.Helper()
	s.git("checkout", "--quiet", instead)
	s.git("branch", "--quiet", "-D", name)
	s.git("--git-dir="+s.Bare, "update-ref", "-d", "refs/heads/"+name)
}

// open makes a Repo; options may be changed first.
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

// with are options with these credentials.
func with(user, password string) func(*Options) {
	return func(o *Options) {
		o.Credentials = func() (Credentials, bool, error) { return Credentials{User: user, Password: password}, true, nil }
	}
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

// resolveFails resolves, expects an error that says all of that, and returns its
// text.
func resolveFails(t testing.TB, r *Repo, wants ...string) string {
	t.Helper()
	rev, err := r.Resolve(t.Context())
	if err == nil {
		t.Fatalf("got revision %s, want an error", rev.ID)
	}
	says(t, err, wants...)
	return err.Error()
}

// says expects that an error says all of that.
func says(t testing.TB, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one that says %q", wants)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
}

// content reads a file of the current revision.
func content(t testing.TB, r *Repo, rev Revision, name string) string {
	t.Helper()
	fsys, err := r.Files(t.Context(), rev)
	if err != nil {
		t.Fatal(err)
	}
	b, err := fsys.(*files).ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// gitIn runs git in any directory, without the machine's configuration.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
