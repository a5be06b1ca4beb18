package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kubesync/kubesync/internal/limits"
)

// manifests makes a file system of files, and of their contents.
func manifests(pathsAndTexts ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pathsAndTexts); i += 2 {
		files[pathsAndTexts[i]] = &fstest.MapFile{Data: []byte(pathsAndTexts[i+1])}
	}
	return files
}

// lines tells what Load found, a line each.
func lines(loaded Loaded, err error) string {
	var b strings.Builder
	for _, o := range loaded.Objects {
		fmt.Fprintf(&b, "object %s %s\n", o.Origin, o.ID())
	}
	for _, s := range loaded.Skipped {
		fmt.Fprintf(&b, "skipped %s\n", s)
	}
	if err != nil {
		for _, p := range strings.Split(err.Error(), "\n") {
			fmt.Fprintf(&b, "problem %s\n", p)
		}
	}
	return b.String()
}

// notALabel is what the API machinery says of a name that is no DNS label.
const notALabel = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
	"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"

func TestLoad(t *testing.T) {
	t.Parallel()
	a, b := fmt.Sprintf(configMap, "a"), fmt.Sprintf(configMap, "b")
	twoObjects := func(line int) string {
		return fmt.Sprintf("object m.yaml:1 ConfigMap/a\nobject m.yaml:%d ConfigMap/b\n", line)
	}
	for name, test := range map[string]struct{ text, want string }{
		"one document":              {a, "object m.yaml:1 ConfigMap/a\n"},
		"two documents":             {a + "---\n" + b, twoObjects(5)},
		"separator first and last":  {"---\n" + a + "---\n", "object m.yaml:2 ConfigMap/a\n"},
		"separators in a row":       {a + "---\n---\n---\n" + b, twoObjects(7)},
		"separator with a comment":  {a + "--- # next\n" + b, twoObjects(5)},
		"separator with blanks":     {a + "---  \t\n" + b, twoObjects(5)},
		"separator without newline": {a + "---", "object m.yaml:1 ConfigMap/a\n"},
		"comments and blank lines":  {"# Source: chart\n\n  # more\n" + a + "---\n# nothing here\n---\n\n# b\n" + b, "object m.yaml:4 ConfigMap/a\nobject m.yaml:12 ConfigMap/b\n"},
		"comments only":             {"# a\n---\n# b\n", ""},
		"empty":                     {"", ""},
		"null":                      {"null\n---\n~\n", ""},
		"end marker":                {a + "...\n" + b, twoObjects(5)},
		"byte order mark":           {"\ufeff" + a + "---\n" + b, twoObjects(5)},
		"byte order mark, comment":  {"\ufeff# a\n" + a, "object m.yaml:2 ConfigMap/a\n"},
		"CRLF":                      {strings.ReplaceAll(a+"---\n"+b, "\n", "\r\n"), twoObjects(5)},
		"CR":                        {strings.ReplaceAll(a+"---\n"+b, "\n", "\r"), twoObjects(5)},
		"not in a block scalar": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    ---\n    x\n---\n" + b, twoObjects(9)},
		"separator with content": {a + "--- {}\n" + b, twoObjects(5) + "problem m.yaml:4: a line that starts with --- separates documents and may hold nothing else\n"},
		"four dashes":            {a + "----\n" + b, twoObjects(5) + "problem m.yaml:4: a line that starts with --- separates documents and may hold nothing else\n"},

		"JSON":                  {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "object m.yaml:1 ConfigMap/a\n"},
		"JSON values in a row":  {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\n\"metadata\":{\"name\":\"b\"}}", twoObjects(3)},
		"JSON and YAML":         {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n---\n" + b, twoObjects(3)},
		"JSON and a comment":    {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n# the end\n", "object m.yaml:1 ConfigMap/a\n"},
		"YAML in braces":        {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "object m.yaml:1 ConfigMap/a\n"},
		"JSON, broken":          {"{\"apiVersion\":\"v1\",\n\"kind\":\"ConfigMap\"\n\"metadata\":{}}", "problem m.yaml:3: not valid JSON: invalid character '\"' after object key:value pair\n"},
		"JSON, cut off":         {"{\"apiVersion\":\"v1\",\n\"kind\":\"Conf", "problem m.yaml:2: not valid JSON: unexpected EOF\n"},
		"JSON, rubbish after":   {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n}", "object m.yaml:1 ConfigMap/a\nproblem m.yaml:2: not valid JSON: invalid character '}' looking for beginning of value\n"},
		"JSON, duplicate key":   {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\n\"metadata\":{\"name\":\"a\",\n\"labels\":{},\n\"name\":\"b\"}}", "problem m.yaml:4: duplicate key metadata.name: it is set on line 2 already\n"},
		"JSON, duplicate long":  {"{\"" + strings.Repeat("k", 2000) + "\":1,\n\"" + strings.Repeat("k", 2000) + "\":1}", "problem m.yaml:1: duplicate key: duplicate field \"" + strings.Repeat("k", 2000) + "\"\n"},
		"JSON, tabs and escape": {"{\n\t\"apiVersion\":\"v1\",\n\t\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"\\u0061\"},\"data\":{\"k\":\"\\ud83d\\ude00\\/\"}}", "object m.yaml:1 ConfigMap/a\n"},

		"List": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n\n# b\n-\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n",
			"object m.yaml:4 ConfigMap/a\nobject m.yaml:10 ConfigMap/b\n"},
		"typed List": {
			"apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n", "object m.yaml:4 ConfigMap/a\nobject m.yaml:5 ConfigMap/b\n"},
		"List in a List": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  - metadata: {name: a}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n",
			"object m.yaml:7 ConfigMap/a\nobject m.yaml:8 ConfigMap/b\n"},
		"List after a document": {
			a + "---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n", twoObjects(8)},
		"List as JSON": {
			"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}},\n\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}}]}",
			"object m.yaml:2 ConfigMap/a\nobject m.yaml:4 ConfigMap/b\n"},
		"List as JSON, odd texts": {
			"{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[\n\t{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"<<\":\"\u007f\u0085\u2028\\ud83d\\ude00\\/*a &b\"}},\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}}]}",
			"object m.yaml:2 ConfigMap/a\nobject m.yaml:3 ConfigMap/b\n"},
		"List, empty":          {"apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\n---\napiVersion: v1\nkind: List\nitems: null\n", ""},
		"List of wrong items":  {"apiVersion: v1\nkind: List\nitems:\n- x\n- {metadata: {name: a}}\n", "problem m.yaml:4: items[0] of the List is a string, not an object\nproblem m.yaml:5: a: apiVersion is missing\nproblem m.yaml:5: a: kind is missing\n"},
		"kind that ends so":    {"apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: []}\n", "object m.yaml:1 AllowList/a\n"},
		"anchors":              {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a}\ndata: {k: *n}\n", "object m.yaml:1 ConfigMap/a\n"},
		"merge keys":           {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x {k: v}\ndata:\n  <<: *x\n  k: w\n", "object m.yaml:1 ConfigMap/a\n"},
		"items by alias":       {"x: &x {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\napiVersion: v1\nkind: List\nitems:\n- *x\n", "object m.yaml:5 ConfigMap/a\n"},
		"compose file":         {"services: {web: {image: x}}\n", "skipped m.yaml:1: neither apiVersion nor kind: no Kubernetes object, skipped\n"},
		"array":                {"- hosts: all\n", "skipped m.yaml:1: an array: no Kubernetes object, skipped\n"},
		"array of objects":     {"- apiVersion: v1\n  kind: ConfigMap\n", "problem m.yaml:1: an array of objects: Kubernetes wants them in a List (apiVersion: v1, kind: List, items: …) or as documents of their own\n"},
		"text":                 {"just text\n", "problem m.yaml:1: a single value and no object: a Kubernetes manifest is a mapping with apiVersion and kind\n"},
		"Git LFS pointer":      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "problem m.yaml:1: this is a Git LFS pointer, not the manifest: kubesync fetches no LFS objects, commit the file itself\n"},
		"not UTF-8":            {a + "# \xff\n", "problem m.yaml:4: the file is not UTF-8 text\n"},
		"UTF-16":               {"\xff\xfea\x00", "problem m.yaml:1: the file is not UTF-8 text\n"},
		"NUL":                  {a + "# x\ndata: {k: \"\x00\"}\n", "problem m.yaml:5: not valid YAML: control characters are not allowed\n"},
		"broken, others found": {"a: [\n---\n" + a + "---\nb: b: b\n---\n" + b, "object m.yaml:3 ConfigMap/a\nobject m.yaml:9 ConfigMap/b\nproblem m.yaml:1: not valid YAML: did not find expected node content\nproblem m.yaml:7: not valid YAML: mapping values are not allowed in this context\n"},
		"tab":                  {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n", "problem m.yaml:4: not valid YAML: found character that cannot start any token (the line is indented with a tab: YAML wants spaces)\n"},
		"template":             {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}\n", "problem m.yaml:4: not valid YAML: a mapping, a list or null stands where a key belongs (a template that was not rendered?)\n"},
		"template control":     {"# x\n{{ if .Values.x }}\napiVersion: v1\n{{ end }}\n", "problem m.yaml:2: not valid YAML: a mapping, a list or null stands where a key belongs (a template that was not rendered?)\n"},
		"flow never closed":    {a + "data: {k: [x\nl: y\n", "problem m.yaml:4: not valid YAML: did not find expected ',' or ']'\n"},
		"bad indent":           {a + "data:\n  k: x\n l: y\n", "problem m.yaml:6: not valid YAML: did not find expected key\n"},
		"infinite":             {a + "x: .inf\n", "problem m.yaml:4: not valid YAML: a number that is infinite or not a number\n"},
		"does not fit its tag": {a + "x: !!int y\n", "problem m.yaml:4: not valid YAML: a value does not fit the tag (!!type) before it\n"},
		"null as a key":        {a + "x: {~: y}\n", "problem m.yaml:4: not valid YAML: a mapping, a list or null stands where a key belongs\n"},
		"merge of a text":      {a + "x: {<<: y}\n", "problem m.yaml:4: not valid YAML: << stands without the mapping that it merges\n"},
		"duplicate key":        {"# x\n" + a + "data:\n  k: 1\n  l: 2\n  k: 3\n", "problem m.yaml:8: duplicate key data.k: it is set on line 6 already\n"},
		"duplicate keys, list": {a + "x:\n- y: {z: 1, z: 2}\nkind: B\n", "problem m.yaml:5: duplicate key x.y.z: it is set on line 5 already\nproblem m.yaml:6: duplicate key kind: it is set on line 2 already\n"},
		"anchor unknown":       {a + "data: {password: *hunter2}\n", "problem m.yaml:4: not valid YAML: an alias (*name) without its anchor (&name); text that starts with * must be quoted\n"},
		"anchor in itself":     {a + "data: &d {k: *d}\n", "problem m.yaml:1: its aliases stand for too much, or contain themselves: more than 32 MiB, the limit \"expansion\" (one document with its YAML aliases (*) replaced by what they stand for) is 32 MiB; that is fixed\n"},
		"only kind":            {"kind: ConfigMap\nmetadata: {name: a}\n", "problem m.yaml:1: ConfigMap/a: apiVersion is missing\n"},
		"only apiVersion":      {"apiVersion: v1\nmetadata: {name: a}\n", "problem m.yaml:1: a: kind is missing\n"},
		"apiVersion invalid":   {"apiVersion: a/b/c\nkind: X\nmetadata: {name: a}\n", "problem m.yaml:1: X/a: apiVersion \"a/b/c\" is neither version nor group/version\n"},
		"types": {"apiVersion: 1\nkind: [x]\nmetadata: {name: 2, namespace: true}\n",
			"problem m.yaml:1: apiVersion must be a string, not a number, put it in quotes\nproblem m.yaml:1: kind must be a string, not a list\n" +
				"problem m.yaml:1: metadata.name must be a string, not a number, put it in quotes\nproblem m.yaml:1: metadata.namespace must be a string, not a boolean, put it in quotes\n"},
		"no metadata":       {"apiVersion: v1\nkind: ConfigMap\n", "problem m.yaml:1: ConfigMap: metadata.name is missing\n"},
		"metadata wrong":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: []\n", "problem m.yaml:1: ConfigMap: metadata must be a mapping, not a list\n"},
		"no name":           {"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "problem m.yaml:1: ConfigMap: metadata.name is missing\n"},
		"empty name":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ''}\n", "problem m.yaml:1: ConfigMap: metadata.name is empty\n"},
		"name with a slash": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../x}\n", "problem m.yaml:1: ConfigMap/../x: metadata.name \"../x\" may not contain '/'\n"},
		"namespace invalid": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: A_b}\n", "problem m.yaml:1: ConfigMap/a: metadata.namespace \"A_b\": " + notALabel + "\n"},
		"generateName":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", "problem m.yaml:1: ConfigMap: metadata.generateName cannot be declared: every sync would create another object; give it a metadata.name\n"},
		"labels and annotations": {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {ok: x, num: 1, nothing: null}\n  annotations: {b: true}\n",
			"problem m.yaml:1: ConfigMap/a: metadata.labels[\"num\"] must be a string, not a number, put it in quotes\nproblem m.yaml:1: ConfigMap/a: metadata.annotations[\"b\"] must be a string, not a boolean, put it in quotes\n"},
		"labels, a list": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [x], annotations: null}\n", "problem m.yaml:1: ConfigMap/a: metadata.labels must be a mapping, not a list\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lines(NewLoader(limits.Limits{}).Load(manifests("m.yaml", test.text))); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// What is wrong in one file hides nothing in another, and all is in order.
