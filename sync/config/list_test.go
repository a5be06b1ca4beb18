package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// read returns what the list with this content says, beside a repo called taken.
func read(t *testing.T, content string, set vars) ([]Repo, []string, error) {
	t.Helper()
	config := mustConfigure(t, vars{"REPO": "https://h/taken", "CONFIG": writeFile(t, "list", content)}.with(set))
	return config.List.Read(context.Background())
}

func TestList(t *testing.T) {
	t.Parallel()
	credentials := writeFile(t, "creds", "joe:hunter22")
	// What holds for REPO alone must not show in what is read.
	global := vars{"INTERVAL": "60", "VERSION_MODE": "tag:latest", "PRUNE": "off", "TIER": "system", "CMD": "x", "YMLDIR": "x", "RECURSIVE": "1"}
	plain := "x app application 1m0s tag:latest prune=false"
	show := func(r Repo) string {
		parts := []string{r.URL.String(), r.Name, r.Tier.String(), r.Interval.String(), r.Version.String(), fmt.Sprintf("prune=%v", r.Prune)}
		for name, value := range map[string]bool{"recursive": r.Recursive, "suspend": r.Suspend, "conventional": r.ConventionalDir, "remote": !r.FromList} {
			if value {
				parts = append(parts, name)
			}
		}
		return strings.TrimPrefix(strings.Join(parts, " "), "https://h/")
	}
	for name, test := range map[string]struct {
		content string
		want    []string
		check   func(Repo) bool
	}{
		"nothing":       {"[]", nil, nil},
		"JSON":          {`[{"url": "https://h/x", "name": "app"}]`, []string{plain}, nil},
		"JSON, tabs":    {"[\n\t{\n\t\t\"url\":\t\"https://h/x\",\n\t\t\"name\":\t\"app\"\n\t}\n]\n", []string{plain}, nil},
		"JSON, escapes": {`[{"url": "https:\/\/h\/x", "name": "\u0061pp", "cmd": "./x \u00e9\ud83d\ude00 \"b\" \\\\"}]`, []string{plain}, func(r Repo) bool { return r.Command == `./x é😀 "b" \\` }},
		"YAML":          {"# ours\n- url: https://h/x\n  name: app\n", []string{plain}, nil},
		"YAML, marked":  {"---\n- url: https://h/x\n  name: app\n...\n", []string{plain}, nil},
		"nulls":         {`[{"url": "https://h/x", "name": "app", "cmd": null, "interval": null, "prune": null, "privileged": null, "namespaces": null}]`, []string{plain}, func(r Repo) bool { return r.Namespaces == nil }},
		"empty texts":   {`[{"url": "https://h/x", "name": "app", "ymldir": "", "namespace": "", "cmd": ""}]`, []string{plain}, nil},
		"order": {"- url: https://h/x\n  name: app\n- {url: https://h/y}\n- {url: 'git@h:z.git'}\n",
			[]string{plain, "y y application 1m0s tag:latest prune=false", "git@h:z.git z application 1m0s tag:latest prune=false"}, nil},
		"all keys": {`[{"url": "https://h/x", "name": "app.two", "cmd": " ./render 'a b' ", "ymldir": "deploy/", "privileged": true, "version_mode": "branch:main",
			"interval": "90s", "creds_file": "` + credentials + `", "namespace": "web", "namespaces": ["web", "db"], "prune": true, "recursive": true, "suspend": true}]`,
			[]string{"x app.two system 1m30s branch:main prune=true"}, func(r Repo) bool {
				found, ok, err := r.Credentials.Read()
				return r.Command == "./render 'a b'" && r.YMLDir == "deploy" && r.Namespace == "web" && reflect.DeepEqual(r.Namespaces, []string{"web", "db"}) &&
					r.Recursive && r.Suspend && ok && err == nil && found.User == "joe"
			}},
		"namespaces as text": {`[{"url": "https://h/x", "name": "app", "namespaces": "web, db"}]`, []string{plain}, func(r Repo) bool { return reflect.DeepEqual(r.Namespaces, []string{"web", "db"}) }},
		"no namespaces":      {`[{"url": "https://h/x", "name": "app", "namespaces": []}]`, []string{plain}, func(r Repo) bool { return r.Namespaces != nil && len(r.Namespaces) == 0 }},
		"interval number":    {`[{"url": "https://h/x", "name": "app", "interval": 120}]`, []string{"x app application 2m0s tag:latest prune=false"}, nil},
		"anchors":            {"- &a\n  url: https://h/x\n  name: app\n  cmd: &c ./x\n- <<: *a\n  name: b\n  cmd: *c\n", []string{plain, "x b application 1m0s tag:latest prune=false"}, func(r Repo) bool { return r.Command == "./x" }},
		"unprivileged":       {`[{"url": "https://h/x", "name": "app", "privileged": false}]`, []string{plain}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos, warnings, err := read(t, test.content, global)
			if err != nil || len(warnings) != 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			var got []string
			for _, r := range repos {
				got = append(got, strings.TrimSuffix(strings.TrimSuffix(show(r), " suspend"), " recursive"))
				if !r.FromList || r.ConventionalDir {
					t.Errorf("FromList %v, ConventionalDir %v", r.FromList, r.ConventionalDir)
				}
				if test.check != nil && !test.check(r) {
					t.Errorf("got %+v", r)
				}
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if fields := strings.Fields(got[i]); strings.Join(fields[:6], " ") != test.want[i] {
					t.Errorf("got  %s\nwant %s", got[i], test.want[i])
				}
			}
		})
	}
}

func TestListMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"empty file":       {"", []string{"empty: "}},
		"comment only":     {"# nothing\n", []string{"empty: "}},
		"object":           {`{"url": "https://h/x"}`, []string{"not an array: it must be an array of objects"}},
		"text":             {"hello", []string{"not an array"}},
		"broken JSON":      {"[\n{\"url\": \"https://h/x\",\n", []string{"neither JSON nor YAML", "line"}},
		"two documents":    {"- url: https://h/x\n---\n- url: https://h/y\n", []string{"more than one document"}},
		"entry text":       {"- https://h/x\n", []string{"entry 1 (line 1): not an object"}},
		"no url":           {"- name: x\n", []string{"entry 1 (line 1): url: required"}},
		"null url":         {"- url:\n", []string{"url: required"}},
		"url number":       {"- url: 7\n", []string{"entry 1 (line 1): url: must be a text: write \"7\""}},
		"bad url":          {"- url: ftp://h/x\n", []string{`url: git URL "ftp://h/x"`}},
		"misspelt":         {"- url: https://h/x\n  priviliged: true\n", []string{`entry 1 (https://h/x, line 1): unknown key "priviliged": did you mean "privileged"?`}},
		"twice":            {"- url: https://a/x\n- url: https://b/x\n", []string{`entry 2 (https://b/x, line 2): the name "x" is that of entry 1 (https://a/x), too: give one of them another "name"`}},
		"taken":            {"- url: https://h/x\n  name: taken\n", []string{`the name "taken" is that of https://h/taken in REPO`}},
		"same name":        {"- url: https://h/x\n  name: a\n- url: https://h/x\n  name: a\n", []string{`"a"`}},
		"duplicate key":    {"- url: https://h/x\n  cmd: a\n  cmd: b\n", []string{"entry 1 (line 1)", "already defined"}},
		"name":             {"- url: https://h/x\n  name: My App\n", []string{`name: "My App" is not a valid name`}},
		"long name":        {"- url: https://h/x\n  name: " + strings.Repeat("a", 245) + "\n", []string{"longer than 244"}},
		"nameless":         {"- url: https://h/__\n", []string{"holds nothing that can be the repo's name"}},
		"cmd":              {"- url: https://h/x\n  cmd: a | b\n", []string{"cmd: "}},
		"cmd array":        {"- url: https://h/x\n  cmd: [a, b]\n", []string{"cmd: must be a text"}},
		"ymldir":           {"- url: https://h/x\n  ymldir: ../y\n", []string{`ymldir: "../y" is not a path inside`}},
		"privileged":       {"- url: https://h/x\n  privileged: maybe\n", []string{`privileged: "maybe" must be true or false, without quotes`}},
		"privileged 1":     {"- url: https://h/x\n  privileged: 1\n", []string{"privileged: must be true or false"}},
		"privileged \"1\"": {"- url: https://h/x\n  privileged: \"1\"\n", []string{`privileged: "1" must be true or false`}},
		"privileged array": {"- url: https://h/x\n  privileged: [true]\n", []string{"privileged: must be true or false"}},
		"same directory":   {"- {url: https://h/x, ymldir: a/}\n- {url: https://h/x, ymldir: /a}\n", []string{`entry 2 (https://h/x, line 2): the name "x-a" is that of entry 1 (https://h/x), too: give one of them another "name"`}},
		"twice by slash":   {"- url: https://h/x/\n- url: https://h/x\n", []string{`the name "x" is that of entry 1 (https://h/x)`}},
		"version":          {"- url: https://h/x\n  version_mode: newest\n", []string{`version_mode: version mode "newest"`, "tag:latest"}},
		"worktree":         {"- url: https://h/x\n  version_mode: worktree\n", []string{"needs a file:// URL"}},
		"interval":         {"- url: https://h/x\n  interval: soon\n", []string{`interval: "soon" is neither`}},
		"interval short":   {"- url: https://h/x\n  interval: 0.1\n", []string{`interval: "0.1" is too short`}},
		"interval array":   {"- url: https://h/x\n  interval: [1]\n", []string{"interval: must be a text"}},
		"creds_file":       {"- url: https://h/x\n  creds_file: creds\n", []string{`creds_file: "creds" is not an absolute path`}},
		"namespace":        {"- url: https://h/x\n  namespace: A\n", []string{`namespace: "A" is not a valid name`}},
		"namespaces":       {"- url: https://h/x\n  namespaces: [a, B]\n", []string{`namespaces: "B" is not a valid name`}},
		"namespaces obj":   {"- url: https://h/x\n  namespaces: {a: b}\n", []string{"namespaces: must be a text"}},
		"prune":            {"- url: https://h/x\n  prune: off\n", []string{"prune: must be true or false"}},
		"all at once": {"- url: https://h/x\n  prune: maybe\n  interval: soon\n- name: z\n- priviliged: true\n  url: https://h/z\n",
			[]string{"prune: ", "interval: ", "entry 2 (line 4): url: required", "entry 3 (https://h/z, line 5): unknown key \"priviliged\""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repos, _, err := read(t, test.content, nil)
			expect(t, err, append(test.want, "CONFIG: ", "/list: ")...)
			var mistakes Errors
			if !errors.As(err, &mistakes) || repos != nil {
				t.Errorf("got a %T and the repos %v", err, repos)
			}
		})
	}
}

