package repo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/internal/revision"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// descends expects an answer about the current revision.
func descends(t *testing.T, r *Repo, ancestor string, want bool) {
	t.Helper()
	got, err := r.Descends(t.Context(), r.current.revision, ancestor)
	if err != nil || got != want {
		t.Errorf("%s of %s: got %t, %v; want %t", ancestor, r.current.revision.ID, got, err, want)
	}
}

// descendsFails expects that there is no answer, and an error that says all of that.
func descendsFails(t *testing.T, r *Repo, ancestor string, wants ...string) {
	t.Helper()
	got, err := r.Descends(t.Context(), r.current.revision, ancestor)
	if got {
		t.Errorf("%s is taken for an ancestor of %s", ancestor, r.current.revision.ID)
	}
	says(t, err, wants...)
}

// merge merges branches into the one that is checked out, and pushes.
func (s site) merge(branches ...string) string {
	s.t.Helper()
	s.git(append([]string{"merge", "--quiet", "--no-ff", "--strategy=ours", "--message", "merged"}, branches...)...)
	s.git("push", "--quiet", "--force", "origin", "HEAD")
	return s.git("rev-parse", "HEAD")
}

// TestDescends goes through the shapes of a history, and what can happen to it.
func TestDescends(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		one := s.commit("one", file("1"))
		s.git("checkout", "--quiet", "-b", "side")
		side := s.commit("side", file("side"))
		sideToo := s.commit("side too", file("side too"))
		s.git("checkout", "--quiet", "master")
		two := s.commit("two", file("2"))
		s.git("checkout", "--quiet", "-b", "fork")
		fork := s.commit("fork", file("fork"))
		s.git("checkout", "--quiet", "master")
		merged := s.merge("side")
		four := s.commit("four", file("4"))
		s.tag(true, "v1.0.0")
		for _, version := range []string{"branch:master", "commit:" + four, "tag:v1.0.0", "tag:latest"} {
			r := open(t, url, version, how)
			resolve(t, r)
			for _, ancestor := range []string{merged, two, one, sideToo, side, strings.ToUpper(side)} {
				descends(t, r, ancestor, true)
			}
			for _, foreign := range []string{four, fork, ones('f'), ones('0'), other(two)} {
				descends(t, r, foreign, false)
			}
		}

		r := open(t, url, "branch:master", how)
		resolve(t, r)
		s.git("reset", "--quiet", "--hard", two)
		s.git("push", "--quiet", "--force", "origin", "master")
		resolve(t, r) // rolled back
		descends(t, r, four, false)
		descends(t, r, merged, false)
		descends(t, r, side, false)
		descends(t, r, one, true)

		s.git("reset", "--quiet", "--hard", one)
		away := s.commit("away", file("away"))
		resolve(t, r) // replaced by force
		descends(t, r, two, false)
		descends(t, r, four, false)
		descends(t, r, away, false)
		descends(t, r, one, true)
	})
}

// TestDescendsFromNothing asks what has no answer.
func TestDescendsFromNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	two := s.commit("two", file("2"))
	r := open(t, "file://"+s.Bare, "")
	rev := resolve(t, r)
	descendsFails(t, r, one[:12], "is not the full hash of a commit")
	descendsFails(t, r, revision.WorktreePrefix+one, "is not the full hash of a commit")
	descendsFails(t, r, "", "is not the full hash of a commit")
	s.commit("three", file("3"))
	resolve(t, r)
	if got, err := r.Descends(t.Context(), rev, one); got || err == nil {
		t.Errorf("a revision that is not the current one: got %t, %v", got, err)
	}
	work := open(t, "file://"+s.Work, "worktree")
	resolve(t, work)
	descendsFails(t, work, two, "worktree", "have no history")
}

// TestDescendsCost counts requests: none for the parent, one for what is near, however
// long the history and large the files, and none to learn the same again.
func TestDescendsCost(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	s.commit("first", file("1"))
	for i := range 20 {
		s.git("commit", "--quiet", "--allow-empty", "--message", fmt.Sprint(i)+gitbytes.Noise(5000))
	}
	near := s.commit("near", file(gitbytes.Noise(200_000)))
	parent := s.commit("parent", file(gitbytes.Noise(100_000)))
	s.commit("tip", file("2"))
	r := open(t, server.URL("site"), "")
	resolve(t, r)
	asks := func(ancestor string, want bool, fetches int, atMost int64) {
		t.Helper()
		server.Log.Reset()
		descends(t, r, ancestor, want)
		if all, n, size := server.Log.Count(), server.Log.Count(gitserver.Fetch), int64(server.Log.Bytes(gitserver.Fetch)); all != fetches || n != fetches || size > atMost {
			t.Errorf("%s: %d requests, %d fetches of %d bytes", ancestor, all, n, size)
		}
	}
	asks(parent, true, 0, 0)
	asks(near, true, 1, 1000)
	asks(near, true, 0, 0)
	asks(ones('f'), false, 1, 100_000)
	asks(ones('f'), false, 0, 0)

	latest := open(t, server.URL("site"), "tag:latest")
	s.tag(true, "v1.0.0")
	resolve(t, latest)
	r = latest // which has the history already
	asks(near, true, 0, 0)
	asks(ones('f'), false, 0, 0)
}

