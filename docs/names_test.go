package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubesync/kubesync/sync/config"
)

// current are the pages that speak of the program as it is now, which the changelog does
// not.
func current(t *testing.T) []page {
	t.Helper()
	return slices.DeleteFunc(pages(t), func(p page) bool { return p.path == "CHANGELOG.md" })
}

// everyWord calls each for every name in the code of the pages.
func everyWord(t *testing.T, each func(p page, l line, word string)) {
	t.Helper()
	for _, p := range current(t) {
		for _, l := range p.lines {
			for _, word := range l.words() {
				each(p, l, word)
			}
		}
	}
}

var variable = regexp.MustCompile(`^([A-Z][A-Z0-9_]{2,})(=.*)?$`)

// otherVariables are names of variables that the pages use and kubesync does not define.
func otherVariables() []string {
	return []string{
		"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "KUBECONFIG", // understood as other programs do
		"INDIR", "OUTDIR", "REPO_NAME", "REVISION", "TMPDIR", // what CMD sees
		"CURL_CA_BUNDLE", "GIT_SSH_COMMAND", "GIT_SSL_CAIFO", "GIT_SSL_NO_VERIFY", "SOPS_AGE_KEY", // of others
		"CONTROLPLANE", "FUZZTIME", "KUBEBUILDER_ASSETS", "KUBERNETES", "RACE", "SOAK", "VERSION", // of the Makefile and the tests
		"HEAD", "PATH", "PWD", "SIGHUP",
	}
}

// Every variable that a page names exists.
func TestVariablesExist(t *testing.T) {
	t.Parallel()
	known := otherVariables()
	for _, v := range config.Variables() {
		known = append(known, v.Name)
	}
	everyWord(t, func(p page, l line, word string) {
		match := variable.FindStringSubmatch(word)
		if match != nil && !slices.Contains(known, match[1]) {
			t.Errorf("%s:%d: there is no variable %s", p.path, l.number, match[1])
		}
	})
}

var ownName = regexp.MustCompile(`^(?:io\.kubesync|kubesync\.io/)[a-z./-]*[a-z]`)

// Every annotation, label and type of notification that a page names is in the source,
// and every annotation in the source is on the page about the configuration.
func TestAnnotationsExist(t *testing.T) {
	t.Parallel()
	program := readSource(t)
	everyWord(t, func(p page, l line, word string) {
		if name := ownName.FindString(word); name != "" && !program.has(name) {
			t.Errorf("%s:%d: kubesync knows no %s", p.path, l.number, name)
		}
	})
	configuration := read(t, "docs/configuration.md")
	for _, text := range program.texts {
		if name := ownName.FindString(text.value); name == text.value && strings.HasPrefix(name, "kubesync.io/") && name != writerLabel &&
			!strings.Contains(configuration, name) {
			t.Errorf("docs/configuration.md does not explain %s", name)
		}
	}
}

// writerLabel is kubesync's own mark on RoleBindings; no one else sets it.
const writerLabel = "kubesync.io/writer"

var metric = regexp.MustCompile(`^kubesync_([a-z_]+)`)

// The metrics on the page are those that kubesync has.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	want := readSource(t).arguments("sync/status/metrics", "counter", "gauge", "histogram")
	want = append(want, "build_info")
	var got []string
	for _, l := range readPage(t, "docs/monitoring.md").lines {
		for _, span := range l.spans() {
			if match := metric.FindStringSubmatch(span); match != nil {
				got = append(got, match[1])
			}
		}
	}
	compare(t, "metrics in docs/monitoring.md", got, want)
}

// The reasons of Events on the page are those that kubesync has, and so are the alerts.
func TestEventsAndAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	monitoring := readPage(t, "docs/monitoring.md")
	var reasons, alerts []string
	monitoring.tables("on", func(l line, cells []string) { reasons = append(reasons, strings.Trim(cells[1], "`")) })
	monitoring.tables("alert", func(l line, cells []string) { alerts = append(alerts, strings.Trim(cells[0], "`")) })
	compare(t, "Events in docs/monitoring.md", reasons, readSource(t).constants(t, "sync/status/events/events.go"))
	var want []string
	for _, match := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "deploy/components/monitoring/rules.yaml"), -1) {
		want = append(want, match[1])
	}
	compare(t, "alerts in docs/monitoring.md", alerts, want)
}

