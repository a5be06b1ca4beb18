package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSources holds that what a change of the program can be in is looked at: code,
// what is embedded, and the versions of what it uses; and not what it is tested by.
func TestSources(t *testing.T) {
	t.Parallel()
	files, err := sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"main.go", "apply/set.go", "internal/limits/limits.go", "sync/status/web/web.go", "go.mod", "go.sum"} {
		if !slices.Contains(files, filepath.Join(root, want)) {
			t.Errorf("%s is not looked at", want)
		}
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".css") || strings.HasSuffix(f, ".html") }) {
		t.Error("nothing that is embedded is looked at")
	}
	for _, file := range files {
		if strings.HasPrefix(file, filepath.Join(root, "test")+"/") || strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s is no part of the program", file)
		}
	}
}
