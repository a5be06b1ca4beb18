package observed

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// FuzzFields reads whatever may stand in managedFields. What is read is the same when it
// is written and read again.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`, `{"f:spec":{"k:{\"name\":\"x\"}":{"f:image":{}},"v:1":{},"i:0":{}}}`,
		`{"f:a":1}`, `{"k:{":{}}`, `{"x:":{}}`, "[]", "null", `{"f:a":{"f:a":{"f:a":{}}}}`, `{"v:{\"a\":[1]}":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := readEntry([]byte(text))
		if again := readEntry([]byte(read.entry.Value())); again != read {
			t.Errorf("%q is kept as %q, and that as %q", text, read.entry.Value(), again.entry.Value())
		}
		if !read.sound && read.entry.Value() != text {
			t.Errorf("%q cannot be read and is kept as %q", text, read.entry.Value())
		}
		fields, err := FieldsOf(text)
		if kept, _ := FieldsOf(read.entry.Value()); read.sound && (err != nil || !kept.Equals(fields)) {
			t.Errorf("%q is kept as %q, which is another set: %v", text, read.entry.Value(), err)
		}
		if err != nil || !utf8.ValidString(text) { // JSON is UTF-8
			return
		}
		written, err := fields.ToJSON()
		if err != nil {
			return // a key that was read as it cannot be written
		}
		again := fieldpath.NewSet()
		if err := again.FromJSON(strings.NewReader(string(written))); err != nil || !again.Equals(fields) {
			t.Errorf("%q is written as %q and read as another set: %v", text, written, err)
		}
	})
}
