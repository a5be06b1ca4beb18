package apply

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
		fields, err := fieldsOf(text)
		if kept, _ := fieldsOf(read.entry.Value()); read.sound && (err != nil || !kept.Equals(fields)) {
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

// FuzzAnnotation reads whatever may be said by an annotation of kubesync's. The fields
// that are to be left out are never those that an object is known by.
func FuzzAnnotation(f *testing.F) {
	for _, seed := range [][2]string{
		{ignoreAnnotation, "spec.replicas, metadata.annotations.example\\.com/note"}, {ignoreAnnotation, "metadata.name"}, {ignoreAnnotation, "a..b,[],\\"},
		{pruneAnnotation, "false"}, {pruneAnnotation, "no"}, {adoptAnnotation, " "}, {recreateAnnotation, "true"}, {suspendAnnotation, ""}, {steeringPrefix + "x", "y"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		faults := annotationFaults(name, value)
		if len(faults) > 1+strings.Count(value, ",") {
			t.Errorf("%d faults of %q", len(faults), value)
		}
		switch name {
		case pruneAnnotation, suspendAnnotation, recreateAnnotation:
			if (len(faults) == 0) != (value == "true" || value == "false") {
				t.Errorf("%s: %q: %v", name, value, faults)
			}
		}
		paths, _ := ignoredFields(value)
		for _, path := range paths {
			if len(path) == 0 || isIdentity(path) || strings.Join(path, "") == "" {
				t.Errorf("%q leaves out %q", value, path)
			}
		}
	})
}

// FuzzPruneLimit writes what it has read and reads it again, and bounds what a limit
// lets go.
func FuzzPruneLimit(f *testing.F) {
	for _, seed := range []string{"50%", "20", "0", "0%", "100%", "101%", "-1", "+5", " 7 ", "1e3", "", "%", "99999999999999999999"} {
		f.Add(seed, 20, 30)
	}
	f.Fuzz(func(t *testing.T, text string, leaving, live int) {
		limit, err := ParsePruneLimit(text)
		if err != nil {
			if limit != (PruneLimit{}) {
				t.Errorf("%q: an error and a limit", text)
			}
			return
		}
		if again, err := ParsePruneLimit(limit.String()); err != nil || again != limit {
			t.Errorf("%q is written as %q and read as %v: %v", text, limit, again, err)
		}
		if leaving < 0 || live < leaving || live > 1_000_000 {
			return
		}
		if limit.exceeded(leaving, live) && limit.exceeded(0, live) {
			t.Errorf("%q lets nothing go, not even nothing", text)
		}
		if !limit.exceeded(leaving, live) && leaving > smallPrune && limit.Percent && leaving*100 > limit.Value*live {
			t.Errorf("%q lets %d of %d go", text, leaving, live)
		}
	})
}
