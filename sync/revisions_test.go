package sync_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/test/lab/gitserver"
	"github.com/kubesync/kubesync/transform"
)

// tree is the files of a revision, path to text. A text that starts with "-> " makes a
// symbolic link.
type tree map[string]string

// write makes a directory hold exactly these files, besides a .git.
func (f tree) write(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, entry := range entries {
		if entry.Name() != ".git" {
			check(t, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	for name, text := range f {
		at := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if target, link := strings.CutPrefix(text, "-> "); link {
			check(t, os.Symlink(target, at))
		} else {
			check(t, os.WriteFile(at, []byte(text), 0o644))
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRepo opens a repository.
func newRepo(t testing.TB, rawURL, version string) *repo.Repo {
	t.Helper()
	url, err := repo.ParseURL(rawURL)
	check(t, err)
	mode, err := repo.ParseVersion(version)
	check(t, err)
	r, err := repo.New(repo.Options{URL: url, Version: mode, Log: zerolog.Nop()})
	check(t, err)
	return r
}

// stages are what a revision goes through from git to the plan. They remember the
// revision before.
type stages struct {
	transform *transform.Transform
	loader    *manifest.Loader
	checker   *manifest.Checker
}

func newStages(t testing.TB, options transform.Options) stages {
	t.Helper()
	made, err := transform.New(options)
	check(t, err)
	return stages{made, manifest.NewLoader(options.Limits), new(manifest.Checker)}
}

// outcome is all that the stages say of a revision, as text.
func (s stages) outcome(t testing.TB, revision repo.Revision, files fs.FS, rules manifest.Rules) string {
	t.Helper()
	result, err := s.transform.Run(t.Context(), transform.Input{Revision: revision.ID, Files: files})
	if err != nil {
		return "transform: " + err.Error()
	}
	var b strings.Builder
	check(t, fs.WalkDir(result.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		check(t, err)
		info, err := entry.Info()
		check(t, err)
		hash := info.(interface{ Hash() string }).Hash()
		fmt.Fprintf(&b, "%s %s %d\n", name, hash, info.Size())
		if !entry.IsDir() {
			text, err := fs.ReadFile(result.Files, name)
			check(t, err)
			fmt.Fprintf(&b, "%s\n", text)
		}
		return nil
	}))
	loaded, err := s.loader.Load(result.Files)
	show := func(title string, objects []manifest.Object) {
		for _, o := range objects {
			fmt.Fprintf(&b, "%s %s %s %s\n", title, o.Origin, o.ID(), o.JSON())
		}
	}
	show("loaded", loaded.Objects)
	fmt.Fprintf(&b, "skipped %v\nproblems %v\n", loaded.Skipped, err)
	checked, err := s.checker.Check(loaded.Objects, rules)
	show("checked", checked.Objects)
	for _, u := range checked.Unserved {
		fmt.Fprintf(&b, "unserved %s: %s\n", u.Origin, u.Reason)
	}
	fmt.Fprintf(&b, "warnings %q\nproblems %v\n", checked.Warnings, err)
	return b.String()
}

// steps reads random decisions from bytes; when they are used up, it decides for 0.
type steps struct{ left []byte }

func (s *steps) below(n int) int {
	if len(s.left) == 0 {
		return 0
	}
	next := int(s.left[0])
	s.left = s.left[1:]
	return next % n
}

// name is a path of a file. There are few, so that they meet.
func (s *steps) name() string {
	dirs := []string{"kubernetes/", "kubernetes/a/", "kubernetes/a/deep/", "kubernetes/a/deep/er/", "kubernetes/b/", "kubernetes/a.b/", "elsewhere/", "elsewhere/in/", ""}
	names := []string{"a.yaml", "b.yaml", "c.json", "c", "z.yml", ".hidden.yaml"}
	return dirs[s.below(len(dirs))] + names[s.below(len(names))]
}

// text is the content of a file: mostly one that is in order.
func (s *steps) text() string {
	name, namespace := fmt.Sprintf("config-%d", s.below(200)), fmt.Sprintf("team-%d", s.below(3))
	switch s.below(24) {
	case 0:
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not A Name}\n" // is for the API server to refuse
	case 1:
		return "broken: ["
	case 2:
		return "no: object\n---\n- neither\n"
	case 3:
		return configMap(namespace, name, "1") + "---\n" + configMap(namespace, name+"-too", "2") + "---\n# nothing\n"
	case 4:
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + ", namespace: ignored}\n"
	case 5:
		return "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: " + name + "}\n"
	case 6:
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true}]}\n"
	case 7:
		return configMap("kube-system", name, "1")
	case 8:
		return "-> " + []string{"../a", "../b/a.yaml", "a.yaml", "../../elsewhere", "nowhere", "deep"}[s.below(6)]
	default:
		return configMap(namespace, name, fmt.Sprint(s.below(3)))
	}
}

// change changes some files. A file where a directory has to be, or the other way round,
// gives way.
func (s *steps) change(files tree) {
	put := func(name, text string) {
		for other := range files {
			if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
				delete(files, other)
			}
		}
		files[name] = text
	}
	some := func() string { return slices.Sorted(maps.Keys(files))[s.below(len(files))] }
	for range 1 + s.below(4) {
		switch s.below(14) {
		case 0, 1:
			delete(files, some())
		case 2:
			from := some()
			text := files[from]
			delete(files, from)
			put(s.name(), text)
		case 3: // a directory moves
			from, to := path.Dir(some()), path.Dir(s.name())
			for name, text := range maps.Clone(files) {
				if rest, inside := strings.CutPrefix(name, from+"/"); inside && to != "." {
					delete(files, name)
					put(to+"/moved/"+rest, text)
				}
			}
		case 4:
			put(".kubesyncignore", []string{"", "b.yaml\n", "/kubernetes/a/\n", "deep\n!a.yaml\n", "*\n", "c\nmoved\n"}[s.below(6)])
		case 5: // links in directories that nothing else changes
			put("kubernetes/"+[]string{"link", "a/link", "a/link.yaml", "b/link"}[s.below(4)], "-> "+[]string{"../elsewhere", "b", "../b", "a.yaml", "../../elsewhere/in"}[s.below(5)])
		case 6: // a link follows a directory that moves
			dirs := []string{"elsewhere", "another"}
			to := s.below(2)
			for name, text := range maps.Clone(files) {
				if rest, inside := strings.CutPrefix(name, dirs[1-to]+"/"); inside {
					delete(files, name)
					put(dirs[to]+"/"+rest, text)
				}
			}
			put(dirs[to]+"/linked.yaml", configMap("linked", "linked", "1"))
			put("kubernetes/link", "-> ../"+dirs[to])
		case 7: // all that is wrong is put right
			seen := map[string]bool{}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				text := files[name]
				if seen[text] || strings.Contains(text, "broken") || strings.Contains(text, "Not A Name") || strings.Contains(text, "Widget") {
					delete(files, name)
				}
				seen[text] = true
			}
		default:
			put(s.name(), s.text())
		}
		files["kubernetes/a/deep/kept.yaml"] = configMap("kept", "kept", "1") // files is never empty
	}
}

