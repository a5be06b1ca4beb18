package repo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/refs"
)

// manyRefs makes a bare repository with a branch master, and so many branches and as
// many tags, light ones and annotated ones, that were all packed by git.
func manyRefs(t testing.TB, number int) string {
	t.Helper()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "annotated")
	tag := s.git("rev-parse", "refs/tags/annotated")
	gitIn(t, s.Bare, "pack-refs", "--all")
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range number {
		fmt.Fprintf(&packed, "%s refs/heads/branch-%06d\n", one, i)
	}
	fmt.Fprintf(&packed, "%s refs/heads/master\n", one)
	for i := range number / 2 {
		fmt.Fprintf(&packed, "%s refs/tags/a-%06d\n^%s\n%s refs/tags/b-%06d\n", tag, i, one, one, i)
	}
	writeFile(t, filepath.Join(s.Bare, "packed-refs"), packed.String())
	return s.Bare
}

// BenchmarkLocalRefs polls a repository on disk with as many refs as its name says.
func BenchmarkLocalRefs(b *testing.B) {
	for _, number := range []int{1000, 16_000, 100_000} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			r := open(b, "file://"+manyRefs(b, number/2), "branch:master")
			b.ReportAllocs()
			for b.Loop() {
				resolve(b, r)
			}
		})
	}
}

// TestLocalRefsCost counts allocations, which reading a file for each ref in it takes
// with the square of their number. It is not for other tests to run beside.
func TestLocalRefsCost(t *testing.T) {
	cost := func(number int) float64 {
		l := openedLocal(t, manyRefs(t, number))
		return testing.AllocsPerRun(1, func() {
			if _, err := l.Refs(t.Context(), refs.Scope{}); err != nil {
				t.Error(err)
			}
		})
	}
	if few, many := cost(200), cost(3200); many > 20*few {
		t.Errorf("%.0f allocations for 400 refs, %.0f for 16 times as many", few, many)
	}
}

func openedLocal(t testing.TB, dir string) *local {
	t.Helper()
	r := open(t, "file://"+dir, "")
	l, err := openLocal(dir, r.options.Limits)
	must(t, err)
	return l
}

