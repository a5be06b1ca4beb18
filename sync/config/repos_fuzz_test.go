package config

import (
	"strings"
	"testing"
)

// FuzzRepos reads whatever may stand in REPO around a URL with a password. What is taken
// has names that are unique, and the password shows nowhere.
func FuzzRepos(f *testing.F) {
	for _, seed := range [][2]string{
		{"https://h/a ", ",https://h/b"}, {"", ""}, {"git@h:x,", " ssh://h/y"}, {"file:///x ", "\t/"}, {"http://[::1", "]/x"}, {"https://h/a.git https://i/a ", ""}, {"\x00", "%"}, {"://", "?#"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		env := environment{Repo: before + " https://joe:S3cr3t-w0rd@host/x " + after}
		env.fill()
		config, err := build(env, host{})
		if err != nil {
			if text := err.Error(); strings.Contains(text, "S3cr3t-w0rd") {
				t.Errorf("shows the password: %s", text)
			}
			return
		}
		names := map[string]bool{}
		for _, r := range config.Repos {
			if r.Name == "" || names[r.Name] || strings.Contains(r.URL.String(), "S3cr3t-w0rd") {
				t.Errorf("bad repo %q of %s", r.Name, r.URL)
			}
			names[r.Name] = true
		}
	})
}
