package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// large is a repository of which only the directory "used" is of interest.
func large(n int) map[string]string {
	out := map[string]string{"root.txt": gitbytes.Noise(5_000)}
	for i := range n {
		out[fmt.Sprintf("used/%02d.yaml", i)] = fmt.Sprintf("used %d", i)
		out[fmt.Sprintf("other/dir%d/file", i)] = gitbytes.Noise(2_000) + fmt.Sprint(i)
	}
	return out
}

// names are the files of a directory, as a reader finds them.
func names(t testing.TB, fsys fs.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || len(info.(interface{ Hash() string }).Hash()) != 40 {
			t.Fatal(e, err)
		}
		out = append(out, dir+"/"+e.Name())
	}
	return out
}

// use reads the directory "used" as transform does.
func use(t testing.TB, r *Repo, rev Revision) map[string]string {
	t.Helper()
	fsys, err := r.Files(t.Context(), rev)
	must(t, err)
	all := names(t, fsys, "used")
	must(t, fsys.(*files).Fetch(t.Context(), append(all, "not/there", ".ignore")...))
	out := map[string]string{}
	for _, name := range all {
		b, err := fs.ReadFile(fsys, name)
		must(t, err)
		out[name] = string(b)
	}
	return out
}

// TestPartial counts what crosses the wire.
func TestPartial(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	all := large(30)
	s.commit("one", all)
	r := open(t, server.URL("site"), "branch:master")
	rev := resolve(t, r)
	if got := use(t, r, rev); len(got) != 30 || got["used/07.yaml"] != "used 7" {
		t.Errorf("got %v", got)
	}
	// Commit and root, the directory, its files.
	if fetches, size := server.Log.Count(gitserver.Fetch), server.Log.Bytes(gitserver.Fetch); fetches != 3 || size > 5_000 {
		t.Errorf("%d fetches of %d bytes", fetches, size)
	}

	server.Log.Reset()
	use(t, r, resolve(t, r))
	if got := server.Log.Requests(); len(got) != 1 || got[0].Kind != gitserver.ListRefs {
		t.Errorf("a poll with nothing new: %d requests", len(got))
	}

	all["used/07.yaml"] = "new"
	s.commit("two", all)
	server.Log.Reset()
	rev = resolve(t, r)
	if got := use(t, r, rev); len(got) != 30 || got["used/07.yaml"] != "new" || got["used/08.yaml"] != "used 8" {
		t.Errorf("got %v", got)
	}
	requests := server.Log.Requests()
	if last := requests[len(requests)-1]; len(requests) != 4 || strings.Count(last.Body, "want ") != 1 {
		t.Errorf("%d requests, the last\n%s", len(requests), last.Body)
	}

	all["other/dir1/file"] = "elsewhere"
	s.commit("three", all)
	server.Log.Reset()
	use(t, r, resolve(t, r))
	if got := server.Log.Count(); got != 2 {
		t.Errorf("for a change elsewhere: %d requests", got)
	}
}

