package transform

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/transform/confine"
)

// lockFile is the file by which CMD's directory belongs to a process.
const lockFile = "lock"

// where prints the mode of CMD's directories.
var where = repo{"r": sh(`test -r r
echo work > $TMPDIR/file
for dir in .. . ../OUTDIR ../TMPDIR; do stat -c %a $INDIR/$dir; done | tr '\n' ' ' > $OUTDIR/modes.yaml`)}

// runWhere runs CMD and compares what it finds with the first run.
func runWhere(t *testing.T, tr *Transform, revision string) {
	t.Helper()
	result, err := tr.Run(t.Context(), where.input(revision))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/modes.yaml": "700 755 700 700 "})
}

// TestCleaned removes what those who tidy up temporary files remove between two runs:
// the next one makes it again, as it was.
func TestCleaned(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"everything": ".", "the lock": lockFile, "INDIR": confine.InDir, "OUTDIR": confine.OutDir, "TMPDIR": confine.TmpDir,
		"a file in INDIR": confine.InDir + "/r", "what git knows": confine.InDir + "/.git",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			var log bytes.Buffer
			tr := newTransform(t, Options{Command: "r", WorkDir: base, Log: zerolog.New(&log)})
			runWhere(t, tr, "1")
			if err := os.RemoveAll(filepath.Join(base, "kubesync-example", path)); err != nil {
				t.Fatal(err)
			}
			runWhere(t, tr, "1")
			runWhere(t, tr, "2")
			if left, err := os.ReadDir(base); err != nil || len(left) != 1 || left[0].Name() != "kubesync-example" {
				t.Errorf("there are %v, %v", left, err)
			}
			lost := path == "." || path == lockFile
			if said := strings.Count(log.String(), "it is made again"); lost != (said == 1) {
				t.Errorf("said %d times: %s", said, log.String())
			}
			other, err := confine.Open(base, "example")
			if err != nil {
				t.Fatal(err)
			}
			if other.Dir() == tr.workspace.Dir() {
				t.Error("another process can have it too")
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCleanedAndTaken has others put something in the place of what was removed. It is
// neither used nor changed.
func TestCleanedAndTaken(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(t *testing.T, dir, victim string){
		"a link": func(t *testing.T, dir, victim string) {
			if err := os.Symlink(victim, dir); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(dir, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a directory of another writer": func(t *testing.T, dir, _ string) {
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 {
				if err := os.Chown(dir, 12345, 12345); err != nil {
					t.Fatal(err)
				}
			}
		},
		"another process": func(t *testing.T, dir, _ string) {
			w, err := confine.Open(filepath.Dir(dir), "example")
			if err != nil || w.Dir() != dir {
				t.Fatalf("got %v, %v", w, err)
			}
			t.Cleanup(func() { _ = w.Close() })
			if err := os.Mkdir(w.Path(confine.InDir), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, victim := t.TempDir(), t.TempDir()
			for _, name := range []string{confine.InDir, confine.OutDir, confine.TmpDir, lockFile} {
				if err := os.WriteFile(filepath.Join(victim, name), []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tr := newTransform(t, Options{Command: "r", WorkDir: base})
			runWhere(t, tr, "1")
			dir := filepath.Join(base, "kubesync-example")
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			take(t, dir, victim)
			before := describe(t, base) + describe(t, victim)
			if name == "a directory of another writer" && os.Geteuid() != 0 {
				return // of our own user, and free: taken, as what a crash left
			}
			runWhere(t, tr, "2")
			if tr.workspace.Dir() != dir+".2" {
				t.Errorf("it works in %s", tr.workspace.Dir())
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
			if after := describe(t, base) + describe(t, victim); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// TestClosedAfterCleaning ends when something else is in the place of what was removed.
func TestClosedAfterCleaning(t *testing.T) {
	t.Parallel()
	base, victim := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, put := range []bool{false, true} {
		tr := newTransform(t, Options{Command: "r", WorkDir: base})
		runWhere(t, tr, "1")
		if err := os.RemoveAll(tr.workspace.Dir()); err != nil {
			t.Fatal(err)
		}
		if put {
			if err := os.Symlink(victim, tr.workspace.Dir()); err != nil {
				t.Fatal(err)
			}
		}
		before := describe(t, base) + describe(t, victim)
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if after := describe(t, base) + describe(t, victim); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	}
}

// describe lists what is in a directory, with the content of files.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		out.WriteString(path + " " + info.Mode().String())
		if path != dir {
			out.WriteString(" " + info.ModTime().String())
		}
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out.Write(data)
		}
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCleanedWhileRunning removes everything while CMD runs. What it left until then is
// not all, so nothing is taken of it, however it ended, and nothing that was put there
// instead is removed. The next run is as any other.
func TestCleanedWhileRunning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, says string }{
		"removed":           {`cd /; rm -rf $(dirname $INDIR)`, "was removed while it ran"},
		"made anew":         {`cd /; rm -rf $(dirname $INDIR); mkdir -p $OUTDIR; echo x > $OUTDIR/a.yaml`, "was removed while it ran"},
		"replaced by links": {`cd /; rm -rf $(dirname $INDIR); ln -s %victim% $(dirname $INDIR)`, "was removed while it ran"},
		"and failed":        {`cd /; rm -rf $(dirname $INDIR); ln -s %victim% $(dirname $INDIR); exit 3`, "was removed while it ran"},
		"the lock":          {`rm $INDIR/../lock; echo x > $OUTDIR/a.yaml`, "was removed while it ran"},
		"OUTDIR":            {`rmdir $OUTDIR`, "read what CMD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, victim := t.TempDir(), t.TempDir()
			for _, name := range []string{confine.InDir, confine.OutDir, confine.TmpDir, lockFile} {
				if err := os.WriteFile(filepath.Join(victim, name), []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tr := newTransform(t, Options{Command: "r", WorkDir: base, Sandbox: SandboxOff})
			before := describe(t, victim)
			files := repo{"r": sh(strings.ReplaceAll(test.script, "%victim%", victim))}
			_, err := tr.Run(t.Context(), files.input("1"))
			checkError(t, err, test.says)
			if after := describe(t, victim); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			runWhere(t, tr, "2")
			if after := describe(t, victim); after != before {
				t.Errorf("before\n%s\nthen\n%s", before, after)
			}
		})
	}
}

// TestCleanedBase removes the directory that all directories are in, which is named
// until it is there again.
func TestCleanedBase(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	tr := newTransform(t, Options{Command: "r", WorkDir: base})
	runWhere(t, tr, "1")
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := tr.Run(t.Context(), where.input("2"))
		checkError(t, err, base+" does not exist: make it, mount a volume there, or set TMPDIR")
	}
	if err := os.WriteFile(base, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := tr.Run(t.Context(), where.input("2"))
	checkError(t, err, base+" is not a directory: set TMPDIR to one")
	if err := os.Remove(base); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	runWhere(t, tr, "2")
}
