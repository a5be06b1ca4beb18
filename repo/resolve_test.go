package repo

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// kinds are the ways to the same repository: all modes have to work on each.
var kinds = map[string]func(t *testing.T, branch string) (site, string, func(*Options)){
	"http": func(t *testing.T, branch string) (site, string, func(*Options)) {
		s := gitserver.Start(t)
		return newSite(t, s.Dir(), branch), s.URL("site"), func(*Options) {}
	},
	"http, no filter, v0": func(t *testing.T, branch string) (site, string, func(*Options)) {
		s := gitserver.Start(t, gitserver.WithoutFilter, gitserver.WithoutV2)
		return newSite(t, s.Dir(), branch), s.URL("site"), func(*Options) {}
	},
	// In version 0 this server hands out nothing but what refs point at.
	"ssh, v0": func(t *testing.T, branch string) (site, string, func(*Options)) {
		dir := t.TempDir()
		site := newSite(t, dir, branch)
		s := gitserver.StartSSH(t, dir)
		s.WithoutV2()
		return site, s.URL("site"), func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = s.KeyFile, s.KnownHostsFile }
	},
	"http, no filter": func(t *testing.T, branch string) (site, string, func(*Options)) {
		s := gitserver.Start(t, gitserver.WithoutFilter)
		return newSite(t, s.Dir(), branch), s.URL("site"), func(*Options) {}
	},
	"ssh": func(t *testing.T, branch string) (site, string, func(*Options)) {
		dir := t.TempDir()
		site := newSite(t, dir, branch)
		s := gitserver.StartSSH(t, dir)
		return site, s.URL("site"), func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = s.KeyFile, s.KnownHostsFile }
	},
	"bare repository": func(t *testing.T, branch string) (site, string, func(*Options)) {
		s := newSite(t, t.TempDir(), branch)
		return s, "file://" + s.Bare, func(*Options) {}
	},
	"clone": func(t *testing.T, branch string) (site, string, func(*Options)) {
		s := newSite(t, t.TempDir(), branch)
		return s, "file://" + s.Work, func(*Options) {}
	},
}

// onEach runs a test on each kind of repository, each with a default branch; under -short
// on a server and on disk only.
func onEach(t *testing.T, branch string, test func(t *testing.T, s site, url string, how func(*Options))) {
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name != "http" && name != "clone" {
				t.Skip("all ways to a repository cost these tests 20 s of CPU time; two stand for them under -short")
			}
			s, url, how := make(t, branch)
			test(t, s, url, how)
		})
	}
}

// want expects a revision and its file.
func want(t *testing.T, r *Repo, rev Revision, id, ref, text string) {
	t.Helper()
	if rev.ID != id || rev.Ref != ref {
		t.Errorf("got %s by %q, want %s by %q", rev.ID, rev.Ref, id, ref)
	}
	if got := content(t, r, rev, "dir/file"); got != text {
		t.Errorf("got content %q, want %q", got, text)
	}
}

// file is the one file of a commit that want looks at.
func file(text string) map[string]string { return map[string]string{"dir/file": text} }

