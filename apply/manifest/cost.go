package manifest

import (
	"bytes"

	"github.com/kubesync/kubesync/internal/limits"
)

// maxProblems bounds how many problems are reported of a revision: no one reads more,
// and a few bytes of a manifest can make many.
const maxProblems = 200

// maxSkipped bounds how many documents are named that are no objects.
const maxSkipped = 100

// affordable reports whether a document may be parsed: parsed, it takes some 300 bytes
// for each value. The values are guessed by what stands between them, which is never
// too little, but more than there are where a long text has many commas and colons.
func (f *parsedFile) affordable(doc document) bool {
	values := 1
	for i, c := range doc.text {
		switch c {
		case ',', '\n', '[', '{', '?':
			values++
		case ':', '-':
			if next := after(doc.text, i); next == ' ' || next == '\n' || next == '\t' || c == ':' && i > 0 && (doc.text[i-1] == '"' || doc.text[i-1] == '\'') {
				values++
			}
		}
	}
	return f.check(doc.line, f.limits.Check(limits.Values, "the document is too large", int64(values)))
}

// after returns the character after one of a text, a line break at its end.
func after(text []byte, i int) byte {
	if i+1 == len(text) {
		return '\n'
	}
	return text[i+1]
}

// shallow reports whether a value is not nested too deep to be worked with.
func (f *parsedFile) shallow(value any, line int) bool {
	most := f.limits.Of(limits.Nesting)
	if !deeperThan(value, most) {
		return true
	}
	return f.check(line, f.limits.Exceeded(limits.Nesting, "mappings and lists stand too deep in each other", 0))
}

// deeperThan reports whether mappings and lists are nested deeper than so many levels.
func deeperThan(value any, levels int64) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if levels == 0 || deeperThan(inner, levels-1) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if levels == 0 || deeperThan(inner, levels-1) {
				return true
			}
		}
	}
	return false
}

// count notes so many more documents, or items of a List. It reports whether they may be
// looked at.
func (f *parsedFile) count(documents, line int) bool {
	f.documents += documents
	return f.check(line, f.limits.Check(limits.Documents, "there are too many documents", int64(f.documents)))
}

// check notes that a limit is exceeded, and reports whether it is not.
func (f *parsedFile) check(line int, exceeded error) bool {
	if exceeded != nil {
		f.problems = append(f.problems, Problem{Origin: Origin{Line: line}, Text: exceeded.Error(), Err: exceeded})
	}
	return exceeded == nil
}

// hopeless reports whether so much is wrong with a file that the rest of it says nothing
// new.
func (f *parsedFile) hopeless() bool { return len(f.problems) > maxProblems }

// lineCounter counts the lines of a text on the way through it.
type lineCounter struct {
	text   []byte
	offset int
	line   int // at the offset, from 1
}

// at returns the line of an offset that is not before the last one.
func (l *lineCounter) at(offset int) int {
	l.line += bytes.Count(l.text[l.offset:offset], []byte("\n"))
	l.offset = offset
	return l.line
}