// TestLocalRefs compares what is read of a repository's files with what git reads.
func TestLocalRefs(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(false, "light")
	s.tag(true, "annotated")
	s.git("tag", "--annotate", "--message", "of a tag", "nested", "annotated")
	s.git("tag", "tree", "HEAD^{tree}")
	s.git("push", "--quiet", "origin", "--tags", "HEAD:refs/heads/a/b/c", "HEAD:refs/pull/1/head")
	gitIn(t, s.Bare, "pack-refs", "--all")
	two := s.commit("two", file("2")) // not packed, and goes before what is
	s.tag(true, "later")
	s.git("push", "--quiet", "origin", "HEAD:refs/heads/own", "HEAD:refs/heads/b\xffd", ":refs/heads/a/b/c", "HEAD:refs/heads/a")
	gitIn(t, s.Bare, "symbolic-ref", "refs/heads/link", "refs/heads/link-too")
	gitIn(t, s.Bare, "symbolic-ref", "refs/heads/link-too", "refs/pull/1/head")
	gitIn(t, s.Bare, "symbolic-ref", "refs/heads/loose-link", "refs/other/x")
	gitIn(t, s.Bare, "update-ref", "refs/other/x", one)
	gitIn(t, s.Bare, "symbolic-ref", "refs/heads/dangles", "refs/heads/nothing")
	writeFile(t, filepath.Join(s.Bare, "refs", "heads", "master.lock"), "")
	writeFile(t, filepath.Join(s.Bare, "refs", "heads", ".DS_Store"), "\x00\x01")
	writeFile(t, filepath.Join(s.Bare, "refs", "heads", "sp ace"), "no ref")
	must(t, os.Symlink(t.TempDir(), filepath.Join(s.Bare, "refs", "heads", "elsewhere")))

	check := func(t *testing.T) {
		t.Helper()
		got, err := openedLocal(t, s.Bare).Refs(t.Context(), refs.Scope{})
		must(t, err)
		var lines []string
		for name, hash := range got.Branches {
			lines = append(lines, fmt.Sprintf("refs/heads/%s %s", name, hash))
		}
		for name, tag := range got.Tags {
			lines = append(lines, fmt.Sprintf("refs/tags/%s %s %s", name, tag.Tip, tag.Commit))
		}
		sort.Strings(lines)
		wants := []string{}
		for _, line := range strings.Split(gitIn(t, s.Bare, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", "refs/heads", "refs/tags"), "\n") {
			if strings.HasPrefix(line, "warning:") {
				continue
			}
			fields := strings.Fields(line)
			if fields[0] == "refs/tags/nested" {
				fields[2] = one // older ones of git peel but once
			}
			if strings.HasPrefix(line, "refs/tags/") && len(fields) == 2 {
				fields = append(fields, fields[1])
			}
			wants = append(wants, strings.Join(fields, " "))
		}
		sort.Strings(wants)
		if strings.Join(lines, "\n") != strings.Join(wants, "\n") {
			t.Errorf("got\n%s\nand git finds\n%s", strings.Join(lines, "\n"), strings.Join(wants, "\n"))
		}
		if got.Branches["master"].String() != two || got.Head != "master" || got.HeadCommit.String() != two || got.Branches["link"].String() != one {
			t.Errorf("got %+v", got)
		}
	}
	check(t)
	gitIn(t, s.Bare, "pack-refs", "--all")
	check(t)
	path := filepath.Join(s.Bare, "packed-refs")
	packed, err := os.ReadFile(path)
	must(t, err)
	var without strings.Builder // as some write it: tags do not say what they lead to
	for line := range strings.Lines(string(packed)) {
		if line[0] != '^' && line[0] != '#' {
			without.WriteString(line)
		}
	}
	must(t, os.Chmod(path, 0o644))
	writeFile(t, path, without.String())
	check(t)
}

// TestLocalRefsRefused has refs that git does not write, and too many.
func TestLocalRefsRefused(t *testing.T) {
	t.Parallel()
	fewRefs := map[limits.Limit]int64{limits.Refs: 4 << 10}
	for name, test := range map[string]struct {
		make   func(bare string)
		change map[limits.Limit]int64
		says   []string
	}{
		"an empty file":     {func(bare string) { writeFile(t, filepath.Join(bare, "refs", "heads", "x"), "") }, nil, []string{"refs/heads/x is damaged", "git fsck"}},
		"half a hash":       {func(bare string) { writeFile(t, filepath.Join(bare, "refs", "heads", "x"), "0123\n") }, nil, []string{"refs/heads/x is damaged", "0123"}},
		"an endless file":   {func(bare string) { must(t, os.Symlink("/dev/zero", filepath.Join(bare, "refs", "heads", "x"))) }, nil, []string{"refs/heads/x is damaged"}},
		"a pipe":            {func(bare string) { must(t, syscall.Mkfifo(filepath.Join(bare, "refs", "heads", "x"), 0o600)) }, nil, []string{"refs/heads/x is damaged"}},
		"a link to nothing": {func(bare string) { writeFile(t, filepath.Join(bare, "refs", "heads", "x"), "ref: \n") }, nil, []string{"refs/heads/x is damaged"}},
		"a link to itself":  {func(bare string) { writeFile(t, filepath.Join(bare, "refs", "heads", "x"), "ref: refs/heads/x\n") }, nil, []string{"refs/heads/x: it is a link to a link"}},
		"packed badly":      {func(bare string) { writeFile(t, filepath.Join(bare, "packed-refs"), "x\x1b[2J\n") }, nil, []string{"packed-refs: it is damaged at"}},
		"too much packed": {func(bare string) {
			writeFile(t, filepath.Join(bare, "packed-refs"), strings.Repeat("# more\n", 1000))
		}, fewRefs, []string{tooManyRefs, `the limit "refs"`}},
		"too many files": {func(bare string) {
			for i := range 100 {
				writeFile(t, filepath.Join(bare, "refs", "heads", "x", fmt.Sprint(i)), hash)
			}
		}, fewRefs, []string{tooManyRefs, `the limit "refs"`}},
		"too deep": {func(bare string) {
			writeFile(t, filepath.Join(bare, "refs", "tags", strings.Repeat("x/", 20), "y"), hash)
		}, map[limits.Limit]int64{limits.Depth: 10}, []string{"too deep", `the limit "depth"`}},
		"cut off badly":  {func(bare string) { writeFile(t, filepath.Join(bare, "shallow"), "x\n") }, nil, []string{"shallow: it is damaged"}},
		"cut off widely": {func(bare string) { writeFile(t, filepath.Join(bare, "shallow"), strings.Repeat(hash+"\n", 200)) }, fewRefs, []string{`the limit "refs"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, t.TempDir(), "master")
			s.commit("one", file("1"))
			s.tag(false, "v1")
			test.make(s.Bare)
			resolveFails(t, open(t, "file://"+s.Bare, "tag:latest", limited(test.change)), test.says...)
		})
	}
}

// TestLocalLinkOutside has a branch that is said to be a file elsewhere: none is read.
func TestLocalLinkOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	writeFile(t, filepath.Join(s.Bare, "..", "outside"), one)
	for _, to := range []string{"refs/../../outside", "../outside", "/etc/hostname", "refs/heads"} {
		writeFile(t, filepath.Join(s.Bare, "refs", "heads", "x"), "ref: "+to+"\n")
		resolveFails(t, open(t, "file://"+s.Bare, "branch:x"), "no branch x")
	}
}

// TestPackedRefs reads what a tag is said to lead to.
func TestPackedRefs(t *testing.T) {
	t.Parallel()
	a, b := ones('a'), ones('b')
	for name, test := range map[string]struct {
		content string
		want    string // each ref's hash and what it leads to by their first digits
	}{
		"nothing":            {"", ""},
		"all is said":        {"# pack-refs with: peeled fully-peeled sorted \n" + a + " refs/tags/v\n^" + b + "\n" + b + " refs/tags/w\n", "ab bb"},
		"tags are":           {"# pack-refs with: peeled\n" + a + " refs/tags/v\n^" + b + "\n" + b + " refs/tags/w\n", "ab bb"},
		"nothing is":         {"# pack-refs with: sorted\n" + a + " refs/tags/v\n" + b + " refs/tags/w\n", "a0 b0"},
		"without a header":   {a + " refs/tags/v\n^" + b + "\n\n# more\n" + b + " refs/tags/w", "ab b0"},
		"lines of Windows":   {a + " refs/tags/v\r\n^" + b + "\r\n", "ab"},
		"a hint for nothing": {"^" + a + "\n", "error"},
		"a broken hint":      {a + " refs/tags/v\n^x\n", "error"},
		"no name":            {a + " \n", "error"},
		"two names":          {a + " refs/heads/x y\n", "error"},
		"an escape":          {a + " refs/heads/\x1b\n", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed := packedRefs{rest: test.content}
			var got []string
			for {
				_, ref, err := packed.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					got = []string{"error"}
					break
				}
				got = append(got, ref.hash.String()[:1]+ref.peeled.String()[:1])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
