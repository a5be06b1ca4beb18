package confine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Directories that are nested deeper than a path can be long, or closed, or many, or named
// like what the removal itself makes, are removed all the same.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
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
		os.Chmod(filepath.Join(dir, "a/b"), 0), os.Chmod(filepath.Join(dir, "z"), 0), DeepDirectories(dir),
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

// DeepDirectories makes directories in each other, deeper than a path can be long and
// than there may be files open.
func DeepDirectories(dir string) error {
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	for range 6000 {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			return err
		}
		next, err := unix.Openat(at, "d", unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		if err := unix.Close(at); err != nil {
			return err
		}
		at = next
	}
	return unix.Fchmod(at, 0)
}