// Every state and every action is explained, for people and for programs.
func TestStatesAreDocumented(t *testing.T) {
	t.Parallel()
	program := readSource(t)
	for path, from := range map[string][]string{
		"docs/how-it-works.md":   {"sync/report.go", "sync/status/object.go", "apply/result.go"},
		"sync/status/web/API.md": {"sync/report.go", "sync/status/object.go", "apply/result.go"},
	} {
		content := read(t, path)
		for _, source := range from {
			for _, word := range program.constants(t, source) {
				if word != "interrupted" && !strings.Contains(content, "`"+word+"`") {
					t.Errorf("%s does not explain %s, of %s", path, word, source)
				}
			}
		}
	}
}

// A CONFIG entry may have the keys on the page.
func TestKeysOfCONFIG(t *testing.T) {
	entry := map[string]any{}
	value := map[string]any{
		"url": "https://git.example.com/a.git", "privileged": true, "recursive": true, "prune": true, "suspend": true,
		"namespaces": []string{"a"}, "namespace": "a", "name": "a", "interval": 60, "version_mode": "branch:a",
	}
	readPage(t, "docs/configuration.md").tables("key", func(_ line, cells []string) {
		key := strings.Trim(cells[0], "`")
		if entry[key] = value[key]; entry[key] == nil {
			entry[key] = "text"
		}
	})
	for key := range value {
		if entry[key] == nil {
			t.Errorf("docs/configuration.md does not explain the key %s", key)
		}
	}
	entry["creds_file"] = filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(entry["creds_file"].(string), []byte("user:password"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal([]any{entry})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONFIG", file)
	t.Setenv("DRYRUN", "1")
	settings, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, warnings, err := settings.List.Read(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("the keys on the page are not those of an entry: %v %q", err, warnings)
	}
}

var ownPath = regexp.MustCompile(`^(?:\./)?((?:apply|deploy|docs|internal|repo|scripts|sync|test|transform|\.ci|\.github)/[\w./*-]*)$`)

// Every path of the repository that a page names exists.
func TestPathsExist(t *testing.T) {
	t.Parallel()
	everyWord(t, func(p page, l line, word string) {
		match := ownPath.FindStringSubmatch(strings.TrimSuffix(word, "..."))
		if match == nil {
			return
		}
		if found, err := filepath.Glob(filepath.Join(root, match[1])); err != nil || len(found) == 0 {
			t.Errorf("%s:%d: there is no %s", p.path, l.number, match[1])
		}
	})
}

var (
	makeCommand = regexp.MustCompile(`\bmake((?: [a-z0-9-]+)+)`)
	makeTarget  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	testName    = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc    = regexp.MustCompile(`(?m)^func (Test\w+)`)
)

// Every target of make that a page names exists.
func TestTargetsExist(t *testing.T) {
	t.Parallel()
	var targets []string
	for _, match := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, match[1])
	}
	for _, p := range current(t) {
		for _, l := range p.lines {
			texts := l.spans()
			if l.fence == "sh" {
				command, _, _ := strings.Cut(l.text, "#")
				texts = []string{command}
			}
			for _, text := range texts {
				for _, match := range makeCommand.FindAllStringSubmatch(text, -1) {
					for target := range strings.FieldsSeq(match[1]) {
						if !slices.Contains(targets, target) {
							t.Errorf("%s:%d: there is no target %s", p.path, l.number, target)
						}
					}
				}
			}
		}
	}
}

