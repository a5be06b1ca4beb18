package config

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/apply/manifest"
)

func TestPrivilegedAsTheScriptReadIt(t *testing.T) {
	t.Parallel()
	for value, test := range map[string]struct {
		tier  manifest.Tier
		warns bool
	}{
		"true": {manifest.System, false}, "True": {manifest.System, false}, "false": {manifest.Application, false}, "null": {manifest.Application, false},
		`"true"`: {manifest.System, true}, `'TRUE'`: {manifest.System, true}, "yes": {manifest.System, true}, "Yes": {manifest.System, true}, `"yes"`: {manifest.System, true},
		"on": {manifest.System, true}, "y": {manifest.System, true}, `" true "`: {manifest.System, true},
		`"false"`: {manifest.Application, true}, "no": {manifest.Application, true}, `"No"`: {manifest.Application, true}, "off": {manifest.Application, true}, "n": {manifest.Application, true}, `""`: {manifest.Application, true},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			repos, warnings, err := read(t, "- url: https://h/x\n  privileged: "+value+"\n", nil)
			if err != nil {
				t.Fatal(err)
			}
			if repos[0].Tier != test.tier || (len(warnings) == 1) != test.warns {
				t.Errorf("tier %v, warnings %q", repos[0].Tier, warnings)
			}
			if test.warns && !strings.Contains(warnings[0], "entry 1 (https://h/x, line 1): privileged: ") {
				t.Errorf("the warning: %s", warnings[0])
			}
		})
	}
	// No right is given by guessing.
	for _, value := range []string{"1", "0", `"1"`, "truee", "t", "'true or not'", "tru", "system", "[true]", "{true: true}", "!!int 1", "yes!", "1.0", "~x"} {
		if repos, _, err := read(t, "- url: https://h/x\n  privileged: "+value+"\n", nil); err == nil {
			t.Errorf("%s gives %v", value, repos[0].Tier)
		}
	}
}

func TestDirectoryWithASlash(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"a/b/": "a/b", "/a/b": "a/b", "//a": "a", "/": ".", "./a": "a"} {
		repos, warnings, err := read(t, `[{"url": "https://h/x", "ymldir": "`+value+`"}]`, nil)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if repos[0].YMLDir != want || (len(warnings) == 1) != strings.HasPrefix(value, "/") {
			t.Errorf("%s: got %q, warnings %q", value, repos[0].YMLDir, warnings)
		}
	}
	for _, value := range []string{"..", "/..", "/../x", "a/../../b"} {
		_, _, err := read(t, `[{"url": "https://h/x", "ymldir": "`+value+`"}]`, nil)
		expect(t, err, "is not a path inside the repository")
	}
}

func TestVariablesOfTheScript(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  map[string]string
		want []string // each in one warning, in this order
	}{
		"nothing":   {map[string]string{"PATH": "/bin", "HOME": "/"}, nil},
		"on":        {map[string]string{"DRYRUN": "1", "ONCE": "true", "DEBUG": "yes"}, nil},
		"empty":     {map[string]string{"DRYRUN": "", "ONCE": " ", "DEBUG": ""}, nil},
		"off":       {map[string]string{"DRYRUN": "false", "ONCE": " 0 ", "DEBUG": "No"}, []string{"DRYRUN=false, ONCE=0, DEBUG=No: off; for the shell script"}},
		"one":       {map[string]string{"ONCE": "OFF", "DEBUG": "1"}, []string{"ONCE=OFF: off; for the shell script"}},
		"no verify": {map[string]string{"GIT_SSL_NO_VERIFY": "1"}, []string{"GIT_SSL_NO_VERIFY (certificates are always checked, name the server's CA in GIT_SSL_CAINFO)"}},
		"several":   {map[string]string{"GIT_SSH_COMMAND": "ssh -i hunter22", "CURL_CA_BUNDLE": "/x", "ONCE": "0"}, []string{"ONCE=0", "GIT_SSH_COMMAND (use SSH_KEY_FILE and SSH_KNOWN_HOSTS_FILE); CURL_CA_BUNDLE (use --cacert in CURL_OPTIONS)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := outside(t)
			at.set = test.set
			config, err := configure(t, vars{"REPO": appURL}, at)
			if err != nil {
				t.Fatal(err)
			}
			if len(config.Warnings) != len(test.want) {
				t.Fatalf("got %q", config.Warnings)
			}
			for i, want := range test.want {
				if !strings.Contains(config.Warnings[i], want) || strings.Contains(config.Warnings[i], "hunter22") {
					t.Errorf("got %q, want %q", config.Warnings[i], want)
				}
			}
		})
	}
}

func TestEncodedCredentialsWarn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"joe:hunter%4022": true, "joe:hunter22%": false, "joe:100%sure": false, "joe:hunter22": false, "j%C3%A9:hunter22": true} {
		config := mustConfigure(t, vars{"REPO": appURL, "REPOCREDS": text})
		got := slices.ContainsFunc(config.Warnings, func(warning string) bool { return strings.HasPrefix(warning, "REPOCREDS: percent-encoding") })
		if got != want || strings.Contains(strings.Join(config.Warnings, "\n"), "hunter") {
			t.Errorf("%s: warnings %q", text, config.Warnings)
		}
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	got := environ([]string{"A=b=c", "B=", "C"})
	if len(got) != 3 || got["A"] != "b=c" || got["B"] != "" {
		t.Errorf("got %q", got)
	}
}

// TestTheListWarnsOnce wants one reading to say the same as the next, as what was said is
// not said again.
func TestTheListWarnsOnce(t *testing.T) {
	t.Parallel()
	list := mustConfigure(t, vars{"CONFIG": writeFile(t, "list", `[{"url": "https://h/x", "ymldir": "/a", "privileged": "yes"}, {"url": "https://h/x", "ymldir": "b"}]`)}).List
	_, first, err := list.Read(context.Background())
	if err != nil || len(first) != 3 {
		t.Fatal(first, err)
	}
	if _, second, err := list.Read(context.Background()); err != nil || !slices.Equal(first, second) {
		t.Errorf("first %q, then %q, %v", first, second, err)
	}
}
