package transform

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kubesync/kubesync/transform/confine"
)

// TestMain lets the test binary be the helpers, as kubesync's binary is.
func TestMain(m *testing.M) {
	if code, ran := confine.Main(os.Args, Helpers()); ran {
		// Not os.Exit, which with -cover prints a warning that would count as CMD's.
		syscall.Exit(code)
	}
	os.Exit(m.Run())
}

// repo is a revision's files: path to content. A content that starts with "#!" makes
// an executable, one that starts with "-> " a symbolic link.
type repo map[string]string

func (r repo) fs() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range r {
		file := &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			file.Data, file.Mode = []byte(target), fs.ModeSymlink|0o777
		} else if strings.HasPrefix(text, "#!") {
			file.Mode = 0o755
		}
		files[name] = file
	}
	return files
}

// checkout writes the files as git would, and makes a git repository of them.
func (r repo) checkout(ctx context.Context, dir string) error {
	_ = os.Chmod(dir, 0o700) // CMD may have closed it
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, file := range r.fs() {
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		var err error
		if file.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(file.Data), target)
		} else {
			err = os.WriteFile(target, file.Data, file.Mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	git := exec.CommandContext(ctx, "git", "init", "-q", dir)
	git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	return git.Run()
}

func (r repo) input(revision string) Input {
	return Input{Revision: revision, Files: r.fs(), Checkout: r.checkout}
}

// testPath is a PATH without the directories of this machine's users.
const testPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// newTransform makes a Transform that cleans up after itself.
func newTransform(t *testing.T, options Options) *Transform {
	t.Helper()
	if options.RepoName == "" {
		options.RepoName = "example"
	}
	if options.WorkDir == "" {
		options.WorkDir = t.TempDir()
	}
	if options.Environ == nil {
		options.Environ = []string{"PATH=" + testPath}
	}
	if options.Timeout == 0 {
		options.Timeout = 2 * time.Minute
	}
	made, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return made
}

// contents reads all files of a result.
func contents(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatalf("read the result: %v", err)
	}
	return all
}