// TestDescendsLimits bounds what is fetched and how long, and does not fetch again
// what was too much.
func TestDescendsLimits(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	one := s.commit("zero", file("0"))
	for i := range 20 {
		s.git("commit", "--quiet", "--allow-empty", "--message", fmt.Sprint(i))
	}
	s.commit("tip", file("2"))
	for _, url := range []string{server.URL("site"), "file://" + s.Bare} {
		r := open(t, url, "", limited(map[limits.Limit]int64{limits.Objects: 15}))
		resolve(t, r)
		descendsFails(t, r, ones('f'), "cannot find out whether fffffff is an ancestor", "LIMITS=objects=", r.options.URL.String())
		server.Log.Reset()
		descendsFails(t, r, ones('f'), "LIMITS=objects=")
		if n := server.Log.Count(); n != 0 {
			t.Errorf("%d requests to learn it again", n)
		}
		descendsFails(t, r, one, "LIMITS=objects=")
	}
	r := open(t, server.URL("site"), "")
	resolve(t, r)
	r.options.Timeout = 200 * time.Millisecond
	server.Behave(gitserver.Slow(time.Hour))
	descendsFails(t, r, one, "not done after 200ms", "TIMEOUT")
	r.options.Timeout = 0
	server.Behave(gitserver.Normal())
	descends(t, r, one, true)
}

// TestDescendsShallow has repositories that are cut off themselves: what lies behind
// is not known, what lies before is.
func TestDescendsShallow(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	two := s.commit("two", file("2"))
	three := s.commit("three", file("3"))
	s.commit("four", file("4"))
	s.git("checkout", "--quiet", "--orphan", "island")
	island := s.commit("island", file("island"))
	shallow := filepath.Join(t.TempDir(), "shallow.git")
	gitIn(t, t.TempDir(), "clone", "--quiet", "--bare", "--depth=2", "--no-single-branch", "file://"+s.Bare, shallow)
	check := func(t *testing.T, r *Repo) {
		t.Helper()
		descends(t, r, three, true)
		descends(t, r, two, true) // the last commit names it
		for _, unknown := range []string{one, ones('f'), island} {
			descendsFails(t, r, unknown, "cut off behind commit "+three, "git fetch --unshallow")
		}
	}
	t.Run("from disk", func(t *testing.T) {
		r := open(t, "file://"+shallow, "branch:master")
		resolve(t, r)
		check(t, r)
		gitIn(t, shallow, "fetch", "--quiet", "--unshallow")
		descends(t, r, one, true)
		descends(t, r, island, false)
		gitIn(t, shallow, "gc", "--quiet", "--prune=now")
		descends(t, r, ones('f'), false)
		gitIn(t, shallow, "fetch", "--quiet", "--depth=2", "origin", "master")
	})
	for name, options := range map[string][]gitserver.Option{
		"v2": nil, "v2, no filter": {gitserver.WithoutFilter},
		"v0": {gitserver.WithoutV2}, "v0, no filter": {gitserver.WithoutV2, gitserver.WithoutFilter},
	} {
		t.Run(name, func(t *testing.T) {
			server := gitserver.Start(t, append(options, gitserver.WithDir(filepath.Dir(shallow)))...)
			r := open(t, server.URL("shallow"), "branch:master")
			resolve(t, r)
			check(t, r)
		})
	}
}

