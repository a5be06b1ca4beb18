package repo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// command is a wire to git upload-pack on this machine, as a web server runs it:
// the real server with settings that the servers of other tests do not have.
type command struct {
	dir        string
	settings   []string // NAME=VALUE
	advertised func()   // called after each listing; nil for nothing
	requests   []string
}

func (c *command) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	var all []string
	for _, s := range append([]string{"safe.directory=*"}, c.settings...) {
		all = append(all, "-c", s)
	}
	all = append(append(append(all, "upload-pack", "--stateless-rpc"), args...), c.dir)
	cmd := exec.CommandContext(ctx, "git", all...)
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd.Output()
}

func (c *command) greet(ctx context.Context) (greeting, error) {
	out, err := c.run(ctx, nil, "--http-backend-info-refs")
	if err != nil {
		return greeting{}, err
	}
	if c.advertised != nil {
		c.advertised()
	}
	return readGreeting(bufio.NewReader(bytes.NewReader(out)))
}

func (c *command) request(ctx context.Context, body []byte) (io.ReadCloser, error) {
	c.requests = append(c.requests, string(body))
	out, err := c.run(ctx, body)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // it also says in its answer what is wrong
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(out)), nil
}

func (c *command) forget() bool { return false }

func (c *command) rest() {}

func (c *command) close() {}

// TestUnreachableByHash has a server that neither filters nor hands out commits
// by their hash: it is fetched from once, and all of it.
func TestUnreachableByHash(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "v1")
	s.commit("two", map[string]string{"big": noise(100_000)})
	for _, version := range []string{"commit:" + one, "commit:" + one[:9]} {
		wire := &command{dir: s.Bare}
		r := open(t, "https://example.com/site", version)
		if err := r.resolveFrom(t.Context(), &server{wire: wire}); err != nil {
			t.Fatal(err)
		}
		if len(wire.requests) != 1 || strings.Contains(wire.requests[0], "deepen") {
			t.Errorf("%s: requests %q", version, wire.requests)
		}
		if p := r.current.objects.(*pack); p.data.size > 5_000 {
			t.Errorf("%s: it keeps %d bytes", version, p.data.size)
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
			r := open(t, "https://example.com/site", version)
			err := r.resolveFrom(t.Context(), &server{wire: &command{dir: shallow, settings: []string{"uploadpack.allowFilter=" + filter}}})
			if err != nil || r.current.revision.Subject != subject {
				t.Errorf("%s: %v", version, err)
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

func TestAdvertised(t *testing.T) {
	t.Parallel()
	adv := packp.NewAdvRefs()
	head := id("1")
	adv.Head = &head
	for name, hash := range map[string]string{"refs/heads/main": "1", "refs/heads/a/b": "2", "refs/tags/v1": "3", "refs/pull/1/head": "4", "refs/notes/x": "5"} {
		adv.References[name] = id(hash)
	}
	adv.Peeled["refs/tags/v1"] = id("1")
	if err := adv.Capabilities.Add(capability.SymRef, "HEAD:refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	r, err := advertised(adv)
	must(t, err)
	if r.head != "main" || r.headCommit != head || len(r.branches) != 2 || r.branches["a/b"] != id("2") || len(r.tags) != 1 || r.tags["v1"] != (tag{id("3"), head}) {
		t.Errorf("got %+v", r)
	}
	var tips []plumbing.Hash
	for _, tip := range r.tips() {
		tips = append(tips, tip.tip)
	}
	plumbing.HashesSort(tips)
	if !slices.Equal(tips, []plumbing.Hash{id("1"), id("2"), id("3")}) {
		t.Errorf("got tips %v", tips)
	}
}
