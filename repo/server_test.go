package repo

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

// upstream is a git server of protocol version 0 that runs git upload-pack on this
// machine, with settings that the servers of other tests do not have.
type upstream struct {
	dir        string
	settings   []string // NAME=VALUE
	advertised func()   // called after each listing; nil for nothing

	mu       sync.Mutex
	requests []string
}

// start returns the URL of the server.
func (u *upstream) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return server.URL + "/site"
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, args := "result", []string{"-c", "safe.directory=*"}
	for _, s := range u.settings {
		args = append(args, "-c", s)
	}
	args = append(args, "upload-pack", "--stateless-rpc")
	if r.Method == http.MethodGet {
		kind, args = "advertisement", append(args, "--http-backend-info-refs")
	}
	body, _ := io.ReadAll(r.Body)
	cmd := exec.CommandContext(r.Context(), "git", append(args, u.dir)...)
	cmd.Stdin = bytes.NewReader(body)
	answer, _ := cmd.Output() // which says what is wrong, too
	u.mu.Lock()
	defer u.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
	if r.Method == http.MethodPost {
		u.requests = append(u.requests, string(body))
	} else {
		_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
		if u.advertised != nil {
			u.advertised()
		}
	}
	_, _ = w.Write(answer)
}

// TestUnreachableByHash has a server that neither filters nor hands out commits
// by their hash: it is fetched from once, and all of it.
func TestUnreachableByHash(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "v1")
	s.commit("two", map[string]string{"big": gitbytes.Noise(100_000)})
	for _, version := range []string{"commit:" + one, "commit:" + one[:9]} {
		server := &upstream{dir: s.Bare}
		r := open(t, server.start(t), version)
		resolve(t, r)
		if len(server.requests) != 1 || strings.Contains(server.requests[0], "deepen") {
			t.Errorf("%s: requests %q", version, server.requests)
		}
		if p := r.current.objects.(*pack.Pack); p.Reader().Size() > 5_000 {
			t.Errorf("%s: it keeps %d bytes", version, p.Reader().Size())
		}
		want(t, r, r.current.revision, one, "", "1")
		dir := t.TempDir()
		if err := r.Checkout(t.Context(), r.current.revision, dir); err != nil {
			t.Fatal(err)
		}
		if got := gitIn(t, dir, "describe"); got != "v1" {
			t.Errorf("%s: git describe says %q", version, got)
		}
	}
}

// TestShallowServer serves a repository whose own past is cut off.
func TestShallowServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	s.commit("one", file("1"))
	s.tag(false, "old")
	s.commit("two", file("2"))
	s.tag(false, "v1")
	three := s.commit("three", file("3"))
	shallow := t.TempDir()
	gitIn(t, shallow, "clone", "--quiet", "--bare", "--depth=2", "--no-single-branch", "file://"+s.Bare, ".")
	for _, filter := range []string{"true", "false"} {
		for version, subject := range map[string]string{"tag:latest": "two", "commit:" + three[:8]: "three", "": "three"} {
			server := &upstream{dir: shallow, settings: []string{"uploadpack.allowFilter=" + filter}}
			if rev := resolve(t, open(t, server.start(t), version)); rev.Subject != subject {
				t.Errorf("%s: got %q", version, rev.Subject)
			}
		}
		r := open(t, "file://"+shallow, "tag:latest")
		if rev := resolve(t, r); rev.Subject != "two" {
			t.Errorf("from disk: got %q", rev.Subject)
		}
	}
}

// TestTagsOfAllSorts has tags that point at what is no commit.
func TestTagsOfAllSorts(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		one := s.commit("one", file("1"))
		s.git("tag", "tree", "HEAD^{tree}")
		s.git("tag", "--annotate", "--message", "a file", "blob", "HEAD:dir/file")
		s.git("tag", "v1")
		s.git("push", "--quiet", "origin", "tree", "blob", "v1")
		r := open(t, url, "tag:latest", how)
		want(t, r, resolve(t, r), one, "refs/tags/v1", "1")
		r = open(t, url, "commit:"+one[:8], how)
		want(t, r, resolve(t, r), one, "", "1")
		resolveFails(t, open(t, url, "tag:tree", how), "is a tree, not a commit")
		resolveFails(t, open(t, url, "tag:blob", how), "is a blob, not a commit")
	})
}