// TestDescendsFalseAnswers has servers that hand out something else, or nothing, once the
// revision is known: no answer is true but the right one.
func TestDescendsFalseAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // of all servers, which only read it
	s := newSite(t, dir, "master")
	one := s.commit("one", file("1"))
	s.commit("two", file("2"))
	s.commit("three", file("3"))
	s.git("checkout", "--quiet", "--orphan", "island")
	wanted := s.commit("wanted", file("wanted"))
	child := s.commit("child", file("child"))
	for name, test := range map[string]struct {
		fault func(child string) gitserver.Behaviour
		says  []string
	}{
		"a child of the wanted one": {gitserver.Instead, []string{"incomplete"}},
		"no history":                {func(string) gitserver.Behaviour { return gitserver.Vanished() }, []string{"does not hand out the history"}},
		"an error":                  {func(string) gitserver.Behaviour { return gitserver.Denying("go away") }, []string{"go away"}},
		"a damaged pack":            {func(string) gitserver.Behaviour { return gitserver.CorruptPack() }, []string{"does not match its checksum"}},
		"half of a pack":            {func(string) gitserver.Behaviour { return gitserver.CutInPack() }, []string{"broke off"}},
		"nothing at all":            {func(string) gitserver.Behaviour { return gitserver.Failing(503) }, []string{"503"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, options := range [][]gitserver.Option{nil, {gitserver.WithoutFilter}, {gitserver.WithoutV2}} {
				server := gitserver.Start(t, append(options, gitserver.WithDir(dir))...)
				r := open(t, server.URL("site"), "branch:master")
				resolve(t, r)
				server.Behave(test.fault(child))
				descendsFails(t, r, wanted, test.says...)
				descendsFails(t, r, one, test.says...)
				server.Behave(gitserver.Normal())
				descends(t, r, wanted, false)
				descends(t, r, one, true)
			}
		})
	}
}

// TestAncestry looks for an ancestor in histories that are held: each commit with
// its parents, a dot behind what is shallow.
func TestAncestry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		history string
		wanted  string
		want    outcome
	}{
		"the parent":                  {"1:2 2:", "2", outcome{is: true}},
		"the parent, not held":        {"1:2", "2", outcome{is: true}},
		"the parent, behind the cut":  {"1:2.", "2", outcome{is: true}},
		"far":                         {"1:2 2:3 3:4 4:", "4", outcome{is: true}},
		"the second parent":           {"1:23 2: 3:4 4:", "4", outcome{is: true}},
		"through what is not missing": {"1:23 3:4 4:", "4", outcome{is: true}},
		"itself":                      {"1:2 2:", "1", outcome{}},
		"unknown":                     {"1:23 2:4 3:4 4:", "9", outcome{}},
		"beside":                      {"1:2 2: 9:2 8:9", "9", outcome{}},
		"missing":                     {"1:23 2:", "9", outcome{missing: []plumbing.Hash{id("3")}}},
		"cut off":                     {"1:23 2: 3:4.", "9", outcome{cut: []plumbing.Hash{id("3")}}},
		"nothing held":                {"", "9", outcome{missing: []plumbing.Hash{id("1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := ancestry{shallow: map[plumbing.Hash]bool{}}
			held := map[plumbing.Hash][]plumbing.Hash{}
			for _, commit := range strings.Fields(test.history) {
				hash, parents, _ := strings.Cut(commit, ":")
				list, cut := strings.CutSuffix(parents, ".")
				look.shallow[id(hash)] = cut
				held[id(hash)] = nil
				for _, parent := range list {
					held[id(hash)] = append(held[id(hash)], id(string(parent)))
				}
			}
			look.parents = func(hash plumbing.Hash) ([]plumbing.Hash, error) {
				parents, ok := held[hash]
				if !ok {
					return nil, plumbing.ErrObjectNotFound
				}
				return parents, nil
			}
			got, err := look.from(t.Context(), id("1"), id(test.wanted))
			if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got, err := look.from(ctx, id("1"), id(test.wanted)); err == nil || got.is {
				t.Errorf("too late: got %v, %v", got, err)
			}
		})
	}
}

// TestParentsIn reads commits whose parents are not what they should be.
func TestParentsIn(t *testing.T) {
	t.Parallel()
	held := gitbytes.Objects{}
	root := held.Commit(held.Tree())
	signed := "author A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000\n"
	tagged := held.Add(plumbing.TagObject, []byte("object "+root.Hash.String()+"\ntype commit\ntag v1\ntagger A <a@example.com> 1 +0000\n\nv1\n"))
	claims := held.Add(plumbing.CommitObject, []byte("tree "+root.TreeHash.String()+"\n"+signed+"other x\n parent "+ones('a')+"\nparent "+ones('b')+"\n\nparent "+ones('c')+"\n"))
	if got, err := parentsIn(held)(claims); err != nil || len(got) != 0 {
		t.Errorf("what is no parent: got %v, %v", got, err)
	}
	_, err := parentsIn(held)(tagged)
	says(t, err, "a parent that is no commit")
	_, err = parentsIn(held)(root.TreeHash)
	says(t, err, "not a commit")
}
