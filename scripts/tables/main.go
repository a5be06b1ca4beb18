// Tables writes the tables of environment variables and of limits into
// docs/configuration.md, between the markers there, from the descriptions in
// sync/config and internal/limits. With -check it changes nothing and fails if a table
// is not up to date.
//
// Run it in the root of the repository: go run ./scripts/tables
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/sync/config"
)

// section is a generated part of the file, between two comments.
type section string

const (
	variables section = "variables"
	bounds    section = "limits"
)

func (s section) begin() string { return "<!-- " + string(s) + ":begin -->" }
func (s section) end() string   { return "<!-- " + string(s) + ":end -->" }

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

// run updates the file that the arguments name, or checks it.
func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("tables", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "only report whether the file is up to date")
	file := flags.String("file", "docs/configuration.md", "the file to update")
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
		return fmt.Errorf("%s: a table is not up to date: run go run ./scripts/tables", *file)
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

// width is where prose wraps, in columns.
const width = 120

// table returns the variables as a table in Markdown, below what holds for all.
func table(variables []config.Variable) string {
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(markdown(config.Notes)) {
		switch length := utf8.RuneCountInString(word); {
		case column == 0:
			column = length
		case column+1+length > width:
			out.WriteString("\n")
			column = length
		default:
			out.WriteString(" ")
			column += 1 + length
		}
		out.WriteString(word)
	}
	out.WriteString("\n\n")
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