// rules are those of a cluster that serves the kinds of Kubernetes itself, and that mostly
// stays as it is.
func (s *steps) rules(tier manifest.Tier) manifest.Rules {
	rules := rules(tier)
	if s.below(24) == 23 {
		rules.SystemNamespace = func(name string) bool { return name == "team-1" }
	}
	if s.below(24) == 23 {
		rules.Scope = func(gvk schema.GroupVersionKind) manifest.Scope {
			if gvk.Kind == "Widget" {
				return manifest.ScopeCluster
			}
			return manifest.OfflineScope(gvk)
		}
	}
	if s.below(24) == 23 {
		rules.Lasting = func(gvk schema.GroupVersionKind) bool { return gvk.Kind != "Namespace" }
	}
	if s.below(24) == 23 {
		rules.HasStatus = func(gvk schema.GroupVersionKind) bool { return gvk.Kind == "ConfigMap" }
	}
	return rules
}

// variant is a way to choose manifests, and how far they are trusted.
type variant struct {
	transform.Options
	tier manifest.Tier
}

func variants() map[string]variant {
	return map[string]variant{
		"kubernetes/, all levels": {transform.Options{ConventionalDir: true, Recursive: true}, manifest.System},
		"root, all levels":        {transform.Options{Recursive: true}, manifest.Application},
		"one level":               {transform.Options{YMLDir: "kubernetes/a"}, manifest.System},
		"a link":                  {transform.Options{YMLDir: "kubernetes/link", Recursive: true}, manifest.System},
		"little allowed": {
			transform.Options{Recursive: true, Limits: limits.Limits{}.With(limits.Documents, 8).With(limits.Entries, 30)}, manifest.Application},
	}
}

