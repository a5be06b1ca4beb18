package transform

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/kubesync/kubesync/internal/limits"
)

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  k: v\n"
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: web
        image: web:1
`
)

func named(name string) string { return fmt.Sprintf(configMap, name) }

func TestKustomize(t *testing.T) {
	t.Parallel()
	const k = "kubernetes/kustomization.yaml"
	tests := map[string]struct {
		repo  repo
		files map[string]string // what each file of the result holds, in this order, separated by …
		notes string
		plain bool // nothing is built
	}{
		"resources": {
			repo:  repo{k: "resources: [b.yaml, a.yaml]\nnamePrefix: x-\n", "kubernetes/a.yaml": named("a"), "kubernetes/b.yaml": named("b") + "---\n" + named("c"), "kubernetes/unused.yaml": named("d")},
			files: map[string]string{"kubernetes/a.yaml": "name: x-a", "kubernetes/b.yaml": "name: x-b…\n---\n…name: x-c"},
		},
		"bases and components anywhere": {
			repo: repo{
				k: "resources: [../base, ../shared.yaml]\ncomponents: [../component]\n", "shared.yaml": named("shared"),
				"base/kustomization.yml": "resources: [sub/a.yaml]\n", "base/sub/a.yaml": named("a"),
				"component/Kustomization": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [c.yaml]\n", "component/c.yaml": named("c"),
			},
			files: map[string]string{"base/sub/a.yaml": "name: a", "shared.yaml": "name: shared", "component/c.yaml": "name: c"},
		},
		"generated objects": {
			repo:  repo{k: "configMapGenerator:\n- name: made\n  files: [key=../text]\n  envs: [e.env]\n- name: other\n  literals: [a=b]\n", "text": "hello", "kubernetes/e.env": "E=1\n"},
			files: map[string]string{k: "E: \"1\"…key: hello…name: made-…---…name: other-"},
		},
		"patches": {
			repo: repo{
				k:                   "resources: [d.yaml]\npatches:\n- path: p.yaml\n- target: {kind: Deployment}\n  patch: |-\n    - {op: replace, path: /metadata/name, value: patched}\nimages: [{name: web, newTag: '2'}]\n",
				"kubernetes/d.yaml": deployment, "kubernetes/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
			},
			files: map[string]string{"kubernetes/d.yaml": "name: patched…replicas: 3…image: web:2"},
		},
		"inline patch of the old form": {
			repo: repo{
				k:                   "resources: [d.yaml]\npatchesStrategicMerge:\n- |-\n  apiVersion: apps/v1\n  kind: Deployment\n  metadata:\n    name: web\n    annotations:\n      text: " + strings.Repeat("long/", 1000) + "../../../../../../../../x\n",
				"kubernetes/d.yaml": deployment,
			},
			files: map[string]string{"kubernetes/d.yaml": "long/"},
			notes: "'patchesStrategicMerge' is deprecated",
		},
		"its own annotations are not left behind": {
			repo:  repo{k: "resources: [a.yaml]\nbuildMetadata: [managedByLabel]\n", "kubernetes/a.yaml": named("a")},
			files: map[string]string{"kubernetes/a.yaml": "managed-by: kustomize"},
		},
		"annotations that are wanted": {
			repo:  repo{k: "resources: [a.yaml]\nbuildMetadata: [originAnnotations]\n", "kubernetes/a.yaml": named("a")},
			files: map[string]string{"kubernetes/a.yaml": "config.kubernetes.io/origin"},
		},
		"as JSON": {
			repo:  repo{k: `{"resources": ["a.yaml"], "namespace": "x"}`, "kubernetes/a.yaml": named("a")},
			files: map[string]string{"kubernetes/a.yaml": "namespace: x"},
		},
		"links inside": {
			repo:  repo{k: "-> ../real/k.yaml", "real/k.yaml": "resources: [l.yaml, dir]\n", "kubernetes/l.yaml": "-> ../a", "a": named("a"), "kubernetes/dir": "-> ../base", "base/kustomization.yaml": "resources: [b.yaml]", "base/b.yaml": named("b")},
			files: map[string]string{"kubernetes/l.yaml": "name: a", "kubernetes/dir/b.yaml": "name: b"},
		},
		"helpers from files": {
			repo: repo{
				k:                   "resources: [a.yaml]\ntransformers: [t.yaml]\nopenapi: {path: ../schema.json}\nconfigurations: [c.yaml]\nreplacements:\n- path: r.yaml\n",
				"kubernetes/a.yaml": named("a"), "schema.json": `{"definitions": {}}`, "kubernetes/c.yaml": "nameReference: []\n",
				"kubernetes/t.yaml": "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
				"kubernetes/r.yaml": "source: {kind: ConfigMap, fieldPath: data.k}\ntargets: [{select: {kind: ConfigMap}, fieldPaths: [data.r], options: {create: true}}]\n",
			},
			files: map[string]string{"kubernetes/a.yaml": "r: v…a: b"},
		},
		"ignored kustomization": {
			repo:  repo{k: "nonsense", "kubernetes/a.yaml": named("a"), ".kubesyncignore": "kustomization.yaml"},
			files: map[string]string{"kubernetes/a.yaml": "name: a"},
			plain: true,
		},
		"kustomization below": {
			repo:  repo{"kubernetes/sub/kustomization.yaml": "nonsense", "kubernetes/a.yaml": named("a")},
			files: map[string]string{"kubernetes/a.yaml": "name: a"},
			plain: true,
		},
		"deprecated field": {
			repo:  repo{k: "resources: [a.yaml]\ncommonLabels: {a: b}\n", "kubernetes/a.yaml": named("a")},
			files: map[string]string{"kubernetes/a.yaml": "a: b"},
			notes: "kubernetes/kustomization.yaml: 'commonLabels' is deprecated",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := newTransform(t, Options{ConventionalDir: true}).Run(t.Context(), test.repo.input("1"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, contents(t, result.Files), test.files)
			if notes := strings.Join(result.Notes, "\n"); (test.notes == "") != (notes == "") || !strings.Contains(notes, test.notes) {
				t.Errorf("notes %q, want %q", notes, test.notes)
			}
			want := Source{KindConventional, "kubernetes", BuiltByKustomize}
			if test.plain {
				want.Builder = ""
			}
			if result.Source != want {
				t.Errorf("source %v, want %v", result.Source, want)
			}
			var expected []string
			for name := range test.files {
				expected = append(expected, name)
			}
			if err := fstest.TestFS(result.Files, expected...); err != nil {
				t.Error(err)
			}
		})
	}
}

// compare checks that files hold texts, in their order.
func compare(t *testing.T, files, wants map[string]string) {
	t.Helper()
	for name := range files {
		if _, ok := wants[name]; !ok {
			t.Errorf("unexpected file %s:\n%s", name, files[name])
		}
		if strings.Contains(files[name], "config.kubernetes.io/origin") != strings.Contains(wants[name], "config.kubernetes.io/origin") || strings.Contains(files[name], "annotations: {}") {
			t.Errorf("%s: annotations of the build:\n%s", name, files[name])
		}
	}
	for name, want := range wants {
		rest := files[name]
		for text := range strings.SplitSeq(want, "…") {
			_, after, ok := strings.Cut(rest, text)
			if !ok {
				t.Errorf("%s lacks %q at its place:\n%s", name, text, files[name])
			}
			rest = after
		}
	}
}

// server counts the requests that reach it.
func server(t *testing.T) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(named("remote")))
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

func TestKustomizeRefuses(t *testing.T) {
	t.Parallel()
	url, requests := server(t)
	// A repository that could really be cloned.
	bare := filepath.Join(t.TempDir(), "org", "repo.git")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--bare", bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	patchFrom := func(path string) string {
		return "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: " + path + "\n"
	}
	tests := map[string]struct {
		text string // of the kustomization
		more repo
		err  string
	}{
		"remote resource":                  {text: "resources: [URL/a.yaml]", err: "kubernetes/kustomization.yaml: resources: URL/a.yaml is remote"},
		"remote in upper case":             {text: "resources: ['HTTPURL/a.yaml']", err: "is remote"},
		"password in a URL":                {text: "resources: ['https://me:secret@example.org/a.yaml']", err: "resources: https://example.org/a.yaml is remote"},
		"token in a URL":                   {text: "resources: ['git::https://secret@example.org/a%.git']", err: "resources: git::https://example.org/a%.git is remote"},
		"remote base":                      {text: "bases: ['https://example.org/org/repo.git//base?ref=v1']", err: "bases: https://example.org/org/repo.git//base?ref=v1 is remote"},
		"remote by host":                   {text: "resources: [github.com/org/repo]", err: "resources: github.com/org/repo is remote"},
		"remote by ssh":                    {text: "resources: ['git@example.org:org/repo']", err: "resources: git@example.org:org/repo is remote"},
		"remote by prefix":                 {text: "resources: ['git::https://example.org/org/repo']", err: "is remote"},
		"local clone":                      {text: "resources: ['file://" + bare + "']", err: "resources: file://" + bare + " is remote"},
		"remote component":                 {text: "components: [URL/c]", err: "components: URL/c is remote"},
		"remote crd":                       {text: "crds: [URL/c]", err: "crds: URL/c is remote"},
		"remote configuration":             {text: "configurations: [URL/c]", err: "configurations: URL/c is remote"},
		"remote generator":                 {text: "generators: [URL/c]", err: "generators: URL/c is remote"},
		"remote transformer":               {text: "transformers: [URL/c]", err: "transformers: URL/c is remote"},
		"remote validator":                 {text: "validators: [URL/c]", err: "validators: URL/c is remote"},
		"remote patch":                     {text: "patches: [{path: URL/c}]", err: "patches: URL/c is remote"},
		"remote JSON patch":                {text: "patchesJson6902: [{path: URL/c, target: {kind: ConfigMap, name: a}}]", err: "patchesJson6902: URL/c is remote"},
		"remote old patch":                 {text: "patchesStrategicMerge: [URL/c]", err: "patchesStrategicMerge: URL/c is remote"},
		"remote replacement":               {text: "replacements: [{path: URL/c}]", err: "replacements: URL/c is remote"},
		"remote file":                      {text: "configMapGenerator: [{name: a, files: [URL/c]}]", err: "configMapGenerator: URL/c is remote"},
		"remote file with a key":           {text: "configMapGenerator: [{name: a, files: ['k=URL/c?a=b']}]", err: "configMapGenerator: URL/c?a=b is remote"},
		"remote variables":                 {text: "secretGenerator: [{name: a, envs: [URL/c]}]", err: "secretGenerator: URL/c is remote"},
		"remote variables, old":            {text: "secretGenerator: [{name: a, env: URL/c}]", err: "secretGenerator: URL/c is remote"},
		"remote schema":                    {text: "openapi: {path: URL/c}", err: "openapi: URL/c is remote"},
		"in a base":                        {text: "resources: [../base]", more: repo{"base/kustomization.yaml": "resources: [URL/a]"}, err: "base/kustomization.yaml: resources: URL/a is remote"},
		"several":                          {text: "resources: [URL/a, URL/b]", err: "URL/a is remote: a kustomization may use files of the repository only; kubernetes/kustomization.yaml: resources: URL/b is remote"},
		"in a transformer's file":          {text: "resources: [a.yaml]\ntransformers: [t.yaml]", more: repo{"kubernetes/t.yaml": patchFrom("URL/p")}, err: "URL/p is remote"},
		"in a transformer's text":          {text: "resources: [a.yaml]\ntransformers:\n- |-\n  " + strings.ReplaceAll(patchFrom("URL/p"), "\n", "\n  "), err: "URL/p is remote"},
		"made up by a patch":               {text: "resources: [a.yaml]\ntransformers: [t]", more: repo{"kubernetes/t/kustomization.yaml": "resources: [t.yaml]\npatches:\n- target: {kind: PatchTransformer}\n  patch: |-\n    - {op: replace, path: /path, value: URL/p}\n", "kubernetes/t/t.yaml": patchFrom("x")}, err: "URL/p is remote"},
		"git in an odd form":               {text: "resources: ['git@ho st:org/repo']", err: "git@ho st:org/repo"},
		"chart":                            {text: "helmCharts: [{name: a, repo: URL}]", err: "kubernetes/kustomization.yaml: helmCharts: charts are not rendered"},
		"chart of the old form":            {text: "helmChartInflationGenerator: [{chartName: a}]", err: "charts are not rendered"},
		"chart by a generator":             {text: "generators: [g.yaml]", more: repo{"kubernetes/g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: a\nrepo: URL\n"}, err: "helm"},
		"function":                         {text: "transformers: [t.yaml]", more: repo{"kubernetes/t.yaml": "apiVersion: example.org/v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./f.sh}\n", "kubernetes/f.sh": "#!/bin/sh\n"}, err: "external plugins disabled"},
		"container":                        {text: "generators: [t.yaml]", more: repo{"kubernetes/t.yaml": "apiVersion: example.org/v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: x}\n"}, err: "external plugins disabled"},
		"plugin":                           {text: "generators: [t.yaml]", more: repo{"kubernetes/t.yaml": "apiVersion: example.org/v1\nkind: F\nmetadata: {name: f}\n"}, err: "external plugins disabled"},
		"resource outside":                 {text: "resources: [../../a.yaml]", err: "kubernetes/kustomization.yaml: resources: ../../a.yaml is outside"},
		"far outside":                      {text: "resources: [../../../../../etc/passwd]", err: "/etc/passwd is outside"},
		"absolute resource":                {text: "resources: [/etc/passwd]", err: "resources: /etc/passwd is outside"},
		"base outside":                     {text: "resources: [../../base]", err: "resources: ../../base is outside"},
		"file outside":                     {text: "configMapGenerator: [{name: a, files: [k=../../../../../etc/passwd]}]", err: "configMapGenerator: ../../../../../etc/passwd is outside"},
		"outside, in a transformer's file": {text: "resources: [a.yaml]\ntransformers: [t.yaml]", more: repo{"kubernetes/t.yaml": patchFrom("../../../etc/passwd")}, err: "/etc/passwd is outside the repository"},
		"link outside":                     {text: "resources: [l.yaml]", more: repo{"kubernetes/l.yaml": "-> /etc/passwd"}, err: "symbolic link kubernetes/l.yaml points to /etc/passwd"},
		"link to a base outside":           {text: "resources: [l]", more: repo{"kubernetes/l": "-> ../../base"}, err: "symbolic link kubernetes/l points to ../../base"},
		"pointer":                          {text: "resources: [l.yaml]", more: repo{"kubernetes/l.yaml": "version https://git-lfs.github.com/spec/v1\n"}, err: "kubernetes/l.yaml is a Git LFS pointer"},
		"missing resource":                 {text: "resources: [nowhere.yaml]", err: "kubernetes/nowhere.yaml"},
		"circle":                           {text: "resources: [../base]", more: repo{"base/kustomization.yaml": "resources: [../kubernetes]"}, err: "cycle detected"},
		"unknown field":                    {text: "resurces: []", err: `unknown field "resurces"`},
		"no YAML":                          {text: "a: [", err: "kustomization.yaml"},
		"empty":                            {text: "", err: "kustomization.yaml is empty"},
		"two of them":                      {text: "resources: [a.yaml]", more: repo{"kubernetes/kustomization.yml": "resources: [a.yaml]"}, err: "multiple kustomization files"},
		"directory of that name":           {text: "resources: [a.yaml]", more: repo{"kubernetes/Kustomization/x": ""}, err: ""},
		"file instead of a folder":         {text: "components: [a.yaml]", err: "a.yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replace := strings.NewReplacer("HTTPURL", strings.Replace(url, "http", "HTTP", 1), "URL", url)
			files := repo{"kubernetes/kustomization.yaml": replace.Replace(test.text), "kubernetes/a.yaml": named("a")}
			for name, text := range test.more {
				files[name] = replace.Replace(text)
			}
			_, err := newTransform(t, Options{ConventionalDir: true}).Run(t.Context(), files.input("1"))
			t.Log(err)
			checkError(t, err, replace.Replace(test.err))
			if err != nil && strings.Contains(err.Error(), "secret@") {
				t.Error("shows a password")
			}
		})
	}
	t.Cleanup(func() {
		if n := requests.Load(); n != 0 {
			t.Errorf("the server saw %d requests", n)
		}
	})
}

func TestKustomizeIsReused(t *testing.T) {
	t.Parallel()
	files := repo{"kustomization.yaml": "resources: [a.yaml]\ncommonLabels: {a: b}", "a.yaml": named("a")}
	tr := newTransform(t, Options{})
	first, err := tr.Run(t.Context(), files.input("1"))
	if err != nil {
		t.Fatal(err)
	}
	input := files.input("1")
	input.Rerun = true
	second, err := tr.Run(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	if first.Files != second.Files || first.Source != second.Source {
		t.Error("the same revision was built again")
	}
	if len(first.Notes) != 1 || len(second.Notes) != 0 {
		t.Errorf("notes %q, then %q", first.Notes, second.Notes)
	}
	files["a.yaml"] = named("b")
	third, err := tr.Run(t.Context(), files.input("2"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, third.Files), map[string]string{"a.yaml": "name: b"})
}

func TestKustomizeCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	files := repo{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": named("a")}
	_, err := newTransform(t, Options{}).Run(ctx, files.input("1"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestWithOrigins(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"resources: [a]\n":                     "resources: [a]\nbuildMetadata:\n- originAnnotations\n",
		"# why\nresources:\n- a # this\n":      "# why\nresources:\n- a # this\nbuildMetadata:\n- originAnnotations\n",
		"buildMetadata: [managedByLabel]\n":    "buildMetadata: [managedByLabel, originAnnotations]\n",
		"buildMetadata: [originAnnotations]\n": "asked",
		"buildMetadata: nonsense\n":            "same",
		"a: [":                                 "same",
		"[]":                                   "same",
		"apiVersion: v1\n---\nkind: Second document is lost\n": "",
	} {
		changed, asked := withOrigins([]byte(text))
		switch {
		case want == "asked" && (!asked || string(changed) != text), want == "same" && string(changed) != text:
			t.Errorf("%q became %q, asked %v", text, changed, asked)
		case want != "asked" && want != "same" && want != "" && string(changed) != want:
			t.Errorf("%q became %q, want %q", text, changed, want)
		}
	}
}

// A kustomization that grows out of bounds ends its own process, and says why.
func TestKustomizeBombs(t *testing.T) {
	t.Parallel()
	// Each level has the one below twice, under other names.
	doubling := repo{"kustomization.yaml": "resources: [l20]\n", "l0/kustomization.yaml": "resources: [a.yaml]\n", "l0/a.yaml": named("a") + "  large: " + strings.Repeat("x", 4<<20) + "\n"}
	for i := 1; i <= 20; i++ {
		for _, half := range []string{"a", "b"} {
			doubling[fmt.Sprintf("l%d%s/kustomization.yaml", i, half)] = fmt.Sprintf("resources: [../l%d]\nnamePrefix: %s-\n", i-1, half)
		}
		doubling[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%da, ../l%db]\n", i, i)
	}
	generators := repo{"large": strings.Repeat("x", 10<<20), "kustomization.yaml": "configMapGenerator:\n"}
	for i := range 100 {
		generators["kustomization.yaml"] += fmt.Sprintf("- name: n%d\n  files: [large]\n", i)
	}
	aliases := repo{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "a: &a0 [x, x, x, x, x, x, x, x]\n"}
	for i := range 9 {
		aliases["a.yaml"] += fmt.Sprintf("b%d: &a%d [%s*a%d]\n", i, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 7), i)
	}
	for name, test := range map[string]struct {
		repo   repo
		limits string
		err    string
	}{
		"doubling":         {doubling, "kustomize-memory=80Mi", `kustomize, building kustomization.yaml: more than 80 MiB, the limit "kustomize-memory"`},
		"large generators": {generators, "kustomize-memory=80Mi", `kustomize, building kustomization.yaml: more than 80 MiB, the limit "kustomize-memory"`},
		"a large result":   {repo{"large": strings.Repeat("x", 2<<20), "kustomization.yaml": "configMapGenerator:\n- {name: x, files: [large]}\n"}, "manifests=1Mi", `what kustomize builds of kustomization.yaml: 2.`},
		"YAML aliases":     {aliases, "kustomize-memory=80Mi", "kustomization.yaml"},
		"itself":           {repo{"kustomization.yaml": "resources: [.]\n"}, "", "cycle"},
		"itself by a link": {repo{"kustomization.yaml": "resources: [l]\n", "l": "-> ."}, "", "cycle"},
		"itself by a file": {repo{"kustomization.yaml": "resources: [kustomization.yaml]\n"}, "", "kustomization.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most, err := limits.Parse(test.limits)
			if err != nil {
				t.Fatal(err)
			}
			_, err = newTransform(t, Options{Limits: most}).Run(t.Context(), test.repo.input("1"))
			checkError(t, err, test.err)
			if err != nil && len(err.Error()) > 3000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
