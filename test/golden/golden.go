// Package golden holds what a test produced against a file that a person has
// looked at. `go test -update` writes the files anew: read the difference before
// you commit it.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// update is the one flag that test binaries with golden files have in common; a
// flag has to exist before a test binary parses its arguments.
var update = flag.Bool("update", false, "write the golden files anew")

// Check fails the test if got is not what the file at path says; with -update it
// writes the file.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test -update writes it anew):\n%s", path, udiff.Unified("want", "got", string(want), got))
	}
}
