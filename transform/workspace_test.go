package transform

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestWorkspaceReplacesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	stale := filepath.Join(base, "kubesync-example")
	for _, dir := range []string{"INDIR/.git", "OUTDIR", "TMPDIR/deep/readonly"} {
		if err := os.MkdirAll(filepath.Join(stale, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"lock", "INDIR/old", "OUTDIR/old.yaml", "TMPDIR/deep/readonly/file"} {
		if err := os.WriteFile(filepath.Join(stale, name), nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(stale, "lock"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(stale, "TMPDIR/deep/readonly"), 0o500); err != nil {
		t.Fatal(err)
	}
	files := repo{"r": sh("ls -A $INDIR $OUTDIR $TMPDIR > $OUTDIR/list.yaml")}
	tr := newTransform(t, Options{Command: "r", WorkDir: base})
	result, err := tr.Run(t.Context(), files.input("1"))
	if err != nil {
		t.Fatal(err)
	}
	list := contents(t, result.Files)["OUTDIR/list.yaml"]
	if strings.Contains(list, "old") || strings.Contains(list, "deep") || !strings.Contains(list, stale+"/INDIR") {
		t.Errorf("found by CMD:\n%s", list)
	}
}

func TestWorkspaceIsNotShared(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	// A user has put something else there.
	if err := os.WriteFile(filepath.Join(base, "kubesync-a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(base, "kubesync-a.2")); err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	var all []*workspace
	for range 3 {
		w, err := openWorkspace(base, "a")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
		taken[filepath.Base(w.dir)] = true
	}
	for _, name := range []string{"kubesync-a.3", "kubesync-a.4", "kubesync-a.5"} {
		if !taken[name] {
			t.Errorf("%s is not used: %v", name, taken)
		}
	}
	if err := all[1].close(); err != nil {
		t.Fatal(err)
	}
	again, err := openWorkspace(base, "a")
	if err != nil {
		t.Fatal(err)
	}
	if again.dir != all[1].dir {
		t.Errorf("%s, not the free %s", again.dir, all[1].dir)
	}
	for _, w := range []*workspace{all[0], again, all[2]} {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
}

// Processes that come and go at the same time never get hold of the same workspace.
func TestWorkspaceChanges(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				w, err := openWorkspace(base, "a")
				if err != nil {
					t.Error(err)
					return
				}
				mark := filepath.Join(w.dir, "mark")
				if file, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600); err != nil {
					t.Errorf("%s is another owner's too: %v", w.dir, err)
				} else if err := errors.Join(file.Close(), os.Remove(mark)); err != nil {
					t.Error(err)
				}
				if err := w.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWorkspaceNames(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, want := range map[string]string{"a": "kubesync-a", "a/../b c": "kubesync-a-..-b-c", strings.Repeat("x", 300): "kubesync-" + strings.Repeat("x", 100), "ä": "kubesync--"} {
		w, err := openWorkspace(base, name)
		if err != nil {
			t.Fatal(err)
		}
		if w.dir != filepath.Join(base, want) {
			t.Errorf("%q is in %s", name, w.dir)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWorkspaceNowhere(t *testing.T) {
	t.Parallel()
	for _, base := range []string{filepath.Join(t.TempDir(), "missing"), "/proc/self"} {
		_, err := newTransform(t, Options{Command: "true", WorkDir: base}).Run(t.Context(), repo{}.input("1"))
		checkError(t, err, "work tree")
	}
}

// Without CMD nothing is written, so a read-only file system will do.
func TestWorkspaceIsNotNeeded(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, options := range map[string]Options{"no CMD": {}, "missing CMD": {Command: "$INDIR/missing $OUTDIR"}} {
		options.WorkDir = base
		if _, err := newTransform(t, options).Run(t.Context(), repo{"a.yaml": "a", "kustomization.yaml": "resources: [a.yaml]"}.input("1")); err == nil {
			t.Errorf("%s: a is no object", name)
		}
		if _, err := newTransform(t, options).Run(t.Context(), repo{"a.yaml": "a"}.input("1")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("written: %v", left)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]string{
		"12 (sh) S 1 12 12 0":        "12 1",
		"12 (a) b) (c) R 345 12 12":  "12 345",
		"12 (sleep 1) Z 7 0":         "12 7",
		"":                           "",
		"12":                         "",
		"12 (sh":                     "",
		"x (sh) S 1":                 "",
		"12 (sh) S x":                "",
		"12 (new\nline) S 4 1 2 3 4": "12 4",
	} {
		pid, parent, ok := parseStat(stat)
		got := ""
		if ok {
			got = strconv.Itoa(pid) + " " + strconv.Itoa(parent)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", stat, got, want)
		}
	}
}

// Directories that are nested deeper than a path can be long, or closed, or many, or named
// like what the removal itself makes, are removed all the same.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	dir := filepath.Join(t.TempDir(), "d")
	for _, sub := range []string{"a/b/c", "removed-1/x/y", "z/removed-2"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "removed-3"), nil, 0o600), os.WriteFile(outside, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 2*removeBatch + 1 {
		if err := os.WriteFile(filepath.Join(dir, "z", strconv.Itoa(i)), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Symlink(outside, filepath.Join(dir, "a/link")), os.Symlink(filepath.Dir(outside), filepath.Join(dir, "a/dirlink")),
		os.Chmod(filepath.Join(dir, "a/b"), 0), os.Chmod(filepath.Join(dir, "z"), 0), deepDirectories(dir),
	); err != nil {
		t.Fatal(err)
	}
	if err := removeAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
	for name, is := range map[string]string{"missing": dir, "a file": outside} {
		if err := removeAll(is); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Another repository's CMD can change the mode of the workspace, which heals.
func TestWorkspaceIsOpenedAgain(t *testing.T) {
	t.Parallel()
	files := repo{"r": sh("chmod 0 $INDIR/.. $INDIR $OUTDIR $TMPDIR; exit 0")}
	tr := newTransform(t, Options{Command: "r", Sandbox: SandboxOff})
	_, _ = tr.Run(t.Context(), files.input("1")) // as root it even works
	files = repo{"r": sh("ls -ld $INDIR/.. | cut -c1-10 > $OUTDIR/a.yaml")}
	result, err := tr.Run(t.Context(), files.input("2"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": "drwx------"})
}
