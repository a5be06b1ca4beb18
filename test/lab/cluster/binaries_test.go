package cluster

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/lines"
)

// smallModule writes a module whose tools have the names of the control plane's
// and do nothing, so that it is built in no time.
func smallModule(t *testing.T, body string) string {
	t.Helper()
	return moduleOf(t, body, slices.Collect(maps.Keys(programs()))...)
}

// moduleOf writes such a module of some of the programs.
func moduleOf(t *testing.T, body string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	mod := "module example.com/small\n\ngo 1.26.0\n"
	for _, name := range names {
		built := programs()[name]
		mod += "\ntool example.com/small/" + built + "\n"
		write(t, filepath.Join(dir, built, "main.go"), "package main\n\nfunc main() { "+body+" }\n")
	}
	write(t, filepath.Join(dir, "go.mod"), mod)
	write(t, filepath.Join(dir, "go.sum"), "")
	write(t, filepath.Join(dir, "releases.txt"), "")
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// in returns a finder for a module, with a cache of its own.
func in(t *testing.T, module string, progress io.Writer) finder {
	t.Helper()
	return finder{module: module, cache: filepath.Join(t.TempDir(), "cache"), progress: progress, patience: time.Minute}
}

func TestOnlyOneBuilds(t *testing.T) {
	t.Parallel()
	var progress lines.Log
	f := in(t, smallModule(t, ""), &progress)
	dir, err := f.dir("", runtime.Version(), "go.mod", "go.sum")
	if err != nil {
		t.Fatal(err)
	}
	// What a build left that was killed.
	write(t, filepath.Join(dir+".partial", "etcd"), "half")
	write(t, filepath.Join(dir, "etcd"), "half")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := f.find(t.Context(), buildOnly); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := strings.Count(progress.String(), "building the control plane from source"); got != 1 {
		t.Errorf("it was built %d times:\n%s", got, progress.String())
	}
	for name := range programs() {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 2 { // dir and its lock
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	f := in(t, smallModule(t, "no such function()"), io.Discard)
	_, err := f.find(t.Context(), buildOnly)
	if err == nil || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("got %v, want the compiler's words", err)
	}
	if left, err := os.ReadDir(f.cache); err != nil || len(left) != 1 { // the lock
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestWaitingForAnothersBuildEnds(t *testing.T) {
	t.Parallel()
	f := in(t, smallModule(t, ""), io.Discard)
	if err := os.Mkdir(f.cache, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockFile(t.Context(), filepath.Join(f.cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.find(ctx, buildOnly)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
}

func TestReadyBinariesAreUsed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	if _, err := FindBinaries(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("an empty folder: got %v", err)
	}
	for name := range programs() {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n")
	}
	bin, err := FindBinaries(t.Context(), io.Discard)
	if err != nil || bin.Path("kubectl") != filepath.Join(dir, "kubectl") {
		t.Errorf("got %v, %v", bin, err)
	}
}

func TestAnotherVersionIsBuiltElsewhere(t *testing.T) {
	t.Parallel()
	f := in(t, smallModule(t, ""), io.Discard)
	before, err := f.dir("", "go1", "go.sum")
	if err != nil {
		t.Fatal(err)
	}
	other, err := f.dir("", "go2", "go.sum")
	if err != nil || other == before {
		t.Errorf("another Go: got %s and %s, %v", before, other, err)
	}
	write(t, filepath.Join(f.module, "go.sum"), "changed\n")
	after, err := f.dir("", "go1", "go.sum")
	if err != nil || after == before {
		t.Errorf("another version: got %s and %s, %v", before, after, err)
	}
}

// TestOthersAreTakenOver holds that what an older version does not pin comes from the newest,
// and that another one of these makes another folder.
func TestOthersAreTakenOver(t *testing.T) {
	t.Parallel()
	f := in(t, smallModule(t, "println(\"new\")"), io.Discard)
	all, err := f.find(t.Context(), buildOnly)
	if err != nil {
		t.Fatal(err)
	}
	f.module, f.others = moduleOf(t, "println(\"old\")", apiServerProgram), all
	mixed, err := f.find(t.Context(), buildOnly)
	if err != nil || mixed == all {
		t.Fatalf("got %v, %v", mixed, err)
	}
	for name := range programs() {
		want := "new\n"
		if name == apiServerProgram {
			want = "old\n"
		}
		if said, err := exec.CommandContext(t.Context(), mixed.Path(name)).CombinedOutput(); err != nil || string(said) != want {
			t.Errorf("%s: %q, %v; want %q", name, said, err, want)
		}
	}
	before, beforeErr := f.dir("", "go1", "go.sum")
	f.others = Binaries{Dir: all.Dir + "-newer"}
	if after, err := f.dir("", "go1", "go.sum"); after == before || errors.Join(err, beforeErr) != nil {
		t.Errorf("other others: got %s and %s, %v, %v", before, after, beforeErr, err)
	}
}

// TestUpAndDown is the shell script's own way, from a directory of the user's.
func TestUpAndDown(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	t.Parallel()
	module, err := moduleDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(module, "..", "..", "scripts", "controlplane"), args...)
		cmd.Dir = filepath.Dir(t.TempDir())
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		return string(out), err
	}
	dir := filepath.Join(t.TempDir(), "it's here")
	t.Cleanup(func() {
		if err := Down(dir); err != nil {
			t.Error(err)
		}
	})
	if _, err := script("status", "-dir", dir); err == nil {
		t.Error("status succeeds before up")
	}
	out, err := script("up", "-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "sh", "-euc", out+`
		"$KUBECTL" get namespace default >/dev/null
		"$KUBECTL" --kubeconfig "$UNPRIVILEGED_KUBECONFIG" get namespace default 2>&1 | grep -q 'cannot get resource'
		test -d "$CONTROLPLANE_DIR"`)
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("what up printed does not work: %v\n%s\n%s", err, said, out)
	}
	if out, err := script("status", "-dir", dir); err != nil || strings.Count(out, "running") != 4 {
		t.Errorf("status: %v\n%s", err, out)
	}
	if _, err := script("up", "-dir", dir); err == nil {
		t.Error("a second up in the same directory succeeds")
	}
	if _, err := script("down", "-dir", dir); err != nil {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}
