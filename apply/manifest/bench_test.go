package manifest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/internal/limits"
)

// tenThousand makes 10,000 ConfigMaps, so many in a file, of some 300 bytes each.
func tenThousand(perFile int) fs.FS {
	files := fstest.MapFS{}
	for i := 0; i < 10_000; i += perFile {
		var b strings.Builder
		for j := range perFile {
			fmt.Fprintf(&b, `apiVersion: v1
kind: ConfigMap
metadata:
  name: config-%d
  namespace: team-%d
  labels:
    app.kubernetes.io/name: app-%d
    app.kubernetes.io/part-of: bench
  annotations:
    example.com/note: "made for a measurement"
data:
  LOG_LEVEL: info
  server.properties: |
    port=8080
    host=0.0.0.0
---
`, i+j, (i+j)%20, i+j)
		}
		files[fmt.Sprintf("dir/file-%05d.yaml", i)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return files
}

func BenchmarkLoad(b *testing.B) {
	for name, perFile := range map[string]int{"file-each": 1, "one-file": 10_000} {
		files := tenThousand(perFile)
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewLoader(limits.Limits{}).Load(files); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			loader := NewLoader(limits.Limits{})
			if _, err := loader.Load(files); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loader.Load(files); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	loaded, err := NewLoader(limits.Limits{}).Load(tenThousand(100))
	if err != nil {
		b.Fatal(err)
	}
	for _, tier := range []Tier{System, Application} {
		rules := Rules{
			Tier:      tier,
			Scope:     func(schema.GroupVersionKind) Scope { return ScopeNamespaced },
			HasStatus: func(schema.GroupVersionKind) bool { return false },
		}
		b.Run(tier.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Check(loaded.Objects, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(tier.String()+"/again", func(b *testing.B) {
			var checker Checker
			if _, err := checker.Check(loaded.Objects, rules); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := checker.Check(loaded.Objects, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDiff compares two large objects that differ in every tenth line.
func BenchmarkDiff(b *testing.B) {
	var live, next strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&live, "  key-%05d: value\n", i)
		fmt.Fprintf(&next, "  key-%05d: value%d\n", i, i%10/9)
	}
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"
	old, changed := objectsOf(b, head+live.String())[0], objectsOf(b, head+next.String())[0]
	for b.Loop() {
		if Diff(old.Tree(), changed.Tree()) == "" {
			b.Fatal("no difference")
		}
	}
}