func TestLoadManyFiles(t *testing.T) {
	t.Parallel()
	files := manifests(
		"b/two.yaml", "a: [\n---\n"+fmt.Sprintf(configMap, "b"),
		"a.yaml", fmt.Sprintf(configMap, "a")+"---\nkind: X\nmetadata: {name: x}\n---\nb: ]\n",
		"c.json", "{",
		"values.yaml", "image: x\n",
	)
	want := `object a.yaml:1 ConfigMap/a
object b/two.yaml:3 ConfigMap/b
skipped values.yaml:1: neither apiVersion nor kind: no Kubernetes object, skipped
problem a.yaml:5: X/x: apiVersion is missing
problem a.yaml:8: not valid YAML: did not find expected node content
problem b/two.yaml:1: not valid YAML: did not find expected node content
problem c.json:1: not valid JSON: unexpected EOF
`
	if got := lines(NewLoader(limits.Limits{}).Load(files)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// brokenFS cannot open one file and cannot list one directory.
type brokenFS struct{ fstest.MapFS }

func (b brokenFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "broken") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is inside a submodule")}
	}
	return b.MapFS.Open(name)
}

func (b brokenFS) ReadFile(name string) ([]byte, error) { return fs.ReadFile(fs.FS(onlyOpen{b}), name) }

