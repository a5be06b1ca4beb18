package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/kubesync/kubesync/apply/openapi"
	"github.com/kubesync/kubesync/internal/limits"
)

// parsedFile is what one file holds. Its origins have lines only: the same
// content may stand under several paths.
type parsedFile struct {
	limits limits.Limits
	// size is how many bytes it has, documents how many of them.
	size      int64
	documents int

	objects  []Object
	skipped  []Problem
	problems []Problem
}

// document is one document of a file: text without the comments before its first
// line of content, and that line's number in the file (from 1).
type document struct {
	text []byte
	line int
}

// lfsPointer starts the text that Git LFS puts in the place of a file.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// byteOrderMark is what some editors put before UTF-8 text.
const byteOrderMark = "\ufeff"

// parseFile reads all documents of a file. What is wrong with one does not
// hide the others.
func parseFile(data []byte, bounds limits.Limits) *parsedFile {
	file := &parsedFile{limits: bounds, size: int64(len(data))}
	if bytes.HasPrefix(data, []byte(lfsPointer)) {
		file.problem(1, "this is a Git LFS pointer, not the manifest: kubesync fetches no LFS objects, commit the file itself")
		return file
	}
	if line := invalidUTF8(data); line > 0 {
		file.problem(line, "the file is not UTF-8 text")
		return file
	}
	data = normalizeLines(data)
	for _, doc := range file.split(data) {
		if file.hopeless() {
			break
		}
		if file.affordable(doc) {
			file.parse(doc)
		}
	}
	file.clampLines(lineAt(data, len(data)))
	return file
}

// normalizeLines ends all lines alike. A lone carriage return ends a line in
// YAML, though kubectl's search for separators does not see it.
func normalizeLines(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// clampLines keeps the lines inside the file: to YAML 1.1 some Unicode characters
// end a line, to everybody else they do not.
func (f *parsedFile) clampLines(last int) {
	for i := range f.objects {
		f.objects[i].Origin.Line = min(f.objects[i].Origin.Line, last)
	}
	for i := range f.problems {
		f.problems[i].Origin.Line = min(f.problems[i].Origin.Line, last)
	}
}

// problem notes what is wrong where no object is known yet.
func (f *parsedFile) problem(line int, format string, args ...any) {
	f.problems = append(f.problems, Problem{Origin: Origin{Line: line}, Text: fmt.Sprintf(format, args...)})
}

// invalidUTF8 returns the line of the first byte that is no UTF-8, or 0.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	valid := 0
	for {
		r, size := utf8.DecodeRune(data[valid:])
		if r == utf8.RuneError && size <= 1 {
			return lineAt(data, valid)
		}
		valid += size
	}
}

// lineAt returns the line, from 1, that an offset of text is in.
func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// split cuts a file at the lines that separate documents, and leaves out the
// documents that hold comments only. It cuts as kubectl does: at every line that
// starts with ---, after which only a comment may stand. Other than kubectl it
// also cuts at the end marker, a line of three dots, behind which kubectl loses
// whatever comes before the next ---.
func (f *parsedFile) split(data []byte) []document {
	var docs []document
	start, startLine, line := 0, 1, 0
	cut := func(end, next int) {
		if doc, ok := trimComments(document{data[start:end], startLine}); ok && f.count(1, startLine) {
			docs = append(docs, doc)
		}
		start, startLine = next, line+1
	}
	for offset := 0; offset < len(data) && !f.hopeless(); {
		line++
		next := len(data)
		if length := bytes.IndexByte(data[offset:], '\n'); length >= 0 {
			next = offset + length + 1
		}
		text := data[offset:next]
		if rest, found := bytes.CutPrefix(text, []byte("---")); found {
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
				f.problem(line, "a line that starts with --- separates documents and may hold nothing else")
			}
			cut(offset, next)
		} else if string(bytes.TrimRight(text, " \t\r\n")) == "..." {
			cut(offset, next)
		}
		offset = next
	}
	cut(len(data), len(data))
	return docs
}

