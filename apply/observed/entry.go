package observed

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubesync/kubesync/apply/kube"
)

// entry is the set of fields that managedFields says kubesync has applied of an object;
// the empty text if none. Two entries are equal if, and only if, their fields are. Many
// objects have the same, so it is kept once.
//
// The API server writes one and the same set in several ways: the keys of associative
// lists come by number in the answer to a PATCH (80 before 443), and as text where the
// object has been written by others since. Therefore an entry is kept in the order that
// fieldpath.Set gives it. What cannot be read is kept as it came, and is then equal to
// nothing but itself, to the letter.
type Entry = unique.Handle[string]

// isOwn reports whether an entry of managedFields says what kubesync has applied.
func isOwn(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == kube.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply &&
		e.Subresource == "" && e.FieldsV1 != nil
}

// ownFields returns the text in managedFields that says what kubesync has applied; nil
// if it has applied nothing.
func ownFields(entries []metav1.ManagedFieldsEntry) []byte {
	for _, e := range entries {
		if isOwn(e) {
			return e.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// reading is what came of reading an entry.
type reading struct {
	entry Entry
	sound bool // the fields are known: they can prove that we wrote the object
}

// readEntry reads the text of an entry.
func readEntry(text []byte) reading {
	if len(text) == 0 {
		return reading{entry: unique.Make("")}
	}
	fields, err := inOrder(text)
	if err != nil {
		return reading{entry: unique.Make(string(text))}
	}
	return reading{entry: unique.Make(string(fields)), sound: true}
}

// inOrder returns the text of a set of fields in the one order that depends on nothing
// but the fields. It refuses what the library would read as less than it says: kinds of
// path elements that it does not know are left out of the set without a word.
func inOrder(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	if element, found := unknownElement(text); found {
		return nil, fmt.Errorf("path element %q is of no known kind", element)
	}
	var fields fieldpath.Set
	if err := fields.FromJSON(bytes.NewReader(text)); err != nil {
		return nil, err
	}
	return fields.ToJSON()
}

// unknownElement finds a string in JSON that is no path element of a known kind. In
// managedFields all strings are path elements.
func unknownElement(text []byte) (unknown []byte, found bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		start := i + 1
		for i++; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		element := text[start:min(i, len(text))]
		itself := len(element) == 1 && element[0] == '.'
		typed := len(element) > 1 && element[1] == ':' && strings.IndexByte("fkvi", element[0]) >= 0
		if !itself && !typed {
			return element, true
		}
	}
	return nil, false
}

// fieldsOf reads a set of fields as managedFields writes it.
func FieldsOf(text string) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if text == "" {
		return fields, nil
	}
	return fields, fields.FromJSON(strings.NewReader(text))
}

// readEntries remembers what texts were read as: events are many, and their texts few.
// Nil remembers nothing.
type Reader struct {
	mu    sync.Mutex
	known map[string]reading
	size  int // of the texts, in bytes
}

// readEntriesSize is how many bytes of text are remembered: some thousand entries of
// Deployments. What exceeds that is read anew, which takes microseconds.
const readEntriesSize = 2 << 20

// read reads the text of an entry, unless it is known.
func (r *Reader) read(text []byte) reading {
	if r == nil || len(text) == 0 {
		return readEntry(text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, found := r.known[string(text)]; found {
		return known
	}
	read := readEntry(text)
	if r.known == nil || r.size+len(text) > readEntriesSize {
		r.known, r.size = map[string]reading{}, 0 // those in use are soon known again
	}
	if len(text) <= readEntriesSize {
		r.known[string(text)] = read
		r.size += len(text)
	}
	return read
}
