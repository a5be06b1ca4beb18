package observed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

func TestEntriesAreComparedByField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		one, other string
		equal      bool
	}{
		"the same":                      {`{"f:a":{}}`, `{"f:a":{}}`, true},
		"nothing":                       {``, ``, true},
		"fields in another order":       {`{"f:a":{},"f:b":{}}`, `{"f:b":{},"f:a":{}}`, true},
		"keys by number and as text":    {`{"f:ports":{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}}`, `{"f:ports":{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}}`, true},
		"values by number and as text":  {`{"f:set":{"v:80":{},"v:443":{},"v:9":{}}}`, `{"f:set":{"v:443":{},"v:80":{},"v:9":{}}}`, true},
		"members and what is in them":   {`{"k:{\"p\":9}":{".":{},"f:a":{}},"k:{\"p\":10}":{}}`, `{"k:{\"p\":10}":{},"k:{\"p\":9}":{"f:a":{},".":{}}}`, true},
		"one key of several keys":       {`{"k:{\"a\":1,\"b\":true}":{}}`, `{"k:{\"b\":true,\"a\":1}":{}}`, true},
		"white space":                   {`{"f:a":{}}`, "{ \"f:a\" :\n{} }", true},
		"an escape":                     {`{"f:a<b":{}}`, `{"f:a\u003cb":{}}`, true},
		"a quoted value":                {`{"v:\"say \\\"a\\\"\"":{},"v:\"b\"":{}}`, `{"v:\"b\"":{},"v:\"say \\\"a\\\"\"":{}}`, true},
		"a field less":                  {`{"f:a":{},"f:b":{}}`, `{"f:a":{}}`, false},
		"nothing and no field":          {``, `{}`, false},
		"the list and what is in it":    {`{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, false},
		"a number and its text":         {`{"v:80":{}}`, `{"v:\"80\"":{}}`, false},
		"a field and a key":             {`{"f:a":{}}`, `{"v:\"a\"":{}}`, false},
		"a key of another value":        {`{"k:{\"a\":1,\"b\":true}":{}}`, `{"k:{\"a\":1,\"b\":false}":{}}`, false},
		"cut off":                       {`{"f:a":{}`, `{"f:a":{}}`, false},
		"more behind it":                {`{"f:a":{}}{}`, `{"f:a":{}}`, false},
		"no object":                     {`["f:a"]`, `{}`, false},
		"elements of an unknown kind":   {`{"f:a":{},"x:b":{}}`, `{"f:a":{}}`, false},
		"another of an unknown kind":    {`{"x:a":{}}`, `{"x:b":{}}`, false},
		"an unknown kind, deeper":       {`{"f:a":{"x:b":{}}}`, `{"f:a":{}}`, false},
		"of no kind":                    {`{"a":{}}`, `{}`, false},
		"no UTF-8":                      {"{\"f:\xff\":{}}", "{\"f:\ufffd\":{}}", false},
		"not readable, but to the byte": {`{"x:b":{}}`, `{"x:b":{}}`, true},
		"not readable, reordered":       {`{"x:a":{},"x:b":{}}`, `{"x:b":{},"x:a":{}}`, false},
	}
	for name, test := range tests {
		if got := readEntry([]byte(test.one)).entry == readEntry([]byte(test.other)).entry; got != test.equal {
			t.Errorf("%s: %q and %q are equal: %v", name, test.one, test.other, got)
		}
	}
}

// An entry that cannot be read proves nothing: neither that we wrote the object, which a
// deletion rests upon, nor that it is as it was.
func TestUnreadableEntriesProveNothing(t *testing.T) {
	t.Parallel()
	for text, proves := range map[string]bool{
		`{"f:data":{"f:a":{}}}`: true, `{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}`: true,
		``: false, `{"x:a":{}}`: false, `{"f:data":`: false, `7`: false, `{"f:a":{}} {"f:b":{}}`: false,
	} {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: kube.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(text)},
		}}}
		if m := NewMember(schema.GroupKind{Kind: "ConfigMap"}, schema.GroupVersionResource{}, live); m.Applied != proves {
			t.Errorf("%q proves that we applied it: %v", text, m.Applied)
		}
	}
}

// What was read is remembered within bounds, and remembered rightly.
func TestReadEntriesAreBounded(t *testing.T) {
	t.Parallel()
	var read Reader
	padding := strings.Repeat("x", 10_000)
	for i := range 1000 {
		for _, text := range []string{
			fmt.Sprintf(`{"f:%s%d":{},"f:b":{}}`, padding, i%700), fmt.Sprintf(`{"f:b":{},"f:%s%d":{}}`, padding, i%700), `{"x:a":{}}`, ``,
		} {
			if got, want := read.read([]byte(text)), readEntry([]byte(text)); got != want {
				t.Fatalf("%.20q… is remembered as another entry", text)
			}
		}
		if read.size > readEntriesSize {
			t.Fatalf("%d bytes are remembered", read.size)
		}
	}
	if large := []byte(`{"f:` + strings.Repeat("x", readEntriesSize) + `":{}}`); !read.read(large).sound || read.size > readEntriesSize {
		t.Errorf("after a huge entry %d bytes are remembered", read.size)
	}
}

// podEntry is what kubesync owns of a Deployment with so many ports and variables, in
// any order.
func podEntry(random *rand.Rand, items int) []byte {
	list := func(form string, inner string) string {
		texts := make([]string, items)
		for i := range texts {
			texts[i] = fmt.Sprintf(form, 7*i+80) + inner
		}
		random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		return strings.Join(texts, ",")
	}
	return fmt.Appendf(nil, `{"f:metadata":{"f:labels":{"f:app":{},"f:applyset.kubernetes.io/part-of":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{`+
		`"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{%s},"f:image":{},"f:name":{},"f:ports":{%s}}}}}}}`,
		list(`"k:{\"name\":\"VARIABLE_%d\"}":`, `{".":{},"f:name":{},"f:value":{}}`),
		list(`"k:{\"containerPort\":%d,\"protocol\":\"TCP\"}":`, `{".":{},"f:containerPort":{}}`))
}

func TestEntryInAnyOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	want := readEntry(podEntry(random, 40))
	for range 200 {
		if text := podEntry(random, 40); readEntry(text) != want {
			t.Fatalf("%s differs from the same fields in another order", text)
		}
	}
}

// BenchmarkEntry reads what an event brings: the entry of a Deployment that was seen
// before, and one that is new, of which the order is as it should be, or any.
func BenchmarkEntry(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	shuffled := podEntry(random, 10)
	ordered := []byte(readEntry(shuffled).entry.Value())
	texts := map[string][]byte{"ordered": ordered, "shuffled": shuffled, "small": []byte(`{"f:data":{"f:text":{}},"f:metadata":{"f:labels":{"f:applyset.kubernetes.io/part-of":{}}}}`)}
	for name, text := range texts {
		b.Run("new/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				readEntry(text)
			}
		})
		b.Run("known/"+name, func(b *testing.B) {
			var read Reader
			kept := slices.Clone(text)
			b.ReportAllocs()
			for b.Loop() {
				read.read(kept)
			}
		})
	}
}

// BenchmarkMember reduces an event of a Deployment, as every event is.
func BenchmarkMember(b *testing.B) {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: "u", ResourceVersion: "1", Generation: 1, Labels: map[string]string{manifest.PartOfLabel: "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", 1000) + "{}")},
			{Manager: kube.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(podEntry(rand.New(rand.NewPCG(1, 2)), 10)))},
		},
	}}
	gk, gvr := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	b.Run("remembered", func(b *testing.B) {
		var read Reader
		b.ReportAllocs()
		for b.Loop() {
			read.Member(gk, gvr, live)
		}
	})
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewMember(gk, gvr, live)
		}
	})
}
