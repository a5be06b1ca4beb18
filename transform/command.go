package transform

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// command is a parsed CMD. Its zero value means that there is none.
type command struct {
	text  string
	words []*syntax.Word
}

// ParseCommand reports whether CMD can be run: an error names the part that would
// need a shell, or the quote that is missing. The empty string is fine, it means
// that there is no CMD.
func ParseCommand(text string) error {
	_, err := parseCommand(text)
	return err
}

func parseCommand(text string) (command, error) {
	if strings.ContainsRune(text, 0) {
		return command{}, fmt.Errorf("%q contains a NUL character", text)
	}
	cmd := command{text: strings.TrimSpace(text)}
	end := 0
	for word, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).WordsSeq(strings.NewReader(text)) {
		if err != nil {
			return command{}, cmd.syntaxError(err)
		}
		start := int(word.Pos().Offset())
		if strings.Contains(text[end:start], "#") {
			return command{}, cmd.needsShell("a comment (#)")
		}
		end = int(word.End().Offset())
		if what := shellPart(text, word, len(cmd.words) == 0); what != "" {
			return command{}, cmd.needsShell(what)
		}
		cmd.words = append(cmd.words, word)
	}
	if strings.Contains(text[end:], "#") {
		return command{}, cmd.needsShell("a comment (#)")
	}
	return cmd, nil
}

// syntaxError turns the parser's complaint into one about CMD. The parser knows
// words only, so operators arrive here, as do quotes that do not end.
func (c command) syntaxError(err error) error {
	var parse syntax.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%q: %w", c.text, err)
	}
	if operator, ok := strings.CutSuffix(parse.Text, " is not a valid word"); ok {
		return c.needsShell(operator)
	}
	return fmt.Errorf("%q: %s (at character %d)", c.text, parse.Text, parse.Pos.Offset()+1)
}

func (c command) needsShell(what string) error {
	return fmt.Errorf("%q: %s needs a shell, and CMD is run without one: "+
		"quote it if it is meant literally, else put the command into a script in the repository and name the script in CMD", c.text, what)
}

var (
	plainVariable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})$`)
	assignment    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
)

// shellPart describes the first part of a word that only a shell could act on;
// it is empty if there is none.
func shellPart(text string, word *syntax.Word, first bool) string {
	if lit := word.Lit(); first && assignment.MatchString(lit) {
		return fmt.Sprintf("the assignment %q", lit)
	}
	if strings.HasPrefix(source(text, word), "~") {
		return "~ (write $HOME)"
	}
	// SplitBraces works on the word it is given.
	if split := *word; syntax.SplitBraces(&split) {
		return fmt.Sprintf("the brace expansion %q", source(text, word))
	}
	what := ""
	syntax.Walk(word, func(node syntax.Node) bool {
		if what != "" || node == nil {
			return false
		}
		switch node := node.(type) {
		case *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.ParamExp:
			if !plainVariable.MatchString(source(text, node)) {
				what = fmt.Sprintf("%q (only $VAR and ${VAR} are expanded)", source(text, node))
			}
		default:
			what = fmt.Sprintf("%q", source(text, node))
		}
		return false
	})
	return what
}

// source returns the text that a node was parsed from.
func source(text string, node syntax.Node) string {
	return text[node.Pos().Offset():node.End().Offset()]
}

// expand returns CMD's words with variables and file name patterns replaced.
// list reads a directory, given by its absolute path, for the patterns; what it
// does not want to be looked at appears empty.
func (c command) expand(env []string, list func(dir string) ([]fs.DirEntry, error)) ([]string, error) {
	config := &expand.Config{Env: expand.ListEnviron(env...), ReadDir2: list}
	words, err := expand.Fields(config, c.words...)
	if err != nil {
		return nil, fmt.Errorf("CMD %q: %w", c.text, err)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("CMD %q: its first word, the program, is empty once the variables are replaced", c.text)
	}
	return words, nil
}