// trimComments leaves out the blank and comment lines at a document's start. It
// reports false if nothing else is there.
func trimComments(doc document) (document, bool) {
	for len(doc.text) > 0 {
		first, rest, _ := bytes.Cut(doc.text, []byte("\n"))
		content := strings.TrimSpace(strings.TrimPrefix(string(first), byteOrderMark))
		if content != "" && content[0] != '#' {
			return doc, true
		}
		doc.text = rest
		doc.line++
	}
	return doc, false
}

// parse reads one document: JSON if it looks like it and is it, else YAML, of
// which most of what looks like JSON is a part.
func (f *parsedFile) parse(doc document) {
	var notJSON *Problem
	if looksLikeJSON(doc.text) {
		var values []document
		if values, notJSON = splitJSON(doc); len(values) > 0 {
			f.parseJSON(values, notJSON)
			return
		}
	}
	value, at, problems := f.parseYAML(doc)
	switch {
	case len(problems) == 0:
		f.add(value, at)
	case notJSON != nil:
		f.problems = append(f.problems, *notJSON)
	default:
		f.problems = append(f.problems, problems...)
	}
}

// add sorts what a document holds: an object, a list of objects, or neither.
func (f *parsedFile) add(value any, at place) {
	if !f.shallow(value, at.line) {
		return
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		if isUntyped(v) {
			f.skip(at.line, "neither apiVersion nor kind: no Kubernetes object, skipped")
			return
		}
		f.addObject(v, at)
	case []any:
		for _, item := range v {
			if m, ok := item.(map[string]any); ok && !isUntyped(m) {
				f.problem(at.line, "an array of objects: Kubernetes wants them in a List (apiVersion: v1, kind: List, items: …) or as documents of their own")
				return
			}
		}
		f.skip(at.line, "an array: no Kubernetes object, skipped")
	default:
		f.problem(at.line, "a single value and no object: a Kubernetes manifest is a mapping with apiVersion and kind")
	}
}

// skip notes a document that is no Kubernetes object and no mistake.
func (f *parsedFile) skip(line int, text string) {
	f.skipped = append(f.skipped, Problem{Origin: Origin{Line: line}, Text: text})
}

// absent reports whether a value says nothing.
func absent(value any) bool { return value == nil || value == "" }

// isUntyped reports whether a mapping does not even pretend to be an object.
func isUntyped(m map[string]any) bool { return absent(m["apiVersion"]) && absent(m["kind"]) }

// addObject takes over an object, or the items of a list.
func (f *parsedFile) addObject(object map[string]any, at place) {
	if items, ok := listItems(object); ok {
		f.addItems(object, items, at)
		return
	}
	d := draft{newUnstructured(object), Origin{Line: at.line}}
	faults := objectFaults(object)
	if len(faults) == 0 {
		m, err := newContent(d.Unstructured)
		if err == nil {
			f.objects = append(f.objects, Object{m, d.Origin})
			return
		}
		faults = []string{err.Error()}
	}
	for _, fault := range faults {
		f.problems = append(f.problems, problemOf(d.ID(), d.Origin, fault))
	}
}

// addItems takes over the items of a list, at their own lines.
func (f *parsedFile) addItems(list map[string]any, items []any, at place) {
	kind, _ := list["kind"].(string)
	if !f.count(len(items), at.line) {
		return
	}
	for i, item := range items {
		if f.hopeless() {
			return
		}
		itemAt := at.item(i)
		object, ok := item.(map[string]any)
		if !ok {
			f.problem(itemAt.line, "items[%d] of the %s is %s, not an object", i, kind, openapi.Describe(item))
			continue
		}
		if itemKind := strings.TrimSuffix(kind, "List"); itemKind != "" && isUntyped(object) {
			// As kubectl does: the items of a typed list need not repeat its type.
			object = maps.Clone(object)
			object["apiVersion"], object["kind"] = list["apiVersion"], itemKind
		}
		f.addObject(object, itemAt)
	}
}

// listItems returns the items of a List, or of a typed list such as ConfigMapList.
func listItems(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	value, has := object["items"]
	items, isArray := value.([]any)
	bare := kind == "List" && object["apiVersion"] == "v1" && !has
	return items, isArray || bare || has && value == nil
}
