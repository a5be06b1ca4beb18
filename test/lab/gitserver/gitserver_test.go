package gitserver_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// git runs the machine's git as a client, without the machine's configuration.
func git(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// clone clones url and returns git's words and error.
func clone(t *testing.T, url string, env ...string) (string, error) {
	t.Helper()
	return git(t, env, "clone", "--quiet", url, filepath.Join(t.TempDir(), "clone"))
}

// site makes a repository with one commit of some size and returns its hash.
func site(t *testing.T, s *gitserver.Server) (*gitserver.Repo, string) {
	t.Helper()
	repo, err := s.CreateRepo("site")
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 10_000)
	_, _ = rand.Read(noise)
	hash, err := repo.Commit("first", map[string]string{"a.yaml": "a: 1\n", "dir/noise": hex.EncodeToString(noise)})
	if err != nil {
		t.Fatal(err)
	}
	return repo, hash
}

func TestClone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []gitserver.Option
		v2      bool
	}{
		"http":    {v2: true},
		"https":   {options: []gitserver.Option{gitserver.WithTLS}, v2: true},
		"http v0": {options: []gitserver.Option{gitserver.WithoutV2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gitserver.Start(t, test.options...)
			_, hash := site(t, s)
			out, err := git(t, []string{"GIT_SSL_CAINFO=" + s.CAFile()}, "ls-remote", s.URL("site"), "refs/heads/master")
			if err != nil || !strings.HasPrefix(out, hash) {
				t.Errorf("ls-remote: %v\n%s", err, out)
			}
			if got := s.Log.Count(gitserver.Fetch); got != 0 {
				t.Errorf("listing refs fetched objects %d times", got)
			}
			if out, err := clone(t, s.URL("site"), "GIT_SSL_CAINFO="+s.CAFile()); err != nil {
				t.Errorf("clone: %v\n%s", err, out)
			}
			if got := s.Log.Count(gitserver.ListRefs); (got > 0) != test.v2 {
				t.Errorf("protocol v2 listed refs %d times", got)
			}
			if s.Log.Count(gitserver.Fetch) != 1 || s.Log.Bytes(gitserver.Fetch) < 10_000 {
				t.Errorf("the log knows of %d fetches of %d bytes", s.Log.Count(gitserver.Fetch), s.Log.Bytes(gitserver.Fetch))
			}
			s.Log.Reset()
			if got := s.Log.Count(); got != 0 {
				t.Errorf("%d requests after Reset", got)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []gitserver.Option
		small   bool
	}{
		"new server": {small: true},
		"old server": {options: []gitserver.Option{gitserver.WithoutFilter}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gitserver.Start(t, test.options...)
			site(t, s)
			if out, err := git(t, nil, "clone", "--quiet", "--bare", "--filter=blob:none", s.URL("site"), "clone"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := s.Log.Bytes(gitserver.Fetch); (got < 5_000) != test.small {
				t.Errorf("the server sent %d bytes", got)
			}
		})
	}
}

func TestBasicAuth(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t, gitserver.WithBasicAuth("ada", "secret"))
	site(t, s)
	with := func(user string) string { return strings.Replace(s.URL("site"), "//", "//"+user+"@", 1) }
	for url, allowed := range map[string]bool{s.URL("site"): false, with("ada:wrong"): false, with("ada:secret"): true} {
		if out, err := clone(t, url); (err == nil) != allowed {
			t.Errorf("%s: allowed is %v\n%s", url, err == nil, out)
		}
	}
	s.SetBasicAuth("ada", "rotated")
	if _, err := clone(t, with("ada:secret")); err == nil {
		t.Error("the old password is still good")
	}
	if out, err := clone(t, with("ada:rotated")); err != nil {
		t.Errorf("the new password: %v\n%s", err, out)
	}
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		behaviour gitserver.Behaviour
		says      string
	}{
		"unauthorized": {gitserver.Unauthorized(), "could not read Username"},
		"failing":      {gitserver.Failing(http.StatusServiceUnavailable), "503"},
		"cut in pack":  {gitserver.CutInPack(), "early EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gitserver.Start(t)
			site(t, s)
			s.Behave(test.behaviour)
			out, err := clone(t, s.URL("site"))
			if err == nil || !strings.Contains(out, test.says) {
				t.Errorf("got %v, %s; want %q", err, out, test.says)
			}
			s.Behave(gitserver.Normal())
			if out, err := clone(t, s.URL("site")); err != nil {
				t.Errorf("normal again: %v\n%s", err, out)
			}
		})
	}
}