func TestModes(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		one := s.commit("one", file("1"))
		s.tag(false, "v1.0.0")
		two := s.commit("two\n\nbody of two", file("2"))
		s.tag(true, "v1.1.0")
		s.git("tag", "--annotate", "--message", "of a tag", "nested", "v1.1.0")
		s.git("push", "--quiet", "origin", "nested")
		s.git("checkout", "--quiet", "-b", "next/thing")
		three := s.commit("three", file("3"))
		s.tag(true, "v2.0.0")
		s.git("checkout", "--quiet", "master")
		four := s.commit("four", file("4"))
		for version, w := range map[string]struct{ id, ref, text string }{
			"":                                 {four, "refs/heads/master", "4"},
			"branch:master":                    {four, "refs/heads/master", "4"},
			"branch:next/thing":                {three, "refs/heads/next/thing", "3"},
			"commit:" + one:                    {one, "", "1"},
			"commit:" + strings.ToUpper(three): {three, "", "3"},
			"commit:" + two[:10]:               {two, "", "2"},
			"commit:" + four[:12]:              {four, "", "4"},
			"tag:v1.0.0":                       {one, "refs/tags/v1.0.0", "1"},
			"tag:v1.1.0":                       {two, "refs/tags/v1.1.0", "2"},
			"tag:nested":                       {two, "refs/tags/nested", "2"},
			"tag:latest":                       {two, "refs/tags/v1.1.0", "2"},
			"semver:1.0.x":                     {one, "refs/tags/v1.0.0", "1"},
			"semver:*":                         {three, "refs/tags/v2.0.0", "3"},
		} {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				r := open(t, url, version, how)
				want(t, r, resolve(t, r), w.id, w.ref, w.text)
				want(t, r, resolve(t, r), w.id, w.ref, w.text)
			})
		}
		for version, says := range map[string][]string{
			"branch:main":          {"no branch main", "master, next/thing"},
			"tag:v3":               {"no tag v3", "nested, v1.0.0"},
			"semver:>2":            {"range >2", "v2.0.0"},
			"commit:ffffffff":      {"no commit ffffffff"},
			"commit:" + ones('f'):  {"no commit " + ones('f')},
			"commit:" + other(one): {"no commit " + other(one)},
		} {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				resolveFails(t, open(t, url, version, how), append(says, "site", version)...)
			})
		}
	})
}

func ones(digit rune) string { return strings.Repeat(string(digit), 40) }

// other is a hash that begins as one that exists.
func other(hash string) string {
	last := "0"
	if hash[39] == '0' {
		last = "1"
	}
	return hash[:39] + last
}

func TestRevision(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	hash := s.commit("Subject line\n\nBody\nKubesync-Prune: approved", file("1"))
	rev := resolve(t, open(t, "file://"+s.Bare, ""))
	if rev.Subject != "Subject line" || !strings.Contains(rev.Message, "\nKubesync-Prune: approved\n") || rev.Author != "Ada <ada@example.com>" {
		t.Errorf("got %+v", rev)
	}
	if rev.Short() != hash[:7] || rev.Committed.Year() != 2026 {
		t.Errorf("got %s of %s", rev.Short(), rev.Committed)
	}
}

// TestFollows goes through what can happen to a branch and to tags.
func TestFollows(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		s.commit("zero", file("0"))
		one := s.commit("one", file("1"))
		s.tag(true, "v1.0.0")
		branch, tag := open(t, url, "branch:master", how), open(t, url, "tag:v1.0.0", how)
		latest, semver := open(t, url, "tag:latest", how), open(t, url, "semver:^1", how)
		want(t, branch, resolve(t, branch), one, "refs/heads/master", "1")
		want(t, tag, resolve(t, tag), one, "refs/tags/v1.0.0", "1")
		want(t, latest, resolve(t, latest), one, "refs/tags/v1.0.0", "1")
		want(t, semver, resolve(t, semver), one, "refs/tags/v1.0.0", "1")

		two := s.commit("two", file("2"))
		s.tag(false, "v1.0.1")
		want(t, branch, resolve(t, branch), two, "refs/heads/master", "2")
		want(t, tag, resolve(t, tag), one, "refs/tags/v1.0.0", "1")
		want(t, latest, resolve(t, latest), two, "refs/tags/v1.0.1", "2")
		want(t, semver, resolve(t, semver), two, "refs/tags/v1.0.1", "2")

		s.git("reset", "--quiet", "--hard", "HEAD~2")
		three := s.commit("forced", file("3"))
		want(t, branch, resolve(t, branch), three, "refs/heads/master", "3")
		resolveFails(t, latest, "no tag is on the default branch", "v1.0.0, v1.0.1")

		s.tag(true, "v1.0.0")
		want(t, tag, resolve(t, tag), three, "refs/tags/v1.0.0", "3")
		want(t, latest, resolve(t, latest), three, "refs/tags/v1.0.0", "3")

		s.git("checkout", "--quiet", "-b", "aside")
		s.git("push", "--quiet", "origin", "aside")
		s.deleteBranch("master", "aside")
		text := resolveFails(t, branch, "no branch master", "aside")
		if strings.Contains(text, "empty") {
			t.Error(text)
		}
		want(t, branch, branch.current.revision, three, "refs/heads/master", "3")

		s.git("checkout", "--quiet", "-b", "master")
		four := s.commit("back", file("4"))
		want(t, branch, resolve(t, branch), four, "refs/heads/master", "4")
	})
}