// Every test and every scenario that a page names exists.
func TestTestsExist(t *testing.T) {
	t.Parallel()
	known := testsOfTheRepository(t)
	scenario := regexp.MustCompile(`^[a-z]+(?:_[a-z]+)+$`)
	for _, p := range current(t) {
		for _, l := range p.lines {
			for _, name := range testName.FindAllString(l.text, -1) {
				if !known[name] && !startsOne(known, name) {
					t.Errorf("%s:%d: there is no %s", p.path, l.number, name)
				}
			}
		}
	}
	tried := readPage(t, "docs/tiers-and-security.md")
	for _, heading := range []string{"attempt", "fault"} {
		tried.tables(heading, func(l line, cells []string) {
			for word := range strings.FieldsFuncSeq(cells[1], func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
				if scenario.MatchString(word) && !exists(filepath.Join("test", "testdata", word+".txtar")) {
					t.Errorf("%s:%d: there is no scenario %s", tried.path, l.number, word)
				}
			}
		})
	}
}

// testsOfTheRepository returns the names of all tests, modules of their own included.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllStringSubmatch(string(content), -1) {
			known[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// startsOne reports whether tests are named together by what their names begin with.
func startsOne(known map[string]bool, prefix string) bool {
	for name := range known {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// exists reports whether there is a file at a path from root.
func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

var flag = regexp.MustCompile(`^--?([a-zA-Z][\w-]*)(?:=.*)?$`)

// Every flag that a page names is in the source, or one of another program.
func TestFlagsExist(t *testing.T) {
	t.Parallel()
	others := []string{"exempt-namespace", "validate", "update", "cold", "s", "S", "f", "v", "o"}
	program := readSource(t)
	for _, p := range current(t) {
		for _, l := range p.lines {
			for _, span := range l.spans() {
				if match := flag.FindStringSubmatch(span); match != nil && !slices.Contains(others, match[1]) && !program.has(match[1]) {
					t.Errorf("%s:%d: there is no flag %s", p.path, l.number, span)
				}
			}
		}
	}
}

// Blocks of shell commands are what a shell can parse.
func TestShellParses(t *testing.T) {
	t.Parallel()
	blocks := 0
	for _, p := range pages(t) {
		var block strings.Builder
		for _, l := range p.lines {
			switch {
			case l.fence != "sh":
			case !l.opens:
				block.WriteString(l.text + "\n")
			default:
				blocks++
				shell := exec.Command("bash", "-n")
				shell.Stdin = strings.NewReader(block.String())
				if output, err := shell.CombinedOutput(); err != nil {
					t.Errorf("%s:%d: %v\n%s", p.path, l.number, err, output)
				}
				block.Reset()
			}
		}
	}
	if blocks < 10 {
		t.Errorf("found %d blocks of shell commands: are they marked as sh?", blocks)
	}
}

// The versions of Kubernetes that the README states are those that the tests run against.
func TestKubernetesVersionsAreStated(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"test/controlplane", "test/controlplane/oldest"} {
		pinned := regexp.MustCompile(`k8s\.io/kubernetes v(\d+\.\d+)\.`).FindStringSubmatch(read(t, module+"/go.mod"))
		if pinned == nil {
			t.Fatalf("%s pins no version of Kubernetes", module)
		}
		if !strings.Contains(read(t, "README.md"), "\n| "+pinned[1]+" |") {
			t.Errorf("README.md does not say that the tests run against Kubernetes %s", pinned[1])
		}
	}
}

// The values of the chart that the README names exist.
func TestChartValuesExist(t *testing.T) {
	t.Parallel()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "deploy/chart/kubesync/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	readPage(t, "README.md").tables("value", func(l line, cells []string) {
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			at := any(values)
			for key := range strings.SplitSeq(span[1], ".") {
				fields, _ := at.(map[string]any)
				value, found := fields[key]
				if !found {
					t.Errorf("README.md:%d: the chart has no value %s", l.number, span[1])
				}
				at = value
			}
		}
	})
}

// compare reports names that only one of two lists has.
func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	in := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, name := range list {
			set[name] = true
		}
		return set
	}
	has, wants := in(got), in(want)
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if !has[name] {
			t.Errorf("%s: %s is missing", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if !wants[name] {
			t.Errorf("%s: there is no %s", what, name)
		}
	}
}
