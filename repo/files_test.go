package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

// listing shows a file system: path, type, permissions.
func listing(t testing.TB, fsys fs.FS) string {
	t.Helper()
	var out strings.Builder
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		kind := "-"
		switch {
		case d.IsDir():
			kind = "d"
		case d.Type() == fs.ModeSymlink:
			kind = "L"
		}
		fmt.Fprintf(&out, "%s %s %o\n", path, kind, info.Mode().Perm())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// linked is a site with symlinks of all sorts, and its FS.
func linked(t *testing.T) (site, *Repo, fs.FS) {
	t.Helper()
	s := newSite(t, t.TempDir(), "master")
	writeFile(t, filepath.Join(s.Work, "a.b", "x"), "ab")
	writeFile(t, filepath.Join(s.Work, "a", "x"), "a")
	writeFile(t, filepath.Join(s.Work, "a", "deep", "y"), "y")
	writeFile(t, filepath.Join(s.Work, "run"), "#!/bin/sh\n")
	writeFile(t, filepath.Join(s.Work, "big"), gitbytes.Noise(100_000))
	if err := os.Chmod(filepath.Join(s.Work, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"a/deep/up": "../x", "dirlink": "a/deep", "chain": "dirlink/up", "self": "self", "out": "../outside", "abs": "/etc/passwd",
		"a/out": "../../x", "dangling": "nowhere", "round1": "round2", "round2": "round1", "viafile": "run/x", "a/root": "..",
	} {
		if err := os.Symlink(target, filepath.Join(s.Work, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.CommitWork("links"); err != nil {
		t.Fatal(err)
	}
	r := open(t, "file://"+s.Bare, "")
	fsys, err := r.Files(t.Context(), resolve(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return s, r, fsys
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	s.commit("one", map[string]string{"a/b/c": "1", "a.b": "2", "a/d": "", "x": "#!/bin/sh\n", "z/big": gitbytes.Noise(300_000)})
	for _, r := range []*Repo{open(t, "file://"+s.Bare, ""), open(t, "file://"+s.Work, "worktree")} {
		fsys, err := r.Files(t.Context(), resolve(t, r))
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(fsys, "a/b/c", "a.b", "a/d", "x", "z/big"); err != nil {
			t.Error(err)
		}
		if got := listing(t, fsys); got != "a d 755\na/b d 755\na/b/c - 644\na/d - 644\na.b - 644\nx - 755\nz d 755\nz/big - 644\n" {
			t.Errorf("got\n%s", got)
		}
	}
}

func TestFilesHash(t *testing.T) {
	t.Parallel()
	s, _, fsys := linked(t)
	for _, path := range []string{".", "a", "a/x", "run", "chain"} {
		object := "HEAD:" + path
		if path == "." {
			object = "HEAD^{tree}"
		}
		info, err := fs.Lstat(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.(interface{ Hash() string }).Hash(); got != s.git("rev-parse", object) {
			t.Errorf("%s: got %s", path, got)
		}
	}
	entries, err := fs.ReadDir(fsys, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if got := info.(interface{ Hash() string }).Hash(); got != s.git("rev-parse", "HEAD:a/"+e.Name()) {
			t.Errorf("%s: got %s", e, got)
		}
	}
}

func TestFilesSymlinks(t *testing.T) {
	t.Parallel()
	_, _, fsys := linked(t)
	for path, want := range map[string]string{
		"a/deep/up": "a", "chain": "a", "dirlink/y": "y", "a/root/a/deep/y": "y", "a/root/a/root/run": "#!/bin/sh\n",
	} {
		if got, err := fs.ReadFile(fsys, path); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]string{
		"out": "outside the repository", "abs": "outside the repository", "a/out": "outside the repository", "a/root/out": "outside the repository",
		"self": "circle", "round1": "circle", "dangling": "not exist", "viafile": "not exist", "run/x": "not exist", "nowhere": "not exist",
		"../x": "invalid", "/x": "invalid", "a/../x": "invalid", "": "invalid",
	} {
		_, err := fs.ReadFile(fsys, path)
		says(t, err, want)
		_, err = fs.Stat(fsys, path)
		says(t, err, want)
		var pathError *fs.PathError
		if !errors.As(err, &pathError) || pathError.Path != path {
			t.Errorf("%s: %v is no PathError", path, err)
		}
	}
	for path, want := range map[string]string{"abs": "/etc/passwd", "chain": "dirlink/up", "dirlink/up": "../x"} {
		info, err := fs.Lstat(fsys, path)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s: %v", path, err)
		}
		if got, err := fs.ReadLink(fsys, path); err != nil || got != want {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	if _, err := fs.ReadLink(fsys, "run"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("of a file: %v", err)
	}
	if info, err := fs.Stat(fsys, "dirlink"); err != nil || !info.IsDir() || info.Name() != "dirlink" {
		t.Errorf("dirlink: %v", err)
	}
	if list, err := fs.ReadDir(fsys, "dirlink"); err != nil || len(list) != 2 {
		t.Errorf("dirlink: got %v, %v", list, err)
	}
	_, err := fs.ReadDir(fsys, "run")
	says(t, err, "not a directory")
	_, err = fs.ReadFile(fsys, "a")
	says(t, err, "is a directory")
}

func TestFilesSubmodule(t *testing.T) {
	t.Parallel()
	other := newSite(t, t.TempDir(), "master")
	commit := other.commit("one", file("1"))
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		s.git("submodule", "--quiet", "add", other.Bare, "sub/module")
		if _, err := s.CommitWork("with a submodule"); err != nil {
			t.Fatal(err)
		}
		r := open(t, url, "", how)
		rev := resolve(t, r)
		fsys, err := r.Files(t.Context(), rev)
		if err != nil {
			t.Fatal(err)
		}
		info, err := fs.Stat(fsys, "sub/module")
		if err != nil || !info.IsDir() || info.Mode()&fs.ModeIrregular == 0 {
			t.Errorf("got %v, %v", info, err)
		}
		for path, read := range map[string]func(fs.FS, string) error{
			"sub/module":          func(f fs.FS, path string) error { _, err := fs.ReadDir(f, path); return err },
			"sub/module/":         func(f fs.FS, path string) error { _, err := f.Open(path[:10]); return err },
			"sub/module/dir/file": func(f fs.FS, path string) error { _, err := fs.ReadFile(f, path); return err },
			"sub/module/dir":      func(f fs.FS, path string) error { _, err := fs.Stat(f, path); return err },
		} {
			says(t, read(fsys, path), "sub/module", "is a submodule (at commit "+commit, "not followed")
		}
		dir := t.TempDir()
		if err := r.Checkout(t.Context(), rev, dir); err != nil {
			t.Fatal(err)
		}
		if status := gitIn(t, dir, "status", "--porcelain"); status != "" {
			t.Errorf("git status says %s", status)
		}
	})
}

func TestFilesConcurrently(t *testing.T) {
	t.Parallel()
	_, local, _ := linked(t)
	s := newSite(t, t.TempDir(), "master")
	s.commit("one", map[string]string{"a/x": "a", "a/deep/y": "y", "big": gitbytes.Noise(100_000)})
	packed := open(t, (&upstream{dir: s.Bare}).start(t), "")
	resolve(t, packed)
	for _, r := range []*Repo{local, packed} {
		fsys, err := r.Files(t.Context(), r.current.revision)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 20 {
					if b, err := fs.ReadFile(fsys, "big"); err != nil || len(b) != 100_000 {
						t.Error(err)
					}
					if _, err := fs.Stat(fsys, "a/x"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
}

// hostile are trees that try to get out of where they are written to.
func hostile(t *testing.T, outside string) map[string]*snapshot {
	t.Helper()
	out := map[string]*snapshot{}
	for name, names := range map[string][2]string{
		"dot dot": {"..", "owned"}, "dot": {".", "owned"}, "git": {".git", "config"}, "Git": {".GiT", "config"}, "slash": {"a/../../owned", "x"},
		"absolute": {outside, "owned"}, "short for git": {"GIT~1", "config"}, "git to Windows": {".git . ", "config"}, "a stream": {".git::$INDEX_ALLOCATION", "config"}, "git to HFS": {".g\u200cit", "config"}, "link and directory": {"twice", "owned"},
	} {
		f := gitbytes.Objects{}
		blob := f.Add(plumbing.BlobObject, []byte("owned"))
		dir := f.Tree(object.TreeEntry{Name: names[1], Mode: filemode.Regular, Hash: blob})
		entries := []object.TreeEntry{{Name: names[0], Mode: filemode.Dir, Hash: dir}}
		if name == "link and directory" {
			link := f.Add(plumbing.BlobObject, []byte(outside))
			entries = append([]object.TreeEntry{{Name: names[0], Mode: filemode.Symlink, Hash: link}}, entries...)
		}
		commit := f.Commit(f.Tree(entries...))
		out[name] = &snapshot{revision: Revision{ID: commit.Hash.String()}, commit: commit, objects: f}
	}
	return out
}

func TestHostileTrees(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for name, s := range hostile(t, outside) {
		t.Run(name, func(t *testing.T) {
			fsys := &files{from: s.objects, root: s.commit.TreeHash}
			err := fs.WalkDir(fsys, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
			says(t, err, "tree "+s.commit.TreeHash.String())
			if err := pack.CheckWhole(t.Context(), s.objects, s.commit); err == nil {
				t.Error("it would be taken from a server")
			}
			base := t.TempDir()
			r := open(t, "file:///x", "")
			r.current = s
			dir := filepath.Join(base, "checkout")
			says(t, r.Checkout(t.Context(), s.revision, dir), "check out")
			// Past that check, too.
			s.packed = new(pack.Pack)
			root, err := openRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if err := (&restorer{root: root}).dir(t.Context(), ".", wantedTree(s.objects, s.commit.TreeHash)); err == nil {
				t.Error("it would be written")
			}
			found, err := os.ReadDir(base)
			if err != nil || len(found) != 1 {
				t.Errorf("beside the checkout there is %v, %v", found, err)
			}
		})
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
		t.Errorf("outside there is %v, %v", found, err)
	}
}

// TestUnusualTrees reads trees that git itself would not write or that some file systems
// cannot hold: all names that differ in a byte are different files, in whatever order.
func TestUnusualTrees(t *testing.T) {
	t.Parallel()
	const latin = "caf\xe9"
	f := gitbytes.Objects{}
	file := func(name, content string) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: f.Add(plumbing.BlobObject, []byte(content))}
	}
	below := f.Tree(file("z", "sz"), file("a", "sa"))
	commit := f.Commit(f.Tree(
		file("z", "z"), object.TreeEntry{Name: "sub", Mode: filemode.Dir, Hash: below}, file("a.yaml", "small"), file("A.yaml", "large"),
		object.TreeEntry{Name: "SUB", Mode: filemode.Dir, Hash: below}, file(latin, "no UTF-8"), file("\x1b[2J\n", "escape"),
	))
	want := map[string]string{
		"z": "z", "sub/z": "sz", "sub/a": "sa", "SUB/z": "sz", "SUB/a": "sa", "a.yaml": "small", "A.yaml": "large", latin: "no UTF-8", "\x1b[2J\n": "escape",
	}
	must(t, pack.CheckWhole(t.Context(), f, commit))

	fsys := &files{from: f, root: commit.TreeHash}
	listed := map[string]string{}
	must(t, fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		if path == latin {
			says(t, err, "invalid") // what is no UTF-8 is no path to fs.FS
			content, err = []byte(want[latin]), nil
		}
		listed[path] = string(content)
		return err
	}))
	if !maps.Equal(listed, want) {
		t.Errorf("listed %q, want %q", listed, want)
	}

	dir := filepath.Join(t.TempDir(), "checkout")
	root, err := openRoot(dir)
	must(t, err)
	defer func() { _ = root.Close() }()
	must(t, (&restorer{root: root}).dir(t.Context(), ".", wantedTree(f, commit.TreeHash)))
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%q holds %q, %v; want %q", name, got, err, content)
		}
	}
}