func TestDefaultBranch(t *testing.T) {
	t.Parallel()
	onEach(t, "main", func(t *testing.T, s site, url string, how func(*Options)) {
		one := s.commit("one", file("1"))
		s.tag(false, "v1")
		var log bytes.Buffer
		logged := func(o *Options) { o.Log = zerolog.New(&log) }
		r := open(t, url, "", how, logged)
		want(t, r, resolve(t, r), one, "refs/heads/main", "1")
		resolve(t, r)
		if said := strings.Count(log.String(), `"branch":"main"`); said != 1 {
			t.Errorf("said %d times: %s", said, log.String())
		}
		resolveFails(t, open(t, url, "branch:master", how), "no branch master", "branches are main")
		latest := open(t, url, "tag:latest", how)
		want(t, latest, resolve(t, latest), one, "refs/tags/v1", "1")
		seeded := open(t, url, "", how, func(o *Options) { o.LastRef = "refs/heads/master" })
		resolveFails(t, seeded, "no branch master")
		if r.masterSynced || !seeded.masterSynced {
			t.Error("masterSynced is not what happened")
		}

		s.git("checkout", "--quiet", "-b", "master")
		two := s.commit("two", file("2"))
		want(t, r, resolve(t, r), two, "refs/heads/master", "2")
		s.deleteBranch("master", "main")
		resolveFails(t, r, "no branch master", "main")
		if !r.masterSynced {
			t.Error("master was synced")
		}
	})
}

func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		r := open(t, url, "", how)
		resolveFails(t, r, "repository is empty")
		resolveFails(t, open(t, url, "commit:abcdef", how), "abcdef")
		one := s.commit("one", file("1"))
		want(t, r, resolve(t, r), one, "refs/heads/master", "1")
	})
}

// TestLatestOutOfOrder has commits and tags made in another order than their
// dates, and tags beside the default branch.
func TestLatestOutOfOrder(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		s.commit("first", file("x"))
		newest := s.commitAt(20, "dated last")
		s.tag(true, "a-old-name")
		s.commitAt(10, "dated before its parent")
		s.tag(true, "z-new-name")
		s.commitAt(15, "between")
		s.tag(false, "v9.0.0")
		s.git("checkout", "--quiet", "-b", "side", "HEAD~1")
		s.commitAt(30, "dated later still, on a side branch")
		s.tag(true, "side")
		s.git("checkout", "--quiet", "master")
		r := open(t, url, "tag:latest", how)
		want(t, r, resolve(t, r), newest, "refs/tags/a-old-name", "x")

		s.git("merge", "--quiet", "--no-ff", "--message", "merged", "side")
		s.git("push", "--quiet", "origin", "master")
		if rev := resolve(t, r); rev.Ref != "refs/tags/side" {
			t.Errorf("after the merge: got %s", rev.Ref)
		}
	})
}

func TestPollCostsOneRequest(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]gitserver.Option{"new server": nil, "old server": {gitserver.WithoutFilter, gitserver.WithoutV2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t, options...)
			s := newSite(t, server.Dir(), "master")
			hash := s.commit("one", file("1"))
			s.tag(true, "v1.0.0")
			for _, version := range []string{"", "branch:master", "commit:" + hash, "commit:" + hash[:8], "tag:v1.0.0", "tag:latest", "semver:*"} {
				r := open(t, server.URL("site"), version)
				resolve(t, r)
				server.Log.Reset()
				resolve(t, r)
				if all, fetched := server.Log.Count(), server.Log.Count(gitserver.Fetch); all != 1 || fetched != 0 {
					t.Errorf("%s: %d requests, %d for objects", version, all, fetched)
				}
			}
		})
	}
}

