package docs_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// shortest is how long a message of the troubleshooting page has to be to be found by.
const shortest = 6

// Every message that the troubleshooting page explains is one that the program has. Where
// this fails, the message has changed: change the row, or remove it with the message.
func TestMessagesExist(t *testing.T) {
	t.Parallel()
	program, rows := readSource(t), 0
	readPage(t, "docs/troubleshooting.md").tables("message", func(l line, cells []string) {
		rows++
		if len(cells) != 3 {
			t.Errorf("docs/troubleshooting.md:%d: %d cells, want message, cause and fix", l.number, len(cells))
		}
		messages := codeSpan.FindAllStringSubmatch(cells[0], -1)
		if len(messages) == 0 {
			t.Errorf("docs/troubleshooting.md:%d: no message between backticks", l.number)
		}
		for _, message := range messages {
			if len(message[1]) < shortest || !program.has(partsOf(message[1])...) {
				t.Errorf("docs/troubleshooting.md:%d: kubesync has no message %q", l.number, message[1])
			}
		}
	})
	if rows < 100 {
		t.Errorf("found %d rows: is the page read as it is written?", rows)
	}
}

// partsOf returns what a message on the page has between what differs.
func partsOf(message string) []string {
	var parts []string
	for part := range strings.SplitSeq(strings.ReplaceAll(message, `\|`, "|"), "…") {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

// unexplained are messages that need no row: for information, or without words of their
// own.
func unexplained() []string {
	return []string{
		"starting kubesync", "serving", "stopped serving", "releasing the lease", "certificate of LISTEN reloaded",
		"signal received, polling all repos and reading their list", "push webhook received, polling",
		"where it happened", "alive", "interrupted", "planned", "suspended", "timeout", "not protected", "in use", "there is none",
		"%s%s: %s: %s", "stopped: %s", "want %s", "version mode %q: %s; %s", "%q: %s (at character %d)",
		"no badge for a %T", "no counts of a %T", // mistakes of ours, which tests find
		"a repository needs a URL", "%s: revision %s is not the current one, only that is kept", // the same
		"not possible in a file system that can only be read", // the same
	}
}

// Every error that the program makes, and every line that it logs, is on the page. Where
// this fails, add the message to a row, or a row for it.
func TestMessagesAreExplained(t *testing.T) {
	t.Parallel()
	var explained [][]string
	for _, l := range readPage(t, "docs/troubleshooting.md").lines {
		for _, span := range l.spans() {
			explained = append(explained, partsOf(span))
		}
	}
	for path, file := range readSource(t).files {
		ast.Inspect(file, func(node ast.Node) bool {
			message := messageOf(node)
			if message == "" || slices.Contains(unexplained(), message) {
				return true
			}
			if !slices.ContainsFunc(explained, func(parts []string) bool { return (text{message}).has(parts) }) {
				t.Errorf("%s: docs/troubleshooting.md does not explain %q", path, message)
			}
			return true
		})
	}
}

// messageOf returns the text of an error that wraps no other, or of a line of the log; ""
// of any other node.
func messageOf(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	message := joined(call.Args[0])
	if strings.Trim(message, gap) == "" {
		return ""
	}
	from, _ := function.X.(*ast.Ident)
	switch {
	case function.Sel.Name == "Msg":
	case from != nil && from.Name == "errors" && function.Sel.Name == "New":
	case from != nil && from.Name == "fmt" && function.Sel.Name == "Errorf" && !strings.Contains(message, "%w"):
	default:
		return ""
	}
	return message
}
