package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

func TestRedactor(t *testing.T) {
	t.Parallel()
	const odd = `p"a\s<s>&/@w: ö`
	redactor := New("hunter22", "hunter22-and-more", odd, "joe:s3cret", "abc", "")
	for name, test := range map[string]struct{ text, want string }{
		"plain":            {"a hunter22 b", "a *** b"},
		"the longest":      {"hunter22-and-more", "***"},
		"several":          {"hunter22hunter22", "******"},
		"nothing":          {"nothing to hide", "nothing to hide"},
		"too short":        {"abc", "abc"},
		"odd":              {odd, "***"},
		"query":            {"?x=" + url.QueryEscape(odd), "?x=***"},
		"path":             {"/" + url.PathEscape(odd), "/***"},
		"URL":              {"https://" + url.UserPassword("joe", "s3cret").String() + "@h/", "https://***@h/"},
		"header":           {"Basic " + base64.StdEncoding.EncodeToString([]byte("joe:s3cret")), "Basic ***"},
		"header, unpadded": {"Basic " + base64.RawURLEncoding.EncodeToString([]byte("joe:s3cret")), "Basic ***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := redactor.String(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestTheLogIsRedacted sends secrets through zerolog in the ways they get there.
func TestTheLogIsRedacted(t *testing.T) {
	t.Parallel()
	const secret = `pa"ss\wo<r>d`
	redactor := New(secret)
	for name, format := range map[string]func(*bytes.Buffer) zerolog.Logger{
		"json": func(out *bytes.Buffer) zerolog.Logger { return zerolog.New(redactor.Writer(out)) },
		"console": func(out *bytes.Buffer) zerolog.Logger {
			return zerolog.New(zerolog.ConsoleWriter{Out: redactor.Writer(out), NoColor: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			log := format(&out)
			log.Error().Err(errors.New("cannot use "+secret)).Str("plain", secret).Interface("any", map[string]string{"x": secret}).
				Msgf("quoted %q and as it is %s", secret, secret)
			if strings.Count(out.String(), mask) != 5 {
				t.Errorf("want 5 masks in:\n%s", out.String())
			}
			for _, part := range []string{"wo<r>d", `wo\u003c`, `pa\"ss`, `pa"ss`} {
				if strings.Contains(out.String(), part) {
					t.Errorf("%q is still there:\n%s", part, out.String())
				}
			}
		})
	}
}

func TestRedactingWriterReportsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	line := []byte("the secret is hunter22\n")
	if n, err := New("hunter22").Writer(&out).Write(line); n != len(line) || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if out.String() != "the secret is ***\n" {
		t.Errorf("got %q", out.String())
	}
	if _, err := New().Writer(brokenWriter{}).Write(line); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestSecretsAreAddedWhileOthersRedact(t *testing.T) {
	t.Parallel()
	redactor := New()
	var done sync.WaitGroup
	for _, secret := range []string{"first-secret", "second-secret", "third-secret"} {
		done.Go(func() {
			redactor.Add(secret)
			if got := redactor.String(secret); got != mask {
				t.Errorf("got %q", got)
			}
		})
	}
	done.Wait()
}

func TestURLSecrets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, shown, hidden string }{
		"password":         {"https://joe:hunter22@h/x", "joe h/x", "hunter22"},
		"token":            {"https://gh-token@h/x", "h/x", "gh-token"},
		"github's old way": {"https://gh-token:x-oauth-basic@h/x", "h/x", "gh-token"},
		"ssh user":         {"ssh://gitlab@h/x", "gitlab", ""},
		"encoded":          {"https://joe:p%40ss%2Fword@h/x", "joe", "p@ss/word"},
		"broken":           {"https://joe:pa%ssword@h/x", "h/x", "pa%ssword"},
		"slash":            {"https://joe:pa/ssword@h/x", "h/x", "pa/ssword"},
		"several":          {"https://h/a, https://joe:hunter22@h/x", "h/a", "hunter22"},
		"in JSON":          {`[{"url":"https://joe:hunter22@h/x"}]`, "joe h/x", "hunter22"},
		"query":            {"https://h/x?ref=main&private_token=glpat-1", "main", "glpat-1"},
		"no URL":           {"joe:hunter22@h", "joe:hunter22@h", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redactor := New(URLs(test.text)...)
			if got := redactor.String(test.shown); got != test.shown {
				t.Errorf("%q is no secret, and becomes %q", test.shown, got)
			}
			if got := redactor.String("<" + test.hidden + ">"); test.hidden != "" && got != "<***>" {
				t.Errorf("%q is a secret, and becomes %q", test.hidden, got)
			}
		})
	}
}