// TestPartialBelow has the directories below one fetched at once.
func TestPartialBelow(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", map[string]string{"a/b/c/d": "1", "a/b/e/f": "2", "a/g/h/i": "3", "x/y/z": gitbytes.Noise(3000)})
	r := open(t, server.URL("site"), "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	server.Log.Reset()
	must(t, fsys.(*files).FetchBelow(t.Context(), "a"))
	must(t, fsys.(*files).FetchBelow(t.Context(), "nothing"))
	must(t, fsys.(*files).FetchBelow(t.Context(), "a/b/c/d"))
	var found []string
	must(t, fs.WalkDir(fsys, "a", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	must(t, fsys.(*files).Fetch(t.Context(), found...))
	if got := server.Log.Count(); got != 2 || len(found) != 3 {
		t.Errorf("%d requests for %v", got, found)
	}
}

// TestKept holds on to what is below directories that are kept and not looked into, until
// a revision does not keep them.
func TestKept(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	all := map[string]string{"a/one": "1", "a/deep/two": "2", "a/deep/er/three": "3", "b/four": "4", "c": gitbytes.Noise(3000)}
	s.commit("one", all)
	r := open(t, server.URL("site"), "branch:master")
	// What was fetched before, in the way of a user that knows nothing.
	everything := func(fsys *files) (fetched int) {
		server.Log.Reset()
		must(t, fsys.FetchBelow(t.Context(), "."))
		must(t, fsys.Fetch(t.Context(), "a/one", "a/deep/two", "a/deep/er/three", "b/four"))
		return server.Log.Count()
	}
	keep := func(fsys *files, dirs ...string) (kept []string) {
		for _, dir := range dirs {
			info, err := fsys.Stat(dir)
			must(t, err)
			if fsys.Keep(info) {
				kept = append(kept, dir)
			}
		}
		return kept
	}
	next := func(text string) *files {
		all["d"] = text
		s.commit(text, all)
		fsys, err := r.Files(t.Context(), resolve(t, r))
		must(t, err)
		return fsys.(*files)
	}
	first := next("1")
	if got := keep(first, "a", "a/deep", "a/deep/er", "b"); got != nil {
		t.Errorf("kept of the first revision: %v", got)
	}
	if everything(first) == 0 {
		t.Error("nothing was fetched")
	}
	for i := range 5 {
		fsys := next(fmt.Sprint("later ", i))
		if got := keep(fsys, "a", "b"); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("revision %d: kept %v", i, got)
		}
		if i%2 == 0 {
			resolve(t, r) // lets go of the revision before
		}
	}
	all["a/new"] = "5"
	fsys := next("all again")
	if got := keep(fsys, "a", "a/deep", "a/deep/er", "b"); !slices.Equal(got, []string{"a/deep", "a/deep/er", "b"}) {
		t.Errorf("below a directory that changed, kept %v", got)
	}
	resolve(t, r)
	server.Log.Reset()
	must(t, fsys.FetchBelow(t.Context(), "a"))
	if got := everything(fsys); got != 0 {
		t.Errorf("%d requests for what was fetched before", got)
	}
	next("not looked at")
	fsys = next("the one after")
	if got := keep(fsys, "a", "b"); got != nil {
		t.Errorf("kept after a revision that was not looked at: %v", got)
	}
	if everything(fsys) == 0 || content(t, r, r.current.revision, "a/deep/er/three") != "3" {
		t.Error("what was let go of was not fetched again")
	}
}

// TestPartialFS lets the standard library try a file system of which nothing is
// held yet, and what is fetched while one looks at it.
func TestPartialFS(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", map[string]string{"a/b/c": "1", "a.b": "2", "a/d": "", "x": "#!/bin/sh\n", "z/big": gitbytes.Noise(300_000)})
	r := open(t, server.URL("site"), "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	if err := fstest.TestFS(fsys, "a/b/c", "a.b", "a/d", "x", "z/big"); err != nil {
		t.Error(err)
	}
}

// TestPartialListsFetchNoFile walks over everything, and asks for all but sizes.
func TestPartialListsFetchNoFile(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", map[string]string{"big": gitbytes.Noise(300_000), "dir/big": gitbytes.Noise(200_000)})
	r := open(t, server.URL("site"), "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	listing(t, fsys)
	if got := server.Log.Bytes(gitserver.Fetch); got > 2_000 {
		t.Errorf("it fetched %d bytes", got)
	}
	info, err := fs.Stat(fsys, "big")
	if err != nil || info.Size() != 300_000 {
		t.Errorf("got %v, %v", info, err)
	}
	server.Down()
	info, err = fs.Stat(fsys, "dir/big")
	if err != nil || info.Size() != -1 {
		t.Errorf("got %d, %v", info.Size(), err)
	}
}

// TestPartialOutlives reads files late: after the Repo moved on, after a failure,
// after the connection was closed.
func TestPartialOutlives(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", map[string]string{"held": "1", "late": "late"})
	r := open(t, server.URL("site"), "")
	one, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	short, err := r.Files(ctx, r.current.revision)
	must(t, err)
	if b, err := fs.ReadFile(short, "held"); err != nil || string(b) != "1" {
		t.Errorf("got %q, %v", b, err)
	}
	cancel()
	if b, err := fs.ReadFile(short, "held"); err != nil || string(b) != "1" {
		t.Errorf("what is held can be read for ever: got %q, %v", b, err)
	}
	if _, err := fs.ReadFile(short, "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("without a context: %v", err)
	}
	s.commit("two", map[string]string{"held": "2", "late": "later"})
	resolve(t, r)
	resolve(t, r)
	server.Down()
	resolveFails(t, r, "connection refused")
	_, err = fs.ReadFile(one, "late")
	says(t, err, server.URL("site"), "connection refused")
	must(t, server.Up())
	r.server.CloseIdle()
	if b, err := fs.ReadFile(one, "late"); err != nil || string(b) != "late" {
		t.Errorf("the old FS: got %q, %v", b, err)
	}
}

// TestPartialTimeout bounds what is fetched later, too.
func TestPartialTimeout(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", file("1"))
	r := open(t, server.URL("site"), "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	r.options.Timeout = 200 * time.Millisecond
	server.Behave(gitserver.Slow(time.Hour))
	_, err = fs.ReadFile(fsys, "dir/file")
	says(t, err, "dir/file", "not done after 200ms", "TIMEOUT")
}

// TestPartialFallbacks has servers that can do less than they say.
func TestPartialFallbacks(t *testing.T) {
	t.Parallel()
	does := func(b gitserver.Behaviour) func(*gitserver.Server) gitserver.Behaviour {
		return func(*gitserver.Server) gitserver.Behaviour { return b }
	}
	for name, test := range map[string]struct {
		behaviour func(*gitserver.Server) gitserver.Behaviour
		options   []gitserver.Option
		fetches   int // for one revision
		later     int // for the next
	}{
		"all is well":           {does(gitserver.Normal()), nil, 3, 3},
		"no filter":             {does(gitserver.Normal()), []gitserver.Option{gitserver.WithoutFilter}, 1, 1},
		"no v2":                 {does(gitserver.Normal()), []gitserver.Option{gitserver.WithoutV2}, 1, 1},
		"ignores filters":       {does(gitserver.IgnoreFilter()), nil, 1, 1},
		"no trees but the root": {does(gitserver.NoFilterLike("tree:1")), nil, 5, 4},
		"no filter of trees":    {does(gitserver.NoFilterLike("tree")), nil, 4, 2},
		"no filter after all":   {does(gitserver.NoFilterLike("")), nil, 4, 1},
		"only commits":          {(*gitserver.Server).OnlyCommits, nil, 3, 3},
		"compressed":            {does(gitserver.Gzip()), nil, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t, test.options...)
			server.Behave(test.behaviour(server))
			s := newSite(t, server.Dir(), "master")
			all := large(10)
			s.commit("one", all)
			r := open(t, server.URL("site"), "branch:master")
			rev := resolve(t, r)
			if got := use(t, r, rev); len(got) != 10 || got["used/07.yaml"] != "used 7" {
				t.Errorf("got %v", got)
			}
			if got := server.Log.Count(gitserver.Fetch); got != test.fetches {
				t.Errorf("%d fetches", got)
			}
			all["used/07.yaml"] = "new"
			s.commit("two", all)
			server.Log.Reset()
			rev = resolve(t, r)
			if got := use(t, r, rev); len(got) != 10 || got["used/07.yaml"] != "new" {
				t.Errorf("got %v", got)
			}
			if got := server.Log.Count(gitserver.Fetch); got != test.later {
				t.Errorf("%d fetches for the next revision", got)
			}
			s.tag(true, "v1")
			for _, version := range []string{"tag:latest", "commit:" + rev.ID[:8]} {
				latest := open(t, server.URL("site"), version)
				rev := resolve(t, latest)
				if got := use(t, latest, rev); got["used/07.yaml"] != "new" {
					t.Errorf("%s: got %v", version, got)
				}
			}
			dir := t.TempDir()
			r = open(t, server.URL("site"), "branch:master")
			must(t, r.Checkout(t.Context(), resolve(t, r), dir))
			same(t, s, rev.ID, dir)
			if got := gitIn(t, dir, "describe"); got != "v1" {
				t.Errorf("git describe says %q", got)
			}
		})
	}
}

// TestPartialTrouble has servers that fail when the files come.
func TestPartialTrouble(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		behaviour gitserver.Behaviour
		says      string
	}{
		"cut":       {gitserver.CutInPack(), "broke off in the middle"},
		"corrupt":   {gitserver.CorruptPack(), "does not match its checksum"},
		"forbidden": {gitserver.Failing(http.StatusForbidden), "403 Forbidden"},
		"busy":      {gitserver.Busy(http.StatusTooManyRequests, "1"), "429 Too Many Requests and wants to be left alone for 1s"},
		"no git":    {page, "no git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t)
			s := newSite(t, server.Dir(), "master")
			s.commit("one", file("1"))
			r := open(t, server.URL("site"), "")
			rev := resolve(t, r)
			fsys, err := r.Files(t.Context(), rev)
			must(t, err)
			server.Behave(test.behaviour)
			err = fsys.(*files).Fetch(t.Context(), "dir/file")
			says(t, err, server.URL("site"), test.says)
			server.Behave(gitserver.Normal())
			for name == "busy" && err != nil { // it wants a second
				err = fsys.(*files).Fetch(t.Context(), "dir/file")
			}
			if got := content(t, r, rev, "dir/file"); got != "1" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestDeniedFilters has a server that denies everything for a while, in words that a
// server which knows no filters could use. Its filters are used again afterwards.
func TestDeniedFilters(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	all := large(10)
	s.commit("one", all)
	r := open(t, server.URL("site"), "branch:master")
	use(t, r, resolve(t, r))
	all["used/07.yaml"] = "another"
	s.commit("two", all)
	server.Behave(gitserver.Denying("access denied to org/spam-filter"))
	resolveFails(t, r, "access denied to org/spam-filter")
	server.Behave(gitserver.Normal())
	server.Log.Reset()
	if got := use(t, r, resolve(t, r)); got["used/07.yaml"] != "another" {
		t.Errorf("got %v", got)
	}
	if got := server.Log.Count(gitserver.Fetch); got != 3 {
		t.Errorf("%d fetches, want those of the commit, of directories and of files", got)
	}
}

// TestDamagedPacks has every sort of server send a pack that is cut or damaged: an
// error, after which the revision before can still be read and the next poll goes well.
func TestDamagedPacks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		behaviour gitserver.Behaviour // besides the damage
		options   []gitserver.Option
	}{
		"filters":         {gitserver.Normal(), nil},
		"ignores filters": {gitserver.IgnoreFilter(), nil},
		"no filter":       {gitserver.Normal(), []gitserver.Option{gitserver.WithoutFilter}},
		"no v2":           {gitserver.Normal(), []gitserver.Option{gitserver.WithoutV2}},
	} {
		for says, does := range map[string]gitserver.Behaviour{
			"broke off in the middle": gitserver.CutInPack(), "does not match its checksum": gitserver.CorruptPack(),
		} {
			t.Run(name+", "+says, func(t *testing.T) {
				t.Parallel()
				server := gitserver.Start(t, test.options...)
				server.Behave(test.behaviour)
				s := newSite(t, server.Dir(), "master")
				all := large(3)
				s.commit("one", all)
				r := open(t, server.URL("site"), "branch:master")
				one := resolve(t, r)
				if got := use(t, r, one); got["used/02.yaml"] != "used 2" {
					t.Fatalf("got %v", got)
				}
				all["used/02.yaml"] = gitbytes.Noise(50_000)
				s.commit("two", all)
				server.Behave(func(right http.Handler) http.Handler { return does(test.behaviour(right)) })
				resolveFails(t, r, server.URL("site"), says)
				if got := use(t, r, one); got["used/02.yaml"] != "used 2" {
					t.Errorf("of the revision before: %v", got)
				}
				server.Behave(test.behaviour)
				if got := use(t, r, resolve(t, r)); got["used/02.yaml"] != gitbytes.Noise(50_000) {
					t.Error("the new revision was not got when all was well again")
				}
			})
		}
	}
}

// TestForcedAway has files that went from the server before they were read.
func TestForcedAway(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", file("1"))
	r := open(t, server.URL("site"), "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	must(t, err)
	s.git("checkout", "--quiet", "--orphan", "new")
	s.git("branch", "--quiet", "-D", "master")
	s.git("branch", "-m", "master")
	two := s.commit("two", file("2"))
	gitIn(t, s.Bare, "reflog", "expire", "--expire=now", "--all")
	gitIn(t, s.Bare, "gc", "--quiet", "--prune=now")
	_, err = fs.ReadFile(fsys, "dir/file")
	says(t, err, "replaced by force")
	want(t, r, resolve(t, r), two, "refs/heads/master", "2")
}

// TestBusy leaves a server alone that wants it.
func TestBusy(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		server, _ := elsewhere(t)
		server.Behave(gitserver.Busy(http.StatusServiceUnavailable, when))
		r := open(t, server.URL("site"), "")
		resolveFails(t, r, "503 Service Unavailable and wants to be left alone for ")
		asked := server.Log.Count()
		resolveFails(t, r, "left alone for another 15m0s")
		if server.Log.Count() != asked {
			t.Error("it was not left alone")
		}
	}
	server, _ := elsewhere(t)
	server.Behave(gitserver.Busy(http.StatusServiceUnavailable, "1"))
	r := open(t, server.URL("site"), "")
	resolveFails(t, r, "503 Service Unavailable and wants to be left alone for 1s")
	time.Sleep(time.Second) // what the server asks for
	server.Behave(gitserver.Failing(http.StatusTooManyRequests))
	resolveFails(t, r, "429 Too Many Requests: it was asked too often")
	server.Behave(gitserver.Normal())
	resolve(t, r)
}

// TestPollIsSmall compares polls of repositories with few and with many refs.
func TestPollIsSmall(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "v1")
	versions := []string{"", "branch:master", "commit:" + one, "commit:" + one[:8], "tag:v1"}
	sizes := func() (out []int) {
		for _, version := range versions {
			r := open(t, server.URL("site"), version)
			rev := resolve(t, r)
			if rev.ID != one {
				t.Errorf("%s: got %s", version, rev.ID)
			}
			server.Log.Reset()
			resolve(t, r)
			if server.Log.Count() != 1 {
				t.Errorf("%s: %d requests", version, server.Log.Count())
			}
			out = append(out, server.Log.Bytes())
		}
		return out
	}
	few := sizes()
	var refs strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&refs, "%s refs/heads/team-%d\n%s refs/tags/x%d\n", one, i, one, i)
	}
	s.git("--git-dir="+s.Bare, "pack-refs", "--all")
	packed, err := os.ReadFile(s.Bare + "/packed-refs")
	must(t, err)
	unsorted := strings.Replace(string(packed), " sorted", "", 1) + refs.String()
	must(t, os.WriteFile(s.Bare+"/packed-refs", []byte(unsorted), 0o644))
	if many := sizes(); !slices.Equal(few, many) {
		t.Errorf("few refs %v, many refs %v bytes", few, many)
	}
}

