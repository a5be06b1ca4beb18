package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is where a value stands in its file, and where the items of the list
// stand that it may be. The parsers that give values their meaning (the ones
// kubectl uses) report no lines, so another one looks for them where they are needed.
type place struct {
	line  int
	items []place
}

// item returns the place of a list's item; if it is unknown, the list's own.
func (p place) item(i int) place {
	if i < len(p.items) {
		return p.items[i]
	}
	return place{line: p.line}
}

// duplicate is a key that a mapping holds twice.
type duplicate struct {
	path        string
	first, line int // the lines of both
}

// yamlPlace finds the lines of a list's items, in lists of lists too.
func yamlPlace(node *yaml.Node, offset int) place {
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}
	at := place{line: offset + node.Line}
	if node.Kind != yaml.MappingNode {
		return at
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key, value := node.Content[i], node.Content[i+1]; key.Value == "items" && value.Kind == yaml.SequenceNode {
			at.items = make([]place, len(value.Content))
			for j, item := range value.Content {
				at.items[j] = yamlPlace(item, offset)
			}
		}
	}
	return at
}

// yamlDuplicates finds the keys that stand twice in one mapping. Merge keys (<<)
// may bring in keys that the mapping sets too: those are no duplicates.
func yamlDuplicates(node *yaml.Node, offset int, path []string) []duplicate {
	var found []duplicate
	seen := map[string]int{}
	for i, child := range node.Content {
		childPath := path
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Kind != yaml.ScalarNode {
				continue
			}
			line := offset + child.Line
			if first, twice := seen[child.Value]; twice {
				found = append(found, duplicate{strings.Join(append(path, child.Value), "."), first, line})
			}
			seen[child.Value] = line
			continue
		}
		if node.Kind == yaml.MappingNode {
			childPath = append(path[:len(path):len(path)], node.Content[i-1].Value)
		}
		found = append(found, yamlDuplicates(child, offset, childPath)...)
	}
	return found
}

// expansion is what a node weighs, in bytes about, when its aliases are replaced
// by what they stand for. It stops counting at the limit.
func expansion(node *yaml.Node, limit int, known map[*yaml.Node]int) int {
	if size, ok := known[node]; ok {
		return size
	}
	const perNode = 128 // when it is parsed
	size := perNode + len(node.Value)
	known[node] = limit // an anchor that contains itself has no end
	if node.Kind == yaml.AliasNode {
		size = expansion(node.Alias, limit, known)
	}
	for _, child := range node.Content {
		if size >= limit {
			break
		}
		size += expansion(child, limit, known)
	}
	known[node] = min(size, limit)
	return known[node]
}

// splitJSON cuts a document into the JSON values that follow one another in it.
// The problem reports why it went no further; nil if it came to the end.
func splitJSON(doc document) ([]document, *Problem) {
	var values []document
	decoder, at := json.NewDecoder(bytes.NewReader(doc.text)), lineCounter{text: doc.text, line: doc.line}
	for {
		from := int(decoder.InputOffset())
		rest, more := trimComments(document{doc.text[from:], at.at(from)})
		if !more {
			return values, nil
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return values, jsonProblem(doc, err)
		}
		rest.text = raw
		values = append(values, rest)
	}
}

// jsonProblem words a syntax error. The error may quote one character of the text.
func jsonProblem(doc document, err error) *Problem {
	offset := len(doc.text)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = int(syntax.Offset) - 1
	}
	line := doc.line + lineAt(bytes.TrimSpace(doc.text), max(offset, 0)) - 1
	return &Problem{Origin: Origin{Line: line}, Text: "not valid JSON: " + err.Error()}
}

// looksLikeJSON reports whether text may be a JSON object. What starts with a brace
// alone may also be YAML, or a template that was not rendered.
func looksLikeJSON(text []byte) bool {
	rest, brace := bytes.CutPrefix(bytes.TrimSpace(text), []byte("{"))
	rest = bytes.TrimSpace(rest)
	return brace && (len(rest) == 0 || rest[0] == '"' || rest[0] == '}')
}
