package repo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ shown, name string }{
		"https://example.com/team/app.git":         {"https://example.com/team/app.git", "app"},
		"HTTPS://Example.COM:8443/team/app/":       {"https://example.com:8443/team/app", "app"},
		"https://example.com/app.git//":            {"https://example.com/app.git", "app"},
		"git@example.com:team/app.git/":            {"git@example.com:team/app.git", "app"},
		"file:///srv/app/":                         {"file:///srv/app", "app"},
		"http://ann:secret@example.com/app":        {"http://example.com/app", "app"},
		"https://token@example.com/app":            {"https://example.com/app", "app"},
		"https://a%40b:p%2Fw%3F@example.com/app":   {"https://example.com/app", "app"},
		"https://[2001:db8::1]:8443/app.git":       {"https://[2001:db8::1]:8443/app.git", "app"},
		"https://example.com/My%20Team/_git/a%20b": {"https://example.com/My%20Team/_git/a%20b", "a b"},
		"https://example.com/a@b/app":              {"https://example.com/a@b/app", "app"},
		"ssh://git@example.com:2222/team/app.git":  {"ssh://git@example.com:2222/team/app.git", "app"},
		"ssh://ann:secret@example.com/~/app":       {"ssh://ann@example.com/~/app", "app"},
		"git@example.com:team/app.git":             {"git@example.com:team/app.git", "app"},
		"example.com:app":                          {"example.com:app", "app"},
		"git@[2001:db8::1]:app.git":                {"git@[2001:db8::1]:app.git", "app"},
		"file:///srv/git/app.git":                  {"file:///srv/git/app.git", "app"},
		"file://localhost/srv/app":                 {"file:///srv/app", "app"},
		"file:///srv/app/.git":                     {"file:///srv/app/.git", "app"},
		"file:///srv/a%20b":                        {"file:///srv/a%20b", "a b"},
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if u.String() != want.shown || u.Name() != want.name || u.IsFile() != strings.HasPrefix(text, "file:") {
			t.Errorf("%s: got %s, name %q, file %v", text, u, u.Name(), u.IsFile())
		}
		encoded, err := json.Marshal(u)
		if err != nil {
			t.Error(err)
		}
		all := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %s", u, u, u, u, &u, []URL{u}, struct{ U URL }{u}, encoded)
		if strings.Contains(all, "secret") || strings.Contains(all, "token") || strings.Contains(all, "p/w") || strings.Contains(all, "p%2Fw") {
			t.Errorf("%s: printed with its password: %s", text, all)
		}
	}
}

func TestURLCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Credentials{
		"http://ann:secret@example.com/app":      {User: "ann", Password: "secret"},
		"https://a%40b:p%2Fw%3F@example.com/app": {User: "a@b", Password: "p/w?"},
		"https://token@example.com/app":          {User: "token", Password: ""},
		"https://example.com/app":                {},
		"ssh://git:secret@example.com/app":       {},
		"git@example.com:app":                    {},
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := u.Credentials(); got != want || ok != (want != Credentials{}) {
			t.Errorf("%s: got user %q, password %q, %v", text, got.User, got.Password, ok)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"":                                   "accepted are",
		"app":                                "accepted are",
		"/srv/app":                           "file:///srv/app",
		"./app":                              "accepted are",
		"git://example.com/app":              "accepted are",
		"ftp://example.com/app":              "accepted are",
		"ext::sh -c id":                      "accepted are",
		"https:///app":                       "no host",
		"https://example.com":                "names no repository",
		"https://example.com/":               "names no repository",
		"https://example.com/.git":           "names no repository",
		"file://host/app":                    "file:///",
		"file://":                            "names no repository",
		"https://example.com/app?x=secret":   "?",
		"https://example.com/app#secret":     "#",
		"https://ann:sec/ret@example.com/a":  "percent-encoded",
		"https://ann:12/secret@example.com/": "%2F",
		"https://ann:sec%ret@example.com/a":  "percent-encoded",
		"https://ann:sec ret@example.com/a":  "percent-encoded",
		"https://ann:secret":                 "percent-encoded",
		"ann:secret@example.com/app":         "@ after the colon",
		"https://example.com/a\nb":           "control character",
		"-oProxyCommand=id:app":              "accepted are",
		"https://ann:sec#ret@example.com/a":  "#",
	} {
		_, err := ParseURL(text)
		says(t, err, reason)
		for _, secret := range []string{"secret", "sec/ret", "sec%ret", "sec ret", "ann:sec"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: the error shows the password: %v", text, err)
			}
		}
	}
}

func TestCredentialsPrintMasked(t *testing.T) {
	t.Parallel()
	c := Credentials{User: "ann", Password: "secret"}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Error(err)
	}
	all := fmt.Sprintf("%v %+v %#v %s %v %#v %s", c, c, c, c, &c, []Credentials{c}, encoded)
	if strings.Contains(all, "secret") || strings.Contains(all, "ann") {
		t.Errorf("printed: %s", all)
	}
}

// FuzzParseURL looks for a URL that reads differently once printed, and for a
// password that can be seen.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/app.git", "ssh://git@example.com/app", "git@example.com:app", "file:///srv/app", "example.com/app",
		"https://[::1]/a", "host:12/app", "ssh://::/0", "ssh://[::%25\xfb]/0", "https://example.com/%2e%2e/a", "ssh://[::1%25eth0]/a", "[::1]:a", "file:///a%2Fb",
	} {
		f.Add(seed, "secret")
	}
	f.Add("", "/!00")
	f.Add("", "12/34")
	f.Fuzz(func(t *testing.T, text, password string) {
		if u, err := ParseURL(text); err == nil {
			again, err := ParseURL(u.String())
			if err != nil {
				t.Fatalf("%q is printed as %q, which is none: %v", text, u, err)
			}
			if again.String() != u.String() || again.Name() != u.Name() {
				t.Errorf("%q is printed as %q, which is printed as %q", text, u, again)
			}
		}
		// A password that no one would find by chance.
		if len(password) < 4 || strings.Contains("https://ann:@example.com/app", password) || strings.Contains(acceptedURLs, password) {
			return
		}
		u, err := ParseURL("https://ann:" + password + "@example.com/app")
		shown := fmt.Sprintf("%#v", u)
		if err != nil {
			shown, _, _ = strings.Cut(err.Error(), "\": ") // the rest is our own words
		}
		if strings.Contains(shown, password) {
			t.Errorf("password %q is shown: %s", password, shown)
		}
	})
}