// TestPrefixIsNoName has refs whose names begin as the one that is wanted.
func TestPrefixIsNoName(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		s.commit("one", file("1"))
		s.git("branch", "team-2")
		s.git("tag", "v1.0")
		s.git("push", "--quiet", "origin", "team-2", "v1.0")
		resolveFails(t, open(t, url, "branch:team", how), "no branch team; its branches are master, team-2")
		resolveFails(t, open(t, url, "tag:v1", how), "no tag v1; its tags are v1.0")
	})
}

// TestServerChangesItsMind has a server that is another one than before.
func TestServerChangesItsMind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, "master")
	one := s.commit("one", file("1"))
	options := [][]gitserver.Option{nil, {gitserver.WithoutV2}, {gitserver.WithoutFilter}, nil, {gitserver.WithoutV2, gitserver.WithoutFilter}, nil}
	var servers []*gitserver.Server
	for _, o := range options {
		servers = append(servers, gitserver.Start(t, append(o, gitserver.WithDir(dir))...))
	}
	front := gitserver.Start(t)
	r := open(t, front.URL("site"), "")
	id := one
	for i, server := range servers {
		front.Behave(func(http.Handler) http.Handler { return server.Handler() })
		want(t, r, resolve(t, r), id, "refs/heads/master", fmt.Sprint(i+1))
		text := fmt.Sprint(i + 2)
		id = s.commit(text, file(text))
	}
}

