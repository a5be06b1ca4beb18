package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/internal/limits"
)

// parseJSON reads values of JSON text; failed reports what follows them and could
// not be read, if anything.
func (f *parsedFile) parseJSON(values []document, failed *Problem) {
	if !f.count(len(values)-1, values[0].line) {
		return
	}
	for _, doc := range values {
		if f.hopeless() {
			return
		}
		var value any
		strict, err := kjson.UnmarshalStrict(doc.text, &value, kjson.DisallowDuplicateFields)
		if err != nil {
			f.problem(doc.line, "not valid JSON: %v", err)
			continue
		}
		at, duplicates := place{line: doc.line}, []duplicate(nil)
		if len(strict) > 0 || mayBeList(value) {
			at, duplicates = walkJSON(doc.text, doc.line)
		}
		if len(duplicates) > 0 {
			f.problems = append(f.problems, duplicateProblems(duplicates)...)
			continue
		}
		f.add(value, at)
	}
	if failed != nil {
		f.problems = append(f.problems, *failed)
	}
}

// parseYAML gives a document the values that kubectl gives it: YAML 1.1 as
// sigs.k8s.io/yaml reads it, by way of JSON. Other than kubectl it refuses keys
// that stand twice in a mapping, and aliases that blow up.
func (f *parsedFile) parseYAML(doc document) (any, place, []Problem) {
	at := place{line: doc.line}
	if hasAliases(doc.text) {
		node, err := parseNode(doc.text)
		if err != nil {
			return nil, at, []Problem{yamlProblem(doc, err)}
		}
		// Without a bound a few lines fill the memory.
		if most := int(f.limits.Of(limits.Expansion)); expansion(node, most, map[*yamlv3.Node]int{}) >= most {
			exceeded := f.limits.Exceeded(limits.Expansion, "its aliases stand for too much, or contain themselves", 0)
			return nil, at, []Problem{{Origin: Origin{Line: doc.line}, Text: exceeded.Error(), Err: exceeded}}
		}
	}
	text, problems := yamlToJSON(doc)
	if len(problems) > 0 {
		return nil, at, problems
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		return nil, at, []Problem{yamlProblem(doc, err)}
	}
	if mayBeList(value) {
		if node, err := parseNode(doc.text); err == nil {
			at = yamlPlace(node, doc.line-1)
		}
	}
	return value, at, nil
}

// yamlToJSON converts a document, and finds keys that stand twice. The strict
// conversion alone would not do: it takes a key that overrides a merged one
// (<<) for a duplicate.
func yamlToJSON(doc document) ([]byte, []Problem) {
	text, err := yaml.YAMLToJSONStrict(doc.text)
	var strict *yamlv2.TypeError
	if errors.As(err, &strict) {
		node, nodeErr := parseNode(doc.text)
		if nodeErr != nil {
			return nil, []Problem{yamlProblem(doc, err)}
		}
		if duplicates := yamlDuplicates(node, doc.line-1, nil); len(duplicates) > 0 {
			return nil, duplicateProblems(duplicates)
		}
		text, err = yaml.YAMLToJSON(doc.text)
	}
	if err != nil {
		return nil, []Problem{yamlProblem(doc, err)}
	}
	return text, nil
}

// parseNode reads a document as a tree with lines, aliases left as they are.
func parseNode(text []byte) (*yamlv3.Node, error) {
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	return &node, nil
}

// hasAliases reports whether text may hold aliases; it may err on that side.
func hasAliases(text []byte) bool {
	return bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0
}

// mayBeList reports whether the lines of a value's items are wanted.
func mayBeList(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	_, ok = listItems(object)
	return ok
}

// duplicateProblems words keys that stand twice.
func duplicateProblems(duplicates []duplicate) []Problem {
	problems := make([]Problem, len(duplicates))
	for i, d := range duplicates {
		problems[i] = Problem{
			Origin: Origin{Line: d.line},
			Text:   fmt.Sprintf("duplicate key %s: it is set on line %d already", d.path, d.first),
		}
	}
	return problems
}

// yamlProblem words an error of a YAML library: at the line in the file, and
// without the document's values, which some of the errors quote.
func yamlProblem(doc document, err error) Problem {
	line, text := yamlErrorLine(doc, err)
	lines := bytes.Split(bytes.TrimRight(doc.text, "\n"), []byte("\n"))
	line = max(1, min(line, len(lines)))
	return Problem{
		Origin: Origin{Line: doc.line + line - 1},
		Text:   "not valid YAML: " + withoutValues(text) + hint(lines[line-1]),
	}
}

// yamlErrorLine takes an error apart: the line it means, counted from the
// document's first, and the rest of its text. Some errors report no line, or the
// one before.
func yamlErrorLine(doc document, err error) (int, string) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
	if rest, found := strings.CutPrefix(text, "line "); found {
		if number, message, found := strings.Cut(rest, ": "); found {
			line, _ := strconv.Atoi(number)
			if isParserError(message) {
				line++
			}
			return line, message
		}
	}
	if strings.HasPrefix(text, "control characters") {
		return controlLine(doc.text), text
	}
	if anchor, found := strings.CutPrefix(text, "unknown anchor '"); found {
		anchor, _, _ = strings.Cut(anchor, "'")
		return lineAt(doc.text, max(0, bytes.Index(doc.text, []byte("*"+anchor)))), text
	}
	if isKeyError(text) {
		if node, err := parseNode(doc.text); err == nil {
			return complexKeyLine(node), text
		}
	}
	return 1, text
}

// isKeyError reports whether an error is about a key that is a mapping or a list.
func isKeyError(text string) bool {
	return strings.HasPrefix(text, "invalid map key") || strings.HasPrefix(text, "unsupported map key")
}

// isParserError reports whether an error of the YAML libraries gives the number of the
// line before the one it means.
func isParserError(text string) bool {
	prefixes := []string{
		"did not find expected <", "did not find expected node content", "did not find expected '-' indicator",
		"did not find expected key", "did not find expected ',' or", "found undefined tag handle",
		"found duplicate %", "found incompatible YAML document",
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// withoutValues replaces the errors that quote the document: what they quote may
// be a password that a user forgot to quote.
func withoutValues(text string) string {
	switch {
	case strings.HasPrefix(text, "unknown anchor"):
		return "an alias (*name) without its anchor (&name); text that starts with * must be quoted"
	case strings.HasPrefix(text, "anchor"):
		return "an anchor (&name) whose value contains itself"
	case isKeyError(text):
		return "a mapping or a list stands where a key belongs"
	case strings.HasPrefix(text, "cannot decode"), strings.HasPrefix(text, "cannot unmarshal"):
		return "a value does not fit the tag (!!type) before it"
	case strings.HasPrefix(text, "json: unsupported value"):
		return "a number that is infinite or not a number"
	case strings.Contains(text, "already set in map"):
		return "a key is set twice in one mapping"
	}
	return text
}

// hint adds what the line at fault suggests.
func hint(line []byte) string {
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	switch {
	case bytes.Contains(line, []byte("{{")):
		return " (a template that was not rendered?)"
	case bytes.IndexByte(indent, '\t') >= 0:
		return " (the line is indented with a tab: YAML wants spaces)"
	}
	return ""
}

// controlLine returns the line, from 1, of the first control character.
func controlLine(text []byte) int {
	at := bytes.IndexFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85
	})
	return lineAt(text, max(at, 0))
}
