package manifest

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/internal/limits"
)

// TestDifferences shows when a check looks at what has changed alone, and that the rules
// are asked once of each kind and namespace.
func TestDifferences(t *testing.T) {
	t.Parallel()
	files := func(change map[string]string) hashedFS {
		all := manifests()
		for i := range 30 {
			all[fmt.Sprintf("m%02d.yaml", i)] = &fstest.MapFile{Data: []byte(bare("v1", "ConfigMap", fmt.Sprint("team-", i%3), fmt.Sprint("c", i)))}
		}
		for name, text := range change {
			if delete(all, name); text != "" {
				all[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		return hashedFS{all, map[string]int{}}
	}
	for name, test := range map[string]struct {
		change map[string]string
		served Scope // of Widgets
		closed string
		want   bool
		stay   []string // the objects that changed, where all others stay and none comes
	}{
		"nothing":                   {want: true, stay: []string{}},
		"a content":                 {change: map[string]string{"m04.yaml": bare("v1", "ConfigMap", "team-1", "c4") + "data: {a: b}\n"}, want: true, stay: []string{"ConfigMap/team-1/c4"}},
		"a line further down":       {change: map[string]string{"m04.yaml": "\n" + bare("v1", "ConfigMap", "team-1", "c4")}, want: true, stay: []string{"ConfigMap/team-1/c4"}},
		"one for another":           {change: map[string]string{"m04.yaml": bare("v1", "ConfigMap", "team-1", "other")}, want: true},
		"another version":           {change: map[string]string{"m05.yaml": bare("v2", "ConfigMap", "team-2", "c5")}},
		"changed, added, removed":   {change: map[string]string{"m03.yaml": bare("v1", "ConfigMap", "team-0", "other"), "m20a.yaml": bare("v1", "Secret", "", "new"), "m29.yaml": ""}, want: true},
		"moved to another file":     {change: map[string]string{"m03.yaml": "", "z.yaml": bare("v1", "ConfigMap", "team-0", "c3")}, want: true, stay: []string{"ConfigMap/team-0/c3"}},
		"changed places":            {change: map[string]string{"m03.yaml": bare("v1", "ConfigMap", "team-1", "c4"), "m04.yaml": bare("v1", "ConfigMap", "team-0", "c3")}, want: true, stay: []string{"ConfigMap/team-0/c3", "ConfigMap/team-1/c4"}},
		"declared twice":            {change: map[string]string{"z.yaml": bare("v1", "ConfigMap", "team-0", "c3")}},
		"a kind that is not served": {change: map[string]string{"z.yaml": bare("example.com/v1", "Widget", "", "w")}},
		"a kind that is":            {change: map[string]string{"z.yaml": bare("example.com/v1", "Widget", "", "w")}, served: ScopeNamespaced, want: true},
		"a CRD":                     {change: map[string]string{"z.yaml": fmt.Sprintf(widgets, "Cluster")}},
		"a system namespace":        {closed: "team-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed, asked := "", map[string]int{}
			rules := Rules{
				Tier:            Application,
				SystemNamespace: func(name string) bool { asked[name]++; return name == closed },
				Scope: func(gvk schema.GroupVersionKind) Scope {
					asked[gvk.String()]++
					if gvk.Kind == "Widget" {
						return test.served
					}
					return OfflineScope(gvk)
				},
			}
			loader, checker := NewLoader(limits.Limits{}), new(Checker)
			loaded, _ := loader.Load(files(nil))
			if _, err := checker.Check(loaded.Objects, rules); err != nil {
				t.Fatal(err)
			}
			closed = test.closed
			loaded, _ = loader.Load(files(test.change))
			want := verdict(Check(loaded.Objects, rules))
			clear(asked)
			run := newCheck(loaded.Objects, rules)
			run.gate = checker.gate
			if run.differences(checker.last) != test.want {
				t.Errorf("looked at the differences alone: %t", !test.want)
			}
			for of, times := range asked {
				if times != 1 {
					t.Errorf("asked %d times of %s", times, of)
				}
			}
			if !test.want {
				run.all(checker.last)
			}
			changed := []string{}
			for _, o := range run.checked.Changed {
				changed = append(changed, o.ID().String())
			}
			slices.Sort(changed)
			if run.checked.Stay != (test.stay != nil) || run.checked.Stay && !slices.Equal(changed, test.stay) {
				t.Errorf("all others stay: %t, and these changed: %s", run.checked.Stay, changed)
			}
			if got := verdict(run.checked, run.problems.asError()); got != want {
				t.Errorf("got:\n%s\nfrom scratch:\n%s", got, want)
			}
		})
	}
}

// listedFS is a hashedFS whose directories have a hash too. It notes which are looked into.
type listedFS struct {
	hashedFS
	lists *[]string
}

func (l listedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	*l.lists = append(*l.lists, name)
	return l.readDir(name, l.stat)
}

func (l listedFS) stat(name string) (fs.FileInfo, error) {
	info, err := l.Stat(name)
	if err != nil || !info.IsDir() {
		return info, err
	}
	var text strings.Builder
	for _, file := range slices.Sorted(maps.Keys(l.MapFS)) {
		if strings.HasPrefix(file, name+"/") {
			text.WriteString(file + string(l.MapFS[file].Data))
		}
	}
	return hashedInfo{info, text.String()}, nil
}

// TestLoaderSkipsDirectories looks into no directory again that has the same hash, and still
// returns what is in it, in its place.
func TestLoaderSkipsDirectories(t *testing.T) {
	t.Parallel()
	a, b, c := fmt.Sprintf(configMap, "a"), fmt.Sprintf(configMap, "b"), fmt.Sprintf(configMap, "c")
	loader := NewLoader(limits.Limits{})
	for _, step := range []struct {
		name  string
		files []string
		lists string
		want  string
	}{
		{"first", []string{"a/x.yaml", a, "b/in/x.yaml", b}, ". a b b/in", "object a/x.yaml:1 ConfigMap/a\nobject b/in/x.yaml:1 ConfigMap/b\n"},
		{"before it", []string{"a/x.yaml", c, "a/y.yaml", a, "b/in/x.yaml", b}, ". a", "object a/x.yaml:1 ConfigMap/c\nobject a/y.yaml:1 ConfigMap/a\nobject b/in/x.yaml:1 ConfigMap/b\n"},
		{"beside it", []string{"b/in/x.yaml", b, "b/x.yaml", "x: y"}, ". b",
			"object b/in/x.yaml:1 ConfigMap/b\nskipped b/x.yaml:1: neither apiVersion nor kind: no Kubernetes object, skipped\n"},
		{"skipped again", []string{"a/x.yaml", a, "b/in/x.yaml", b, "b/x.yaml", "x: y"}, ". a",
			"object a/x.yaml:1 ConfigMap/a\nobject b/in/x.yaml:1 ConfigMap/b\nskipped b/x.yaml:1: neither apiVersion nor kind: no Kubernetes object, skipped\n"},
		{"another name", []string{"a/x.yaml", a, "c/in/x.yaml", b}, ". c c/in", "object a/x.yaml:1 ConfigMap/a\nobject c/in/x.yaml:1 ConfigMap/b\n"},
	} {
		lists := []string{}
		got := lines(loader.Load(listedFS{hashedFS{manifests(step.files...), map[string]int{}}, &lists}))
		slices.Sort(lists)
		if looked := strings.Join(lists, " "); got != step.want || looked != step.lists {
			t.Errorf("%s: looked into %s, want %s; got:\n%s\nwant:\n%s", step.name, looked, step.lists, got, step.want)
		}
	}
}
