package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers are the packages from the top down. A package imports only those of layers below
// its own, and within a layer only what lies below it in the same tree: apply imports
// apply/kube, and never the other way round.
func layers() [][]string {
	return [][]string{{""}, {"sync"}, {"repo", "transform", "apply"}, {"internal"}}
}

// inOrder are packages of one tree, each of which imports only those after it.
func inOrder() [][]string {
	return [][]string{
		{"apply", "apply/parent", "apply/ledger", "apply/inventory", "apply/observed", "apply/kube", "apply/manifest", "apply/health"},
		{"transform", "transform/confine"},
	}
}

// TestImportDirection holds every import of the program against the layers.
func TestImportDirection(t *testing.T) {
	t.Parallel()
	const module = "github.com/kubesync/kubesync"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", ".", "./sync/...", "./repo/...", "./transform/...", "./apply/...", "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		from := strings.TrimPrefix(strings.TrimPrefix(pkg.ImportPath, module), "/")
		for _, imported := range pkg.Imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours && !mayImport(from, to) {
				t.Errorf("%s imports %s: imports go main, sync, then repo, transform and apply apart, then internal", pkg.ImportPath, to)
			}
		}
	}
}

// mayImport reports whether one package may import another by the rules above.
func mayImport(from, to string) bool {
	above, below := layer(from), layer(to)
	if above != below {
		return above < below
	}
	for _, order := range inOrder() {
		if i, j := slices.Index(order, from), slices.Index(order, to); i >= 0 && j >= 0 {
			return i < j
		}
	}
	return tree(from) == tree(to)
}

// layer is the index of a package's layer.
func layer(pkg string) int {
	return slices.IndexFunc(layers(), func(trees []string) bool { return slices.Contains(trees, tree(pkg)) })
}

// tree is the top directory of a package.
func tree(pkg string) string {
	top, _, _ := strings.Cut(pkg, "/")
	return top
}

// TestMayImport shows which imports the rules refuse.
func TestMayImport(t *testing.T) {
	t.Parallel()
	for imported, want := range map[[2]string]bool{
		{"", "sync/config"}:                  true,
		{"sync/config", "repo"}:              true,
		{"sync", "sync/status"}:              true,
		{"apply", "internal/limits"}:         true,
		{"apply", "apply/kube"}:              true,
		{"apply/kube", "apply/manifest"}:     true,
		{"apply/manifest", "apply/kube"}:     false,
		{"apply/manifest", "apply/health"}:   true,
		{"apply/health", "apply/manifest"}:   false,
		{"apply/kube", "apply"}:              false,
		{"repo", "apply"}:                    false,
		{"repo", "sync"}:                     false,
		{"internal/limits", "repo"}:          false,
		{"sync/config", ""}:                  false,
		{"transform", "repo"}:                false,
		{"transform", "transform/confine"}:   true,
		{"transform/confine", "transform"}:   false,
		{"", "transform/confine"}:            true,
		{"apply/prune", "transform/confine"}: false,
	} {
		if got := mayImport(imported[0], imported[1]); got != want {
			t.Errorf("%q imports %q: %t, want %t", imported[0], imported[1], got, want)
		}
	}
}