// TestLatestFetchesOnlyNewHistory has a long history, of which a poll must not
// fetch anything twice.
func TestLatestFetchesOnlyNewHistory(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]gitserver.Option{"new server": nil, "old server": {gitserver.WithoutFilter}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t, options...)
			s := newSite(t, server.Dir(), "master")
			s.commit("first", file("old"))
			for i := range 15 {
				s.git("commit", "--quiet", "--allow-empty", "--message", fmt.Sprint(i)+gitbytes.Noise(500))
			}
			s.git("push", "--quiet", "origin", "master")
			s.tag(true, "v1.0.0")
			r := open(t, server.URL("site"), "tag:latest")
			first := resolve(t, r)
			want(t, r, first, first.ID, "refs/tags/v1.0.0", "old")
			server.Log.Reset()
			s.commit("one more", file("new"))
			rev := resolve(t, r)
			want(t, r, rev, rev.ID, "refs/tags/v1.0.0", "old")
			if fetches, size := server.Log.Count(gitserver.Fetch), server.Log.Bytes(gitserver.Fetch); fetches != 1 || size > 1000 {
				t.Errorf("%d fetches of %d bytes", fetches, size)
			}
			if len(r.latest.of.Commits) != 17 {
				t.Errorf("it knows of %d commits", len(r.latest.of.Commits))
			}
		})
	}
}

// TestDepth has a large past, which must not be fetched.
func TestDepth(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("big", file(gitbytes.Noise(200_000)))
	old := s.commit("small", file("1"))
	s.tag(true, "v1.0.0")
	s.commit("small", file("2"))
	for _, version := range []string{"branch:master", "commit:" + old, "commit:" + old[:8], "tag:v1.0.0", "tag:latest", "semver:*"} {
		server.Log.Reset()
		resolve(t, open(t, server.URL("site"), version))
		if size := server.Log.Bytes(gitserver.Fetch); size > 10_000 {
			t.Errorf("%s: fetched %d bytes", version, size)
		}
	}
}

// TestCurrentOnly says what a Repo keeps: one revision, but an FS lives on.
func TestCurrentOnly(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", file("1"))
	r := open(t, server.URL("site"), "")
	_, err := r.Files(t.Context(), Revision{ID: ones('a')})
	says(t, err, "aaaaaaa", "not the current one")
	one := resolve(t, r)
	before, err := r.Files(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	s.commit("two", file("2"))
	two := resolve(t, r)
	if b, err := before.(*files).ReadFile("dir/file"); err != nil || string(b) != "1" {
		t.Errorf("the old FS: got %q, %v", b, err)
	}
	_, err = r.Files(t.Context(), one)
	says(t, err, one.Short(), "not the current one")
	says(t, r.Checkout(t.Context(), one, t.TempDir()), one.Short(), "not the current one")
	if got := content(t, r, two, "dir/file"); got != "2" {
		t.Errorf("got %q", got)
	}
}

// TestOldObjectsAreDropped looks whether the garbage collector may have them, once
// the new revision was used.
func TestOldObjectsAreDropped(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		if strings.HasPrefix(url, "file:") {
			return // nothing is held of these
		}
		first := s.commit("one", map[string]string{"dir/file": "1", "same": "same"})
		r := open(t, url, "", how)
		rev := resolve(t, r)
		must(t, r.Checkout(t.Context(), rev, t.TempDir()))
		old := weak.Make(r.current.packed)
		s.commit("two", map[string]string{"dir/file": "2", "same": "same"})
		two := resolve(t, r)
		want(t, r, two, two.ID, "refs/heads/master", "2")
		if got := content(t, r, two, "same"); got != "same" {
			t.Errorf("got %q", got)
		}
		resolve(t, r)
		runtime.GC()
		if old.Value() != nil {
			t.Error("the objects of the revision before are still there")
		}
		if r.current.objects.Has(plumbing.NewHash(first)) {
			t.Error("the commit before is still there")
		}
		if got := content(t, r, two, "same"); got != "same" {
			t.Errorf("got %q", got)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := New(Options{})
	says(t, err, "URL")
	u, err := ParseURL("https://ann:secret@example.com/app")
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{URL: u, Version: Version{mode: modeWorktree}})
	says(t, err, "worktree", "file:///", "https://example.com/app")
}