// TestPartialCheckout fetches a commit whole, and of the next one what is new.
func TestPartialCheckout(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	all := large(30)
	s.commit("one", all)
	s.tag(true, "v1", "v1-again")
	s.git("tag", "light")
	s.git("push", "--quiet", "origin", "light")
	r := open(t, server.URL("site"), "branch:master")
	rev, dir := resolve(t, r), t.TempDir()
	use(t, r, rev)
	server.Log.Reset()
	must(t, r.Checkout(t.Context(), rev, dir))
	same(t, s, rev.ID, dir)
	if got := server.Log.Requests(); len(got) != 2 || got[0].Kind != gitserver.ListRefs || got[1].Kind != gitserver.Fetch {
		t.Errorf("%d requests", len(got))
	}
	if got := gitIn(t, dir, "tag"); got != "light\nv1\nv1-again" {
		t.Errorf("tags %q", got)
	}
	must(t, r.Checkout(t.Context(), rev, dir))
	if got := server.Log.Count(); got != 2 {
		t.Errorf("once more: %d requests", got)
	}

	all["used/07.yaml"], all["other/new/file"] = "new", "new too"
	s.commit("two", all)
	s.tag(true, "v2")
	server.Log.Reset()
	rev = resolve(t, r)
	must(t, r.Checkout(t.Context(), rev, dir))
	same(t, s, rev.ID, dir)
	if got := gitIn(t, dir, "describe"); got != "v2" {
		t.Errorf("git describe says %q", got)
	}
	if got := server.Log.Bytes(gitserver.Fetch); got > 4_000 {
		t.Errorf("%d bytes for two small files", got)
	}
	if got := use(t, r, rev); got["used/07.yaml"] != "new" {
		t.Errorf("got %v", got)
	}
}

