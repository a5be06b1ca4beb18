package transform

import (
	"os"
	"path/filepath"
	"strings"
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
