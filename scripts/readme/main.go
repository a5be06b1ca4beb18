// Readme writes the tables of environment variables and of limits into README.md,
// between the markers that stand there, from the descriptions in sync/config and
// repo/limits. With -check it
// changes nothing and fails if the table is not up to date.
//
// Run it in the root of the repository: go run ./scripts/readme
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/kubesync/kubesync/repo/limits"
	"github.com/kubesync/kubesync/sync/config"
)

// section is a part of the file that is written here, between two comments.
type section string

const (
	variables section = "variables"
	bounds    section = "limits"
)

func (s section) begin() string { return "<!-- " + string(s) + ":begin -->" }
func (s section) end() string   { return "<!-- " + string(s) + ":end -->" }

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

// run does what the arguments say.
func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("readme", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "only tell whether the file is up to date")
	file := flags.String("file", "README.md", "the file to update")
	if err := flags.Parse(args); err != nil {
		return err
	}
	old, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	updated, err := variables.replace(string(old), table(config.Variables()))
	if err == nil {
		updated, err = bounds.replace(updated, boundsTable(limits.Bounds()))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", *file, err)
	case updated == string(old):
		return nil
	case *check:
		return fmt.Errorf("%s: a table is not up to date: run go run ./scripts/readme", *file)
	}
	return os.WriteFile(*file, []byte(updated), 0o644)
}

// replace puts a text between the markers.
func (s section) replace(text, between string) (string, error) {
	before, rest, found := strings.Cut(text, s.begin())
	_, after, closed := strings.Cut(rest, s.end())
	if !found || !closed {
		return "", errors.New("the markers " + s.begin() + " and " + s.end() + " are missing")
	}
	return before + s.begin() + "\n" + between + s.end() + after, nil
}

// quoted finds what the descriptions mark as code.
var quoted = regexp.MustCompile(`'([^']*)'`)

// table returns the variables as a table in Markdown.
func table(variables []config.Variable) string {
	var out strings.Builder
	out.WriteString(markdown(config.Notes) + "\n\n")
	out.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	for _, variable := range variables {
		byDefault := variable.Default
		if byDefault == "" {
			byDefault = "–"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", variable.Name, markdown(byDefault), markdown(variable.Meaning))
	}
	return out.String()
}

// boundsTable returns the limits as a table in Markdown.
func boundsTable(all []limits.Bound) string {
	var out strings.Builder
	out.WriteString("| limit | default | of | why |\n|---|---|---|---|\n")
	for _, bound := range all {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", bound.Name, bound.Default, markdown(bound.Meaning), markdown(bound.Reason))
	}
	return out.String()
}

// markdown writes code between backticks, and takes from the text what would end a
// cell.
func markdown(text string) string {
	return quoted.ReplaceAllString(strings.ReplaceAll(text, "|", `\|`), "`$1`")
}
