package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"unicode"

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
			if node, err := parseNode(JSONAsYAML(doc.text)); err == nil {
				at, duplicates = yamlPlace(node, doc.line-1), yamlDuplicates(node, doc.line-1, nil)
			}
		}
		switch {
		case len(duplicates) > 0:
			f.problems = append(f.problems, duplicateProblems(duplicates)...)
		case len(strict) > 0:
			f.problem(doc.line, "duplicate key: %v", strict[0])
		default:
			f.add(value, at)
		}
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
			return nil, at, []Problem{yamlProblem(doc)}
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
		return nil, at, []Problem{yamlProblem(doc)}
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
			return nil, []Problem{yamlProblem(doc)}
		}
		if duplicates := yamlDuplicates(node, doc.line-1, nil); len(duplicates) > 0 {
			return nil, duplicateProblems(duplicates)
		}
		text, err = yaml.YAMLToJSON(doc.text)
	}
	if err != nil {
		return nil, []Problem{yamlProblem(doc)}
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

// jsonTexts finds the texts in a JSON document.
var jsonTexts = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// JSONAsYAML rewrites valid JSON where YAML, of whose nodes the line is known, takes
// less of it: tabs between values, which do not occur inside of them, and escapes such
// as those of a slash or of half a character.
func JSONAsYAML(content []byte) []byte {
	content = bytes.ReplaceAll(content, []byte("\t"), []byte(" "))
	return jsonTexts.ReplaceAllFunc(content, func(quoted []byte) []byte {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return quoted
		}
		return []byte(strconv.QuoteToASCII(text)) // YAML knows all escapes of Go
	})
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

// yamlProblem words why a document cannot be read: at the line in the file, and without
// the document's values, which the libraries' own errors may quote.
func yamlProblem(doc document) Problem {
	line, text := brokenSyntax(doc.text)
	if text == "" {
		line, text = unfit(doc.text)
	}
	lines := bytes.Split(bytes.TrimRight(doc.text, "\n"), []byte("\n"))
	line = max(1, min(line, len(lines)))
	return Problem{
		Origin: Origin{Line: doc.line + line - 1},
		Text:   "not valid YAML: " + text + hint(lines[line-1]),
	}
}

// numbered is an error of YAML's syntax, which quotes nothing of the document.
var numbered = regexp.MustCompile(`^yaml: line \d+: (.*)`)

// lookAhead is how many lines more than the broken one YAML's parser reads, and then some:
// it wants to know how a value goes on.
const lookAhead = 4

// brokenSyntax says at which line of a text its syntax breaks, and how; the text is empty
// if it does not. The library's own number is often that of another line. So it is the
// first line, of the last ones that were read, with which the text is broken in the same way
// as with all that follow.
func brokenSyntax(text []byte) (int, string) {
	// An error on the first line would have no number.
	text = append([]byte("\n"), text...)
	_, broken := parseNode(text)
	if broken == nil {
		return 0, ""
	}
	parts := numbered.FindStringSubmatch(broken.Error())
	if control := bytes.IndexFunc(text, isControl); parts == nil && control >= 0 {
		return bytes.Count(text[:control], []byte("\n")), "control characters are not allowed"
	}
	unread := bytes.NewReader(text)
	_ = yamlv3.NewDecoder(byByte{unread}).Decode(new(yamlv3.Node)) // how far does it get?
	end := len(text) - unread.Len()
	for range lookAhead {
		before := bytes.LastIndexByte(text[:end-1], '\n') + 1
		if _, err := parseNode(text[:before]); err == nil || err.Error() != broken.Error() {
			break
		}
		end = before
	}
	line := bytes.Count(text[:end-1], []byte("\n"))
	if parts == nil {
		return line, "an alias (*name) without its anchor (&name); text that starts with * must be quoted"
	}
	return line, parts[1]
}

// isControl reports whether a character is one that YAML does not allow.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\u0085' }

// byByte reads a byte at a time, so that no more is read than is looked at.
type byByte struct{ *bytes.Reader }

// Read implements io.Reader.
func (b byByte) Read(p []byte) (int, error) { return b.Reader.Read(p[:1]) }

// unfit says at which line a text holds what YAML knows and JSON, hence an object, does
// not, and what it is.
func unfit(text []byte) (int, string) {
	if node, err := parseNode(text); err == nil {
		if line, what := unfitNode(node); what != "" {
			return line, what
		}
	}
	return 1, "it cannot be converted to JSON"
}

// unfitNode looks for it in a node.
func unfitNode(node *yamlv3.Node) (int, string) {
	for i, child := range node.Content {
		isKey := node.Kind == yamlv3.MappingNode && i%2 == 0
		switch tag := child.ShortTag(); {
		case isKey && (tag == "!!map" || tag == "!!seq" || tag == "!!null"):
			return child.Line, "a mapping, a list or null stands where a key belongs"
		case isKey && tag == "!!merge" && node.Content[i+1].Kind == yamlv3.ScalarNode:
			return child.Line, "<< stands without the mapping that it merges"
		}
		if line, what := unfitNode(child); what != "" {
			return line, what
		}
	}
	if node.Kind != yamlv3.ScalarNode {
		return 0, ""
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return node.Line, "a value does not fit the tag (!!type) before it"
	}
	if number, ok := value.(float64); ok && (math.IsInf(number, 0) || math.IsNaN(number)) {
		return node.Line, "a number that is infinite or not a number"
	}
	return 0, ""
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