func (b brokenFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if strings.HasPrefix(name, "broken") {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.ReadDir(name)
}

// onlyOpen hides the other methods of a file system.
type onlyOpen struct{ fs.FS }

func TestLoadUnreadable(t *testing.T) {
	t.Parallel()
	files := brokenFS{manifests("a.yaml", fmt.Sprintf(configMap, "a"), "broken.yaml", "x", "broken/c.yaml", "x")}
	loaded, err := NewLoader(limits.Limits{}).Load(files)
	want := `object a.yaml:1 ConfigMap/a
problem broken: cannot be read: permission denied
problem broken.yaml: cannot be read: it is inside a submodule
`
	if got := lines(loaded, err); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Error("the cause of a problem cannot be found in the error")
	}
}

// hashedFS counts the files that are opened, and knows their hashes.
type hashedFS struct {
	fstest.MapFS
	reads map[string]int
}

type hashedInfo struct {
	fs.FileInfo
	hash string
}

func (i hashedInfo) Hash() string { return i.hash }

func (h hashedFS) Stat(name string) (fs.FileInfo, error) {
	info, err := h.MapFS.Stat(name)
	if file := h.MapFS[name]; file != nil {
		info = hashedInfo{info, string(file.Data)}
	}
	return info, err
}

func (h hashedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return h.readDir(name, h.Stat)
}