func TestCutLeavesTheListingOfRefsWhole(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	site(t, s)
	s.Behave(gitserver.CutInPack())
	if out, err := git(t, nil, "ls-remote", s.URL("site")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	site(t, s)
	s.Behave(gitserver.Slow(time.Hour))
	client := http.Client{Timeout: 200 * time.Millisecond}
	if response, err := client.Get(s.URL("site") + "/info/refs?service=git-upload-pack"); err == nil {
		t.Errorf("answered with %s", response.Status)
		_ = response.Body.Close()
	}
	s.Behave(gitserver.Slow(10 * time.Millisecond))
	if out, err := clone(t, s.URL("site")); err != nil {
		t.Errorf("a little slow: %v\n%s", err, out)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	site(t, s)
	s.Behave(gitserver.StallInPack())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := git(t, nil, "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=2", "clone", "--quiet", s.URL("site"), "clone")
		gaveUp <- err
	}()
	stalled := false
	for {
		select {
		case err := <-gaveUp:
			if err == nil || !stalled {
				t.Errorf("the client ended with %v, stalled: %v", err, stalled)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
		for _, r := range s.Log.UnderWay() {
			stalled = stalled || r.Kind == gitserver.Fetch && r.Status == 0 && r.Bytes > 5_000
		}
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	first, second := gitserver.Start(t), gitserver.Start(t)
	site(t, second)
	first.Behave(gitserver.RedirectTo(second.Base()))
	if out, err := clone(t, strings.Replace(first.URL("site"), "//", "//ada:secret@", 1)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if first.Log.Count() == 0 || second.Log.Count(gitserver.Fetch) != 1 {
		t.Errorf("%d requests to the first server, %d fetches from the second", first.Log.Count(), second.Log.Count(gitserver.Fetch))
	}
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t)
	site(t, s)
	s.Down()
	if out, err := clone(t, s.URL("site")); err == nil || !strings.Contains(out, "Failed to connect") {
		t.Errorf("down: %v\n%s", err, out)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if out, err := clone(t, s.URL("site")); err != nil {
		t.Errorf("up: %v\n%s", err, out)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	s := gitserver.Start(t, gitserver.WithTLS)
	site(t, s)
	trusting := "GIT_SSL_CAINFO=" + s.CAFile()
	if out, err := clone(t, s.URL("site")); err == nil || !strings.Contains(out, "certificate") {
		t.Errorf("without the CA: %v\n%s", err, out)
	}
	if err := s.Distrust(); err != nil {
		t.Fatal(err)
	}
	if out, err := clone(t, s.URL("site"), trusting); err == nil || !strings.Contains(out, "certificate") {
		t.Errorf("with another CA's certificate: %v\n%s", err, out)
	}
	if err := s.Trust(); err != nil {
		t.Fatal(err)
	}
	if out, err := clone(t, s.URL("site"), trusting); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, err := gitserver.CreateRepo(dir, "site", "main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Commit("first", map[string]string{"a.yaml": "a: 1\n"}); err != nil {
		t.Fatal(err)
	}
	s := gitserver.StartSSH(t, dir)
	env := "GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -i " + s.KeyFile + " -o UserKnownHostsFile=" + s.KnownHostsFile + " -o StrictHostKeyChecking=yes"
	if out, err := clone(t, s.URL("site"), env); err != nil || s.Fetches() != 1 {
		t.Errorf("%v after %d fetches\n%s", err, s.Fetches(), out)
	}
	s.Down()
	if out, err := clone(t, s.URL("site"), env); err == nil || !strings.Contains(out, "refused") {
		t.Errorf("down: %v\n%s", err, out)
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if err := s.NewHostKey(); err != nil {
		t.Fatal(err)
	}
	if out, err := clone(t, s.URL("site"), env); err == nil || !strings.Contains(out, "Host key verification failed") {
		t.Errorf("another host key: %v\n%s", err, out)
	}
}

func TestCommitsAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	var hashes [2]string
	for i := range hashes {
		repo, err := gitserver.CreateRepo(t.TempDir(), "site", "master")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := repo.Commit("first", map[string]string{"a": "1", "b": "2"}); err != nil {
			t.Fatal(err)
		}
		if hashes[i], err = repo.Commit("second", map[string]string{"b": "2"}); err != nil {
			t.Fatal(err)
		}
		if files, err := repo.Git("ls-files"); err != nil || files != "b" {
			t.Errorf("got files %q, %v; what is not in the commit should go", files, err)
		}
		at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := repo.GitAt(at, "commit", "--allow-empty", "-m", "old"); err != nil {
			t.Fatal(err)
		}
		if date, err := repo.Git("log", "-1", "--format=%ct"); err != nil || date != "1577836800" {
			t.Errorf("got date %q, %v", date, err)
		}
	}
	if hashes[0] != hashes[1] {
		t.Errorf("got %s and %s", hashes[0], hashes[1])
	}
}
