package manifest

import (
	"io/fs"

	"go.yaml.in/yaml/v3"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/internal/limits"
)

// Locate moves those problems that name a field from the line their document starts
// at to the field's own, where the files show it. A field that a transform or a YAML
// alias brought in, or that is missing, stays with the nearest line that is known.
func Locate(files fs.FS, problems Problems, bounds limits.Limits) {
	texts := map[string][]document{}
	for i, p := range problems {
		if len(p.Field) == 0 || p.Origin.File == "" {
			continue
		}
		docs, read := texts[p.Origin.File]
		if !read {
			if data, err := fs.ReadFile(files, p.Origin.File); err == nil {
				docs = (&parsedFile{limits: bounds}).split(normalizeLines(data))
			}
			texts[p.Origin.File] = docs
		}
		problems[i].Origin.Line = fieldLine(docs, p.Origin.Line, p.Field)
	}
}

// fieldLine finds the line of a field of the object that starts at a line.
func fieldLine(docs []document, line int, field openapi.Path) int {
	var doc document
	for _, d := range docs {
		if d.line <= line {
			doc = d
		}
	}
	node, err := parseNode(doc.text)
	if err != nil {
		return line
	}
	object := startingAt(node, line-doc.line+1)
	if object == nil {
		return line
	}
	return doc.line - 1 + lineOf(object, field)
}

// startingAt finds the mapping that starts at a line: the document's, or a list's item.
func startingAt(node *yaml.Node, line int) *yaml.Node {
	if node.Kind == yaml.MappingNode && node.Line == line {
		return node
	}
	for _, child := range node.Content {
		if found := startingAt(child, line); found != nil {
			return found
		}
	}
	return nil
}

// lineOf returns the line of a field, or of what comes nearest to it on the way there.
func lineOf(node *yaml.Node, field openapi.Path) int {
	if len(field) == 0 || node.Kind == yaml.AliasNode {
		return node.Line
	}
	switch step := field[0].(type) {
	case int:
		if node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return lineOf(node.Content[step], field[1:])
		}
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if key.Value == step && (len(field) == 1 || value.Kind == yaml.ScalarNode) {
				return key.Line
			}
			if key.Value == step {
				return max(key.Line, lineOf(value, field[1:]))
			}
		}
	}
	return node.Line
}