// readDir lists a directory whose entries take what is known of them from stat.
func (h hashedFS) readDir(name string, stat func(string) (fs.FileInfo, error)) ([]fs.DirEntry, error) {
	entries, err := h.MapFS.ReadDir(name)
	for i, entry := range entries {
		entries[i] = hashedEntry{entry, path.Join(name, entry.Name()), stat}
	}
	return entries, err
}

type hashedEntry struct {
	fs.DirEntry
	name string
	stat func(string) (fs.FileInfo, error)
}

func (e hashedEntry) Info() (fs.FileInfo, error) { return e.stat(e.name) }

func (h hashedFS) ReadFile(name string) ([]byte, error) {
	h.reads[name]++
	return h.MapFS.ReadFile(name)
}

func TestLoaderRemembers(t *testing.T) {
	t.Parallel()
	a, b := fmt.Sprintf(configMap, "a"), fmt.Sprintf(configMap, "b")
	loader := NewLoader(limits.Limits{})
	load := func(pathsAndTexts ...string) (string, int) {
		files := hashedFS{manifests(pathsAndTexts...), map[string]int{}}
		return lines(loader.Load(files)), len(files.reads)
	}
	for _, step := range []struct {
		name  string
		files []string
		want  string
		reads int
	}{
		{"first", []string{"a.yaml", a, "b.yaml", b}, "object a.yaml:1 ConfigMap/a\nobject b.yaml:1 ConfigMap/b\n", 2},
		{"unchanged", []string{"a.yaml", a, "b.yaml", b}, "object a.yaml:1 ConfigMap/a\nobject b.yaml:1 ConfigMap/b\n", 0},
		{"renamed", []string{"c.yaml", a, "b.yaml", b}, "object b.yaml:1 ConfigMap/b\nobject c.yaml:1 ConfigMap/a\n", 0},
		{"one changed", []string{"c.yaml", a, "b.yaml", "x: y"}, "object c.yaml:1 ConfigMap/a\nskipped b.yaml:1: neither apiVersion nor kind: no Kubernetes object, skipped\n", 1},
		{"what was forgotten", []string{"b.yaml", b}, "object b.yaml:1 ConfigMap/b\n", 1},
	} {
		if got, reads := load(step.files...); got != step.want || reads != step.reads {
			t.Errorf("%s: %d files read, want %d; got:\n%s\nwant:\n%s", step.name, reads, step.reads, got, step.want)
		}
	}
	if len(loader.last.entries) != 1 {
		t.Errorf("the loader remembers %d files, want those of the last Load only", len(loader.last.entries))
	}
}

