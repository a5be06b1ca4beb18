package repo

import (
	"errors"
	"fmt"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inventory describes every file below a directory: what it is, when it was
// changed and what is in it.
func inventory(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestLocalIsNeverWritten compares a repository before and after it was used in
// every way there is.
func TestLocalIsNeverWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "v1.0.0")
	s.commit("two", file("2"))
	linked := filepath.Join(t.TempDir(), "linked")
	s.git("worktree", "add", "--quiet", "--detach", linked, one)
	for _, dir := range []string{s.Work, s.Bare, linked} {
		before := inventory(t, dir)
		for _, version := range []string{"", "branch:master", "commit:" + one, "commit:" + one[:7], "tag:v1.0.0", "tag:latest", "semver:*", "worktree"} {
			r := open(t, "file://"+dir, version)
			rev := resolve(t, r)
			if err := r.Checkout(t.Context(), rev, t.TempDir()); err != nil {
				t.Fatal(err)
			}
			resolve(t, r)
		}
		resolveFails(t, open(t, "file://"+dir, "branch:no"), "no branch no")
		if after := inventory(t, dir); after != before {
			t.Errorf("%s was changed:\n%s\nnow\n%s", dir, before, after)
		}
	}
}

// TestLocalShapes are the forms a repository on disk can have.
func TestLocalShapes(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	one := s.commit("one", file("1"))
	s.tag(true, "v1.0.0")
	two := s.commit("two", file("2"))
	for name, test := range map[string]struct {
		make func(dir string) // dir does not exist
		id   string
		ref  string
		text string
	}{
		"linked work tree": {func(dir string) { s.git("worktree", "add", "--quiet", "--detach", dir, one) }, two, "refs/heads/master", "2"},
		"all packed": {func(dir string) {
			gitIn(t, s.Work, "clone", "--quiet", "--bare", s.Bare, dir)
			gitIn(t, dir, "gc", "--quiet")
			gitIn(t, dir, "pack-refs", "--all")
		}, two, "refs/heads/master", "2"},
		"cut off": {func(dir string) {
			gitIn(t, s.Work, "clone", "--quiet", "--depth=1", "file://"+s.Bare, dir)
		}, two, "refs/heads/master", "2"},
		"one branch, another name": {func(dir string) {
			gitIn(t, s.Work, "clone", "--quiet", s.Bare, dir)
			gitIn(t, dir, "checkout", "--quiet", "-b", "work", "v1.0.0")
			gitIn(t, dir, "branch", "--quiet", "-D", "master")
		}, one, "refs/heads/work", "1"},
		"HEAD on no branch": {func(dir string) {
			gitIn(t, s.Work, "clone", "--quiet", s.Bare, dir)
			gitIn(t, dir, "checkout", "--quiet", "--detach", "v1.0.0")
			gitIn(t, dir, "branch", "--quiet", "-D", "master")
		}, one, "HEAD", "1"},
		"odd but good configuration": {func(dir string) {
			gitIn(t, s.Work, "clone", "--quiet", s.Bare, dir)
			config := "[core]\n\tbare = false\n[alias]\n\tx = !f() { \\\n\t echo; }\n[a \"b\\\"c\"]\n\tnovalue\n"
			if err := os.WriteFile(filepath.Join(dir, ".git", "config"), []byte(config), 0o644); err != nil {
				t.Error(err)
			}
		}, two, "refs/heads/master", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			test.make(dir)
			r := open(t, "file://"+dir, "")
			want(t, r, resolve(t, r), test.id, test.ref, test.text)
			if err := r.Checkout(t.Context(), r.current.revision, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLocalRefuses(t *testing.T) {
	t.Parallel()
	plain := t.TempDir()
	for name, test := range map[string]struct {
		dir  string
		says []string
	}{
		"missing":         {filepath.Join(plain, "missing"), []string{"no such file", "is the path right, and mounted"}},
		"no git":          {plain, []string{"is no git repository", "worktree"}},
		"sha256":          {initIn(t, "--object-format=sha256"), []string{"named by sha256", "sha1"}},
		"reftable":        {reftable(t), []string{"stored as reftable", "git refs migrate"}},
		"dangling":        {dangling(t), []string{"no such file"}},
		"bad .git":        {badPointer(t), []string{"does not hold the path"}},
		"borrows objects": {borrower(t), []string{"objects/info/alternates", "git repack -a -d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resolveFails(t, open(t, "file://"+test.dir, ""), append(test.says, "file://")...)
		})
	}
}

func initIn(t *testing.T, args ...string) string {
	dir := t.TempDir()
	gitIn(t, dir, append([]string{"init", "--quiet"}, args...)...)
	return dir
}

// reftable is what a repository of that kind looks like to those who know of
// none: this machine's git may be too old to make one.
func reftable(t *testing.T) string {
	dir := initIn(t)
	gitIn(t, dir, "config", "core.repositoryformatversion", "1")
	gitIn(t, dir, "config", "extensions.refStorage", "reftable")
	return dir
}

func dangling(t *testing.T) string {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ".git"), "gitdir: ../nowhere\n")
	writeFile(t, filepath.Join(dir, "HEAD"), "")
	if err := os.Mkdir(filepath.Join(dir, "..", "nowhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "..", "nowhere", "HEAD"), "ref: refs/heads/master\n")
	writeFile(t, filepath.Join(dir, "..", "nowhere", "commondir"), "gone\n")
	return dir
}

func badPointer(t *testing.T) string {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ".git"), "nonsense\n")
	return dir
}

func borrower(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "dir")
	gitIn(t, t.TempDir(), "clone", "--quiet", "--shared", initIn(t), dir)
	return dir
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLocalRepacked packs a repository anew while an FS over it is in use.
func TestLocalRepacked(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	big := gitbytes.Noise(100_000)
	s.commit("one", map[string]string{"dir/file": "1", "big": big})
	r := open(t, "file://"+s.Bare, "")
	rev := resolve(t, r)
	fsys, err := r.Files(t.Context(), rev)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		gitIn(t, s.Bare, "repack", "-a", "-d", "--quiet")
		b, err := fs.ReadFile(fsys, "big")
		if err != nil || string(b) != big {
			t.Fatalf("after packing anew: %v", err)
		}
		s.commit(fmt.Sprint(i), map[string]string{"dir/file": fmt.Sprint(i), "big": big})
	}
	want(t, r, resolve(t, r), s.git("rev-parse", "HEAD"), "refs/heads/master", "2")
}

func TestWorktree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "dir", "file"), "1")
	writeFile(t, filepath.Join(dir, "same"), "same")
	writeFile(t, filepath.Join(dir, ".git", "config"), "not taken")
	writeFile(t, filepath.Join(dir, "vendor", ".git"), "not taken")
	writeFile(t, filepath.Join(dir, ".hidden"), "taken")
	if err := os.Chmod(filepath.Join(dir, "same"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := open(t, "file://"+dir, "worktree")
	one := resolve(t, r)
	if !strings.HasPrefix(one.ID, "worktree-") || len(one.ID) != len("worktree-")+40 {
		t.Errorf("ID is %s", one.ID)
	}
	fsys, err := r.Files(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if got := listing(t, fsys); got != ".hidden - 644\ndir d 755\ndir/file - 644\nlink L 777\nsame - 755\n" {
		t.Errorf("got files\n%s", got)
	}
	if again := resolve(t, r); again.ID != one.ID {
		t.Error("the same files are another revision")
	}
	out := t.TempDir()
	if err := r.Checkout(t.Context(), one, out); err != nil {
		t.Fatal(err)
	}
	if tree := gitIn(t, out, "rev-parse", "HEAD^{tree}"); "worktree-"+tree != one.ID {
		t.Errorf("the ID %s is not what git makes of the files, %s", one.ID, tree)
	}
	if status := gitIn(t, out, "status", "--porcelain"); status != "" {
		t.Errorf("git status says %s", status)
	}

	writeFile(t, filepath.Join(dir, "dir", "file"), "22")
	_, err = fs.ReadFile(fsys, "dir/file")
	says(t, err, "changed while it was being used")
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, err = fs.ReadFile(fsys, "link")
	says(t, err, "changed while it was being used")
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("a file that went is taken for one that the revision does not have")
	}
	two := resolve(t, r)
	want(t, r, two, two.ID, "", "22")
	if two.ID == one.ID {
		t.Error("other files are the same revision")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	resolveFails(t, r, "no such file", "is the path right")
}