func TestUnknownKeysWarn(t *testing.T) {
	t.Parallel()
	repos, warnings, err := read(t, "- url: https://joe:hunter22@h/x\n  colour: red\n  Privileged: true\n", nil)
	if err != nil || len(repos) != 1 || repos[0].Tier != manifest.Application {
		t.Fatalf("got %+v, %v", repos, err)
	}
	want := []string{
		`CONFIG: entry 1 (https://h/x, line 1): unknown key "Privileged", ignored: the keys are url, cmd, creds_file, interval, name, namespace, namespaces, privileged, prune, recursive, suspend, version_mode, ymldir`,
		`CONFIG: entry 1 (https://h/x, line 1): unknown key "colour", ignored: the keys are url, cmd, creds_file, interval, name, namespace, namespaces, privileged, prune, recursive, suspend, version_mode, ymldir`,
	}
	if !reflect.DeepEqual(warnings, want) {
		t.Errorf("got %q, want %q", warnings, want)
	}
}

func TestTheListIsReadAnew(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "list", "[{url: https://h/x}]")
	list := mustConfigure(t, vars{"CONFIG": "file://" + file}).List
	names := func() (names []string) {
		t.Helper()
		repos, _, err := list.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range repos {
			names = append(names, r.Name)
		}
		return names
	}
	if got := names(); !reflect.DeepEqual(got, []string{"x"}) {
		t.Errorf("first %q", got)
	}
	if err := os.WriteFile(file, []byte(`[{"url":"https://h/y"},{"url":"https://h/x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := names(); !reflect.DeepEqual(got, []string{"y", "x"}) {
		t.Errorf("then %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, _, err := list.Read(context.Background())
	expect(t, err, "CONFIG: open "+file)
	var unreachable *Unreachable
	if errors.As(err, &unreachable) {
		t.Error("a file that is gone is nothing to try again at start")
	}
}

// TestAListOnAServer reads lists that cannot be had, which may come later, and one that is wrong.
func TestAListOnAServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wrong":
			fmt.Fprint(w, "<html>")
		case "/large":
			_, _ = w.Write(bytes.Repeat([]byte(" "), 4<<20+2)) // the client hangs up
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	for path, test := range map[string]struct {
		want        []string
		unreachable bool
	}{
		"/none?token=hunter22": {[]string{"CONFIG: fetch " + server.URL + "/none?***: ", "503"}, true},
		"/large":               {[]string{"CONFIG: fetch ", "more than 4 MiB, the limit", "that is fixed"}, true},
		"/wrong":               {[]string{"CONFIG: " + server.URL + "/wrong: not an array"}, false},
	} {
		_, _, err := mustConfigure(t, vars{"CONFIG": server.URL + path}).List.Read(t.Context())
		expect(t, err, test.want...)
		var unreachable *Unreachable
		if errors.As(err, &unreachable) != test.unreachable || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: got a %T: %v", path, err, err)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	one := func(content string) Repo {
		t.Helper()
		repos, _, err := read(t, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		repos[0].Credentials.redactor = nil // differs, as these are lists of two configurations
		return repos[0]
	}
	base := `[{"url": "https://joe:pw12@h/x", "namespaces": ["a"], "interval": 60}]`
	if !one(base).Equal(one(strings.ReplaceAll(base, "60", `"1m"`))) {
		t.Error("two entries that say the same differ")
	}
	for _, other := range []string{strings.ReplaceAll(base, "pw12", "pw34"), strings.ReplaceAll(base, `"a"`, `"b"`), strings.ReplaceAll(base, "60", "61")} {
		if one(base).Equal(one(other)) {
			t.Errorf("%s equals %s", base, other)
		}
	}
}

// FuzzList wants no panic, and names that are unique whatever the list says.
func FuzzList(f *testing.F) {
	for _, seed := range []string{"[]", "- url: https://h/x\n", `[{"url":"https://h/x","privileged":true,"interval":5}]`, "- &a {url: 'git@h:x'}\n- *a\n", "[[]]", "{}", "- <<: [1]\n", "- {? [a] : b}\n", "\x00", "- !!binary x", "- &a [*a]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		list := &List{source: fileSource("/list"), redactor: redact.New(), defaults: Repo{Interval: time.Minute, Tier: manifest.Application, FromList: true}}
		repos, _, err := list.parse([]byte(content))
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, r := range repos {
			if names[r.Name] || r.Name == "" || r.URL.String() == "" || r.Interval < time.Second {
				t.Errorf("bad repo %+v", r)
			}
			if _, err := parseRepoName(r.Name); err != nil {
				t.Error(err)
			}
			names[r.Name] = true
		}
	})
}
