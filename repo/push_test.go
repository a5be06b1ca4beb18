package repo

import "testing"

func TestPushConcernsTheRepository(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		configured, pushed string
		want               bool
	}{
		"equal":            {"https://git.example.com/team/site.git", "https://git.example.com/team/site.git", true},
		"without .git":     {"https://git.example.com/team/site", "https://git.example.com/team/site.git", true},
		"slash at the end": {"https://git.example.com/team/site/", "https://git.example.com/team/site", true},
		"ssh URL":          {"ssh://git@git.example.com:2222/team/site.git", "https://git.example.com/team/site.git", true},
		"scp":              {"git@git.example.com:team/site.git", "https://git.example.com/team/site.git", true},
		"scp, absolute":    {"git@git.example.com:/team/site", "ssh://git@git.example.com/team/site.git", true},
		"http and https":   {"http://git.example.com:3000/team/site", "https://git.example.com/team/site", true},
		"case of the host": {"https://GIT.example.com/team/site", "https://git.Example.com/team/site", true},
		"case of the path": {"https://git.example.com/Team/Site", "https://git.example.com/team/site", true},
		"credentials":      {"https://user:pw12@git.example.com/team/site", "https://git.example.com/team/site", true},
		"escapes":          {"https://git.example.com/my%20team/site", "git@git.example.com:my team/site.git", true},
		"file":             {"file:///srv/site.git", "file:///srv/site", true},
		"another host":     {"https://git.example.com/team/site", "https://git.example.org/team/site", false},
		"another path":     {"https://git.example.com/team/site", "https://git.example.com/team/site2", false},
		"another group":    {"https://git.example.com/team/site", "https://git.example.com/site", false},
		"a longer path":    {"https://git.example.com/team/site", "https://git.example.com/a/team/site", false},
		"file elsewhere":   {"file:///team/site", "https://git.example.com/team/site", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configured, err := ParseURL(test.configured)
			if err != nil {
				t.Fatal(err)
			}
			pushed, err := ParseURL(test.pushed)
			if err != nil {
				t.Fatal(err)
			}
			other := URL{scheme: "https", host: "elsewhere", path: "/x"}
			if got := (Push{URLs: []URL{other, pushed}}).Concerns(configured, Version{}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPushConcernsTheVersion(t *testing.T) {
	t.Parallel()
	address, err := ParseURL("https://git.example.com/team/site")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		version, branch string
		refs            []string
		want            bool
	}{
		"branch":                    {"branch:main", "", []string{"refs/heads/main"}, true},
		"another branch":            {"branch:main", "main", []string{"refs/heads/main2"}, false},
		"a tag of that name":        {"branch:main", "", []string{"refs/tags/main"}, false},
		"one of several":            {"branch:main", "", []string{"refs/heads/a", "refs/heads/main"}, true},
		"who knows":                 {"branch:main", "", nil, true},
		"tag":                       {"tag:v1", "", []string{"refs/tags/v1"}, true},
		"another tag":               {"tag:v1", "", []string{"refs/tags/v2"}, false},
		"latest, a tag":             {"tag:latest", "main", []string{"refs/tags/v2"}, true},
		"latest, default branch":    {"tag:latest", "main", []string{"refs/heads/main"}, true},
		"latest, another branch":    {"tag:latest", "main", []string{"refs/heads/x"}, false},
		"semver, a tag":             {"semver:>=1", "main", []string{"refs/tags/v2"}, true},
		"semver, a branch":          {"semver:>=1", "main", []string{"refs/heads/main"}, false},
		"commit":                    {"commit:abcd1234", "main", []string{"refs/heads/x"}, true},
		"unset, master":             {"", "main", []string{"refs/heads/master"}, true},
		"unset, default branch":     {"", "main", []string{"refs/heads/main"}, true},
		"unset, another branch":     {"", "main", []string{"refs/heads/x"}, false},
		"unset, default is unknown": {"", "", []string{"refs/heads/x"}, true},
		"unset, a tag":              {"", "", []string{"refs/tags/v1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version, err := ParseVersion(test.version)
			if err != nil {
				t.Fatal(err)
			}
			push := Push{URLs: []URL{address}, Refs: test.refs, DefaultBranch: test.branch}
			if got := push.Concerns(address, version); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
