package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

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
	var all []*Workspace
	for range 3 {
		w, err := Open(base, "a")
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
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(base, "a")
	if err != nil {
		t.Fatal(err)
	}
	if again.dir != all[1].dir {
		t.Errorf("%s, not the free %s", again.dir, all[1].dir)
	}
	for _, w := range []*Workspace{all[0], again, all[2]} {
		if err := w.Close(); err != nil {
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
				w, err := Open(base, "a")
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
				if err := w.Close(); err != nil {
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
		w, err := Open(base, name)
		if err != nil {
			t.Fatal(err)
		}
		if w.dir != filepath.Join(base, want) {
			t.Errorf("%q is in %s", name, w.dir)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFindBase names the variable that says where, or that there is none. It changes
// the environment, so no other test runs beside it.
func TestFindBase(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	_, err := findBase("")
	if want := "TMPDIR (" + missing + ") does not exist"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	_, err = findBase("")
	if want := "TMPDIR (" + file + ") is not a directory"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	t.Setenv("TMPDIR", "")
	if got, err := findBase(""); err != nil || got == "" {
		t.Errorf("got %q, %v", got, err)
	}
}
