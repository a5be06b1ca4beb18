// Package build builds kubesync for tests that run it as its users do.
//
// What such a test proves depends on the program's sources, of which the go command
// knows nothing: it would give the result of an earlier run as "(cached)" after the
// program had changed. Kubesync lets it know.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is its import path.
const program = "github.com/kubesync/kubesync"

// Kubesync builds the program into a file, or a directory, with more flags of go build. The
// error holds what the compiler had to say.
func Kubesync(ctx context.Context, to string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", to}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, program)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build kubesync: %w\n%s", err, out)
	}
	files, err := sources(ctx)
	if err != nil {
		return err
	}
	for _, file := range files {
		// A file of the module that a test looks at is part of what its cached result
		// stands for ("go help test").
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("build kubesync: %w", err)
		}
	}
	return nil
}

// sources returns the files of this module that the program is built from.
func sources(ctx context.Context) ([]string, error) {
	const each = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}` +
		`{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}` +
		`{{end}}{{end}}`
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", each, program)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list what kubesync is built from: %w", err)
	}
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("look for go.mod: %w", err)
	}
	files := strings.Fields(string(out))
	return append(files, strings.TrimSpace(string(mod)), filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "go.sum")), nil
}