// FuzzRevisions has any sequence of revisions give what each gives to stages that know
// nothing of the ones before.
func FuzzRevisions(f *testing.F) {
	seeds := 8
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		random := rand.NewChaCha8([32]byte{byte(seed)})
		script := make([]byte, 400)
		_, _ = random.Read(script)
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2_000 {
			return // longer ones show nothing new
		}
		for name, how := range variants() {
			dir, err := os.MkdirTemp("", "revisions") // a name of the test's would be no URL
			check(t, err)
			t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
			from := newRepo(t, "file://"+dir, "worktree")
			compare(t, name, &steps{script}, how, func(files tree) (repo.Revision, fs.FS) {
				files.write(t, dir)
				return resolve(t, from)
			})
		}
	})
}

// TestRevisionsOfServer does the same with a server, and fetches no file twice: what is not
// looked at again is held, and at hand when the rules change.
func TestRevisionsOfServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: each step is a commit and a push")
	}
	server := gitserver.Start(t)
	site, err := server.CreateRepo("site")
	check(t, err)
	script := make([]byte, 300)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(script)
	from, polls := newRepo(t, server.URL("site"), "branch:master"), 0
	compare(t, "server", &steps{script}, variants()["kubernetes/, all levels"], func(files tree) (repo.Revision, fs.FS) {
		files.write(t, site.Work)
		_, err := site.CommitWork("next")
		check(t, err)
		if polls++; polls%3 == 0 {
			resolve(t, from)
		}
		return resolve(t, from)
	})
}

// TestIgnoreFileChanges asks a server for nothing that it has sent before: not when nothing
// of a directory was looked at for some revisions, and all of it is now.
func TestIgnoreFileChanges(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	site, err := server.CreateRepo("site")
	check(t, err)
	files := tree{}
	for i := range 20 {
		files[fmt.Sprintf("kubernetes/team-%d/deep/config-%d.yaml", i%4, i)] = configMap(fmt.Sprintf("team-%d", i%4), fmt.Sprintf("config-%d", i), "info")
	}
	from, s := newRepo(t, server.URL("site"), "branch:master"), newStages(t, transform.Options{Recursive: true, ConventionalDir: true})
	next := func() (wanted int) {
		files.write(t, site.Work)
		_, err := site.CommitWork("next")
		check(t, err)
		revision, at := resolve(t, from)
		server.Log.Reset()
		result, err := s.transform.Run(t.Context(), transform.Input{Revision: revision.ID, Files: at})
		check(t, err)
		_, err = s.loader.Load(result.Files)
		check(t, err)
		for _, request := range server.Log.Requests() {
			wanted += strings.Count(request.Body, "want ")
		}
		resolve(t, from) // lets go of the revision before
		return wanted
	}
	next()
	for i := range 4 {
		name := fmt.Sprintf("kubernetes/team-1/deep/config-%d.yaml", 1+4*i)
		files[name] = configMap("team-1", fmt.Sprintf("config-%d", 1+4*i), "debug")
		if got := next(); got != 3 {
			t.Errorf("for one file that changed, %d objects are asked for, want it, kubernetes/, and the directory in that with all below it", got)
		}
	}
	files[".kubesyncignore"] = "config-3.yaml\n"
	if got := next(); got != 1 {
		t.Errorf("%d objects are asked for, want .kubesyncignore alone", got)
	}
	delete(files, ".kubesyncignore")
	if got := next(); got != 0 {
		t.Errorf("%d objects are asked for, want none", got)
	}
}

// resolve polls a repository.
func resolve(t testing.TB, from *repo.Repo) (repo.Revision, fs.FS) {
	t.Helper()
	revision, err := from.Resolve(t.Context())
	check(t, err)
	files, err := from.Files(t.Context(), revision)
	check(t, err)
	return revision, files
}

