package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/sync/config"
)

const begin, end = "<!-- variables:begin -->", "<!-- variables:end -->"

func TestTheTableIsWrittenBetweenTheMarkers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "configuration.md")
	write(t, file, "# Title\n"+begin+"\nstale row\n"+end+"\nmore\n"+bounds.begin()+bounds.end()+"\n")

	if err := run([]string{"-file", file, "-check"}, io.Discard); err == nil {
		t.Error("-check accepts an old table")
	}
	if err := run([]string{"-file", file}, io.Discard); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, want := range []string{"# Title\n" + begin + "\n", "\n\n| variable |", "| `INTERVAL` | `300` | ", "|\n" + end + "\nmore\n", bounds.begin() + "\n| limit |", "| `file` | `16Mi` |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "stale row") {
		t.Error("the old table is still there")
	}
	if err := run([]string{"-file", file, "-check"}, io.Discard); err != nil {
		t.Errorf("-check after the update: %v", err)
	}
}

func TestMissingMarkersAreAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"none": "# Title\n", "no end": begin + "\n", "wrong order": end + begin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "configuration.md")
			write(t, file, text)
			if err := run([]string{"-file", file}, io.Discard); err == nil || !strings.Contains(err.Error(), begin) {
				t.Errorf("got %v, want an error that names the markers", err)
			}
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	got := table([]config.Variable{{Name: "A", Meaning: "This 'or' that | more."}, {Name: "B", Default: "'x'", Meaning: "y"}})
	want := "| variable | default | meaning |\n|---|---|---|\n| `A` | – | This `or` that \\| more. |\n| `B` | `x` | y |\n"
	if !strings.HasSuffix(got, "\n\n"+want) {
		t.Errorf("got:\n%s\nwant at the end:\n%s", got, want)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
