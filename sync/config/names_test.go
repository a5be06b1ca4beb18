package config

import (
	"slices"
	"strings"
	"testing"
)

// namesOf returns what the repos of a list are called, in its order, and the warnings.
func namesOf(t *testing.T, set vars, entries ...string) ([]string, []string) {
	t.Helper()
	repos, warnings, err := read(t, "["+strings.Join(entries, ",")+"]", set)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range repos {
		names = append(names, r.Name)
	}
	return names, warnings
}

func TestNamesInTheList(t *testing.T) {
	t.Parallel()
	const (
		plain = `{"url": "https://h/site"}`
		prod  = `{"url": "https://h/site", "ymldir": "overlays/prod/"}`
		test  = `{"url": "https://h/site", "ymldir": "/overlays/test"}`
		named = `{"url": "https://h/site", "ymldir": "c", "name": "mine"}`
		git   = `{"url": "https://h/site.git/", "ymldir": "d"}`
		other = `{"url": "https://h/other", "ymldir": "overlays/prod"}`
	)
	for name, test := range map[string]struct {
		set     vars
		entries []string
		want    string
		warns   bool
	}{
		"alone":               {nil, []string{plain}, "site", false},
		"alone in it":         {nil, []string{prod}, "site", false},
		"with others":         {nil, []string{other, prod}, "other site", false},
		"two":                 {nil, []string{prod, test}, "site-overlays-prod site-overlays-test", true},
		"in any order":        {nil, []string{test, prod}, "site-overlays-test site-overlays-prod", true},
		"beside others":       {nil, []string{test, other, prod}, "site-overlays-test other site-overlays-prod", true},
		"one is the whole":    {nil, []string{plain, prod}, "site site-overlays-prod", true},
		"whichever comes":     {nil, []string{prod, plain}, "site-overlays-prod site", true},
		"root":                {nil, []string{`{"url": "https://h/site", "ymldir": "."}`, prod}, "site site-overlays-prod", true},
		"a name counts not":   {nil, []string{named, prod}, "mine site", false},
		"with and without":    {nil, []string{git, prod}, "site-d site-overlays-prod", true},
		"beside REPO":         {vars{"REPO": "https://h/site/"}, []string{prod}, "site-overlays-prod", true},
		"REPO has a YMLDIR":   {vars{"REPO": "https://h/site", "YMLDIR": "x"}, []string{prod}, "site-overlays-prod", true},
		"odd letters":         {nil, []string{plain, `{"url": "https://h/site", "ymldir": "My Dir/.k8s/v1.2"}`}, "site site-my-dir.k8s-v1.2", true},
		"other hosts' others": {nil, []string{prod, `{"url": "https://g/site2", "ymldir": "x"}`}, "site site2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, warnings := namesOf(t, test.set, test.entries...)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			found := slices.ContainsFunc(warnings, func(warning string) bool {
				return strings.Contains(warning, "have the same url, https://h/site") && strings.Contains(warning, `give each a "name"`)
			})
			if found != test.warns {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

// TestNamesAreStable takes every order and part of a list: what an entry is called
// depends on the entries for its own URL alone, and on their number, not their order.
func TestNamesAreStable(t *testing.T) {
	t.Parallel()
	entries := []string{
		`{"url": "https://h/a"}`, `{"url": "https://h/a", "ymldir": "x"}`, `{"url": "https://h/a", "ymldir": "y"}`,
		`{"url": "https://h/b", "ymldir": "x"}`, `{"url": "https://h/b", "ymldir": "y"}`, `{"url": "https://h/c", "ymldir": "x"}`,
	}
	groups := []string{"a", "a", "a", "b", "b", "c"}
	want, _ := namesOf(t, nil, entries...)
	for i := range entries {
		// Without all entries for one other URL, and turned around.
		var rest, kept []string
		for j := range entries {
			if groups[j] != groups[i] {
				rest, kept = append(rest, entries[j]), append(kept, want[j])
			}
		}
		slices.Reverse(rest)
		slices.Reverse(kept)
		if got, _ := namesOf(t, nil, rest...); !slices.Equal(got, kept) {
			t.Errorf("without %s: got %q, want %q", groups[i], got, kept)
		}
	}
}

func TestNamesThatCollide(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 250)
	for name, entries := range map[string]string{
		"same directory":   `{"url": "https://h/s", "ymldir": "a"}, {"url": "https://h/s", "ymldir": "./a/"}`,
		"same letters":     `{"url": "https://h/s", "ymldir": "a/b"}, {"url": "https://h/s", "ymldir": "a-b"}`,
		"no directory":     `{"url": "https://h/s"}, {"url": "https://h/s/"}`,
		"command only":     `{"url": "https://h/s", "cmd": "a"}, {"url": "https://h/s", "cmd": "b"}`,
		"another URL's":    `{"url": "https://h/s", "ymldir": "a"}, {"url": "https://h/s", "ymldir": "b"}, {"url": "https://h/s-a"}`,
		"a given name":     `{"url": "https://h/s", "ymldir": "a"}, {"url": "https://h/s", "ymldir": "b"}, {"url": "https://h/x", "name": "s-b"}`,
		"too long to tell": `{"url": "https://h/s", "ymldir": "` + long + `/a"}, {"url": "https://h/s", "ymldir": "` + long + `/b"}`,
		"REPO":             `{"url": "https://h/taken"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, "["+entries+"]", nil)
			expect(t, err, "CONFIG: ", "the name ", `give one of them another "name"`)
		})
	}
}