// Without a hash from the file system the content itself is the key: CMD's
// output is parsed once while it stays the same.
func TestLoaderRemembersContent(t *testing.T) {
	t.Parallel()
	loader := NewLoader(limits.Limits{})
	files := manifests("a.yaml", fmt.Sprintf(configMap, "a"))
	first, _ := loader.Load(files)
	second, _ := loader.Load(files)
	if first.Objects[0].Content != second.Objects[0].Content {
		t.Error("a file with the same content was parsed again")
	}
}

// The values of a broken manifest may be secret; its error goes to logs.
func TestLoadErrorsHideValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, text := range map[string]string{
		"alias":            "password: *hunter2\n",
		"int tag":          "password: !!int hunter2\n",
		"float tag":        "password: !!float hunter2\n",
		"binary tag":       "password: !!binary hunter2!\n",
		"map key":          "{password: hunter2}: x\n",
		"map key, flow":    "a: {{password: hunter2}}\n",
		"sequence key":     "? [hunter2]\n: x\n",
		"no colon":         "password: x\nhunter2\n",
		"bad indent":       "a:\n  password: hunter2\n b: c\n",
		"nested colon":     "password: hunter2: x\n",
		"quote":            "password: \"hunter2\n",
		"bad escape":       "password: \"\\hunter2\"\n",
		"merge":            "<<: hunter2\n",
		"duplicate":        "password: hunter2\npassword: hunter2\n",
		"tag directive":    "%TAG ! hunter2\n---\na: b\n",
		"undefined tag":    "a: !x!hunter2 b\n",
		"json":             "{\"password\": \"hunter2\" \"hunter2\"}",
		"json key":         "{\"a\": [hunter2}",
		"label":            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: [hunter2]}\n",
		"annotation":       "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {b: {c: hunter2}}}\n",
		"List item":        "apiVersion: v1\nkind: List\nitems: [hunter2]\n",
		"separator":        "--- hunter2\n",
		"scalar":           "hunter2\n",
		"infinite":         "password: .inf\nb: hunter2\n",
		"bad anchor":       "password: &hunter2\nx: *hunter\n",
		"anchor in itself": "password: &hunter2 [*hunter2]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewLoader(limits.Limits{}).Load(manifests("m.yaml", text))
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}

// A few lines of aliases must not fill the memory.
func TestLoadAliasesAreBounded(t *testing.T) {
	t.Parallel()
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	long := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100) + "]\n"
	for name, text := range map[string]string{"billion laughs": laughs, "long text": long} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Now()
			_, err := NewLoader(limits.Limits{}).Load(manifests("m.yaml", text))
			if err == nil || !strings.Contains(err.Error(), `the limit "expansion"`) {
				t.Errorf("got error %v", err)
			}
			if took := time.Since(before); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestJoinProblems(t *testing.T) {
	t.Parallel()
	if err := JoinProblems(nil, nil); err != nil {
		t.Errorf("nothing is wrong, but: %v", err)
	}
	twice := Problems{{Origin: Origin{"b.yaml", 2}, Text: "x"}}
	err := JoinProblems(twice, nil, Problems{{Origin: Origin{"a.yaml", 9}, Text: "y"}}, twice, fs.ErrInvalid)
	if want := "invalid argument\na.yaml:9: y\nb.yaml:2: x"; err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if !errors.Is(err, fs.ErrInvalid) {
		t.Error("the cause is lost")
	}
}