// compare takes stages through random revisions. What they say of each is what stages say
// that see it first.
func compare(t *testing.T, name string, random *steps, how variant, commit func(tree) (repo.Revision, fs.FS)) {
	files, used := tree{"kubernetes/a/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: first, namespace: ignored}\n"}, newStages(t, how.Options)
	for i := range 30 {
		dir := []string{"kubernetes", "kubernetes/a", "kubernetes/a/deep", "kubernetes/b", "kubernetes/b/more", "elsewhere"}[i%6]
		files[fmt.Sprintf("%s/first-%d.yaml", dir, i)] = configMap("first", fmt.Sprint("first-", i), "1")
	}
	for i := 0; len(random.left) > 0; i++ {
		before := maps.Clone(files)
		random.change(files)
		revision, at := commit(files)
		rules := random.rules(how.tier)
		got := used.outcome(t, revision, at, rules)
		want := newStages(t, how.Options).outcome(t, revision, at, rules)
		if got != want {
			t.Fatalf("%s, step %d, from\n%q\nto\n%q\ngot:\n%s\nfrom scratch:\n%s", name, i, before, files, got, want)
		}
	}
}

// rules are those of a cluster that serves the kinds of Kubernetes itself.
func rules(tier manifest.Tier) manifest.Rules {
	return manifest.Rules{
		Tier:            tier,
		SystemNamespace: func(name string) bool { return name == "kube-system" },
		Lasting:         func(schema.GroupVersionKind) bool { return true },
	}
}

// BenchmarkCommit has a commit change one file of many, in 100 directories.
func BenchmarkCommit(b *testing.B) {
	for _, objects := range []int{1_000, 10_000} {
		files := tree{}
		for i := range objects {
			files[fmt.Sprintf("kubernetes/team-%02d/config-%05d.yaml", i%100, i)] = configMap(fmt.Sprintf("team-%02d", i%100), fmt.Sprintf("config-%05d", i), "info")
		}
		var revisions [2]func() fs.FS // they take turns
		for i, level := range []string{"debug", "error"} {
			files["kubernetes/team-42/config-00042.yaml"] = configMap("team-42", "config-00042", level)
			dir := b.TempDir()
			files.write(b, dir)
			from := newRepo(b, "file://"+dir, "worktree")
			revision, err := from.Resolve(b.Context())
			check(b, err)
			revisions[i] = func() fs.FS {
				files, err := from.Files(b.Context(), revision)
				check(b, err)
				return files
			}
		}
		s := newStages(b, transform.Options{ConventionalDir: true, Recursive: true})
		turn := 0
		run := func(b *testing.B) fs.FS {
			turn++
			result, err := s.transform.Run(b.Context(), transform.Input{Revision: fmt.Sprint(turn % 2), Files: revisions[turn%2]()})
			check(b, err)
			return result.Files
		}
		load := func(b *testing.B, files fs.FS) []manifest.Object {
			loaded, err := s.loader.Load(files)
			check(b, err)
			return loaded.Objects
		}
		judge := func(b *testing.B, loaded []manifest.Object) {
			checked, err := s.checker.Check(loaded, rules(manifest.Application))
			check(b, err)
			if len(checked.Objects) != objects {
				b.Fatalf("%d objects", len(checked.Objects))
			}
		}
		measure := func(stage string, pass func(b *testing.B)) {
			b.Run(fmt.Sprintf("%d/%s", objects, stage), func(b *testing.B) {
				pass(b)
				b.ReportAllocs()
				for b.Loop() {
					pass(b)
				}
			})
		}
		measure("transform", func(b *testing.B) { run(b) })
		results := [2]fs.FS{run(b), run(b)}
		measure("load", func(b *testing.B) { turn++; load(b, results[turn%2]) })
		sets := [2][]manifest.Object{load(b, results[0]), load(b, results[1])}
		measure("check", func(b *testing.B) { turn++; judge(b, sets[turn%2]) })
		measure("all", func(b *testing.B) { judge(b, load(b, run(b))) })
	}
}

// configMap is a manifest.
func configMap(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {LOG_LEVEL: %s}\n", name, namespace, value)
}