// TestAnotherReposPack has a server send the files of another repository when a commit is
// fetched whole: an error, which is not believed the next time.
func TestAnotherReposPack(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("one", large(3))
	another, err := server.CreateRepo("another")
	must(t, err)
	head, err := another.Commit("one", file("of another"))
	must(t, err)
	r := open(t, server.URL("site"), "branch:master")
	rev, dir := resolve(t, r), t.TempDir()
	server.Behave(func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			body, _ := io.ReadAll(request.Body) // the log has it in memory
			if bytes.Contains(body, []byte("command=fetch")) {
				request.URL.Path = strings.Replace(request.URL.Path, "/site.git", "/another.git", 1)
				body = bytes.ReplaceAll(body, []byte(rev.ID), []byte(head))
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			right.ServeHTTP(w, request)
		})
	})
	says(t, r.Checkout(t.Context(), rev, dir), server.URL("site"), "incomplete: objects are missing")
	says(t, r.Checkout(t.Context(), rev, dir), server.URL("site"), "incomplete: objects are missing")
	server.Behave(gitserver.Normal())
	must(t, r.Checkout(t.Context(), rev, dir))
	same(t, s, rev.ID, dir)
}

// TestPartialOverSSH has one conversation for all.
func TestPartialOverSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, "master")
	all := large(10)
	s.commit("one", all)
	server := gitserver.StartSSH(t, dir)
	r := open(t, server.URL("site"), "", func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = server.KeyFile, server.KnownHostsFile })
	rev := resolve(t, r)
	fsys, err := r.Files(t.Context(), rev)
	must(t, err)
	if got := use(t, r, rev); got["used/07.yaml"] != "used 7" {
		t.Errorf("got %v", got)
	}
	if got := server.Fetches(); got != 1 {
		t.Errorf("%d conversations", got)
	}
	if _, ok := r.current.objects.(*store); !ok {
		t.Error("it is not a partial fetch")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fsys.(*files).Fetch(ctx, "root.txt"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	server.Down()
	_, err = fs.ReadFile(fsys, "root.txt")
	says(t, err, "connection refused")
	must(t, server.Up())
	if _, err := fs.ReadFile(fsys, "root.txt"); err != nil {
		t.Error(err)
	}
	r.server.CloseIdle()
	if _, err := fs.ReadFile(fsys, "other/dir1/file"); err != nil {
		t.Error(err)
	}
	if got := server.Fetches(); got != 3 {
		t.Errorf("%d conversations", got)
	}
}
