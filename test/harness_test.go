package test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		raw  string
		want line
	}{
		"a sync": {
			`{"level":"info","repo":"site","revision":"abc1234","created":2,"time":"now","message":"synced"}`,
			line{message: "synced", repo: "site", rev: "abc1234", text: "INFO synced created=2 repo=site revision=abc1234"},
		},
		"lists": {
			`{"level":"warn","objects":["ConfigMap/a \"x\"","b"],"message":"sync partial"}`,
			line{message: "sync partial", text: "WARN sync partial objects=ConfigMap/a \"x\"\nb"},
		},
		"no JSON": {"kubesync: REPO: bad", line{text: "kubesync: REPO: bad"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parseLine(test.raw); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAuditLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ raw, want string }{
		"a write": {
			`{"verb":"patch","user":{"username":"daemon"},"impersonatedUser":{"username":"kubesync-limited"},"userAgent":"kubesync/1",
			"objectRef":{"resource":"deployments","subresource":"scale","namespace":"web","name":"site"},"responseStatus":{"code":200}}`,
			"patch deployments/scale web/site daemon as=kubesync-limited 200 kubesync/1",
		},
		"a dry run": {
			`{"verb":"patch","requestURI":"/api/v1/namespaces/web?dryRun=All&force=true","user":{"username":"daemon"},"userAgent":"kubesync/1",
			"objectRef":{"resource":"namespaces","name":"web"},"responseStatus":{"code":200}}`,
			"dryrun-patch namespaces web daemon as= 200 kubesync/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := auditLine(test.raw); err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestWrongWith(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		output string
		wrong  bool
	}{
		"nothing":              {"{\"message\":\"synced\"}\n", false},
		"a panic in a message": {"{\"message\":\"panic: no\"}\n", false},
		"panic":                {"{}\npanic: oh no\n\ngoroutine 1 [running]:\n", true},
		"race":                 {"==================\nWARNING: DATA RACE\nRead at …\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := wrongWith(test.output); (got != "") != test.wrong {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestExpectStatus(t *testing.T) {
	t.Parallel()
	end := func(script string) error { return exec.Command("sh", "-c", script).Run() }
	for name, test := range map[string]struct {
		end  error
		want int
		fine bool
	}{
		"as expected":      {end("exit 2"), 2, true},
		"success":          {end("exit 0"), 0, true},
		"another":          {end("exit 1"), 2, false},
		"killed":           {end("kill -9 $$"), 0, false},
		"did not even run": {errors.New("no program"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := expectStatus(test.end, test.want); (err == nil) != test.fine {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	s := &scenario{}
	s.noticeSecret("REPOCREDS", "ada:pass word")
	s.noticeSecret("REPO", "https://ada:in-the-url@example.com/a,https://example.com/b")
	s.keep("abc") // too short to be searched for
	for text, found := range map[string]bool{
		"ada pass-word abc": false, "x pass word x": true, "pass+word": true, "cGFzcyB3b3Jk": true, "in-the-url": true,
	} {
		if err := s.secrets.Search("somewhere", []byte(text)); (err != nil) != found {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestConditionsNeedAnAnswer proves that a condition turned around does not hold
// because no one answered.
func TestConditionsNeedAnAnswer(t *testing.T) {
	t.Parallel()
	w := wanted{negated: true, look: func(*scenario, []string) (verdict, error) { return verdict{}, errors.New("refused") }}
	if _, err := w.try(nil); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
	w.look = func(*scenario, []string) (verdict, error) { return verdict{saw: "no"}, nil }
	if _, err := w.try(nil); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestShortMomentsCount proves that a script that waits for a sync sees the one
// that another one followed at once, and none of before it last did something.
func TestShortMomentsCount(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	d := &daemon{name: "daemon", log: log}
	s := &scenario{daemons: map[string]*daemon{"daemon": d}}
	write := func(created int) {
		t.Helper()
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, `{"level":"info","repo":"site","revision":"abc1234","created":%d,"message":"synced"}`+"\n", created)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	write(2)
	s.acts()
	before := d.before
	write(3)
	write(4)
	for pattern, want := range map[string]struct{ waiting, looking bool }{
		"created=1": {false, false}, "created=2": {true, false}, "created=3": {true, false}, "created=4": {true, true},
	} {
		for _, s.waits = range []bool{true, false} {
			d.before = before
			v, err := s.lastSync("synced", []string{"site", pattern})
			if err != nil {
				t.Fatal(err)
			}
			if holds := s.waits && want.waiting || !s.waits && want.looking; v.holds != holds {
				t.Errorf("%s, waiting %t: %+v", pattern, s.waits, v)
			}
		}
	}
}
