package canary_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/canary"
)

const value = `pa"ss/w+rd <é>&1`

// Each form in which a secret may leave a program is found, and reported without it.
func TestSearch(t *testing.T) {
	t.Parallel()
	inJSON, err := json.Marshal(map[string]string{"password": value})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":            "password=" + value + ".",
		"base64":           base64.StdEncoding.EncodeToString([]byte(value)),
		"base64, user":     base64.StdEncoding.EncodeToString([]byte("ada:" + value)),
		"base64, longer":   base64.StdEncoding.EncodeToString([]byte("robot:" + value + "\n")),
		"base64, other":    base64.StdEncoding.EncodeToString([]byte("jane:" + value + "xy")),
		"base64 for URLs":  base64.URLEncoding.EncodeToString([]byte(value)),
		"URL":              (&url.URL{Scheme: "https", Host: "git.example.com", User: url.UserPassword("ada", value)}).String(),
		"query":            url.Values{"token": {value}}.Encode(),
		"path":             "/hook/" + url.PathEscape(value),
		"JSON":             string(inJSON),
		"quoted":           strings.Trim(strings.ReplaceAll(value, `"`, `\"`), " "),
		"hexadecimal":      "7061227373" + "2f772b7264203cc3a93e2631",
		"line of a key":    "abcdefghijklmnop",
		"end of the lines": "rstuvwxyz0123456",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var secrets canary.Secrets
			for _, secret := range []string{value, "-----BEGIN KEY-----\nabcdefghijklmnop\nrstuvwxyz0123456\n-----END KEY-----\n"} {
				if err := secrets.Add(canary.Credential, secret); err != nil {
					t.Fatal(err)
				}
			}
			err := secrets.Search("the log", []byte("before "+text+" after"))
			if err == nil {
				t.Fatalf("not found in %s", text)
			}
			if strings.Contains(err.Error(), value) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestSearchFindsNothing(t *testing.T) {
	t.Parallel()
	var secrets canary.Secrets
	if err := secrets.Add(canary.Data, value); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Add(canary.Credential, "short"); err == nil {
		t.Error("a short secret is taken")
	}
	if err := secrets.Search("a log", []byte(`-----BEGIN KEY----- pa"ss/w+rd cGEic3Mv`)); err != nil {
		t.Error(err)
	}
	if err := secrets.Search("a work tree", []byte(value), canary.Credential); err != nil {
		t.Errorf("what stands in a Secret is looked for where it may be: %v", err)
	}
	want := canary.Searched{Texts: 2, Bytes: 39 + len(value), Secrets: 1}
	if got := secrets.Covered(); got != want {
		t.Errorf("covered %+v, want %+v", got, want)
	}
}

func TestAddManifests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "kind: ConfigMap\ndata: {a: not-secret}\n---\nkind: Secret\nstringData: {a: from-a-string}\ndata: {b: " +
			base64.StdEncoding.EncodeToString([]byte("from-some-data")) + ", c: c2hvcnQ=}\n",
		"b.json":  `{"kind": "List", "items": [{"kind": "Secret", "stringData": {"a": "from-a-list"}}]}`,
		"c.yaml":  "kind: [",
		"d.other": "kind: Secret\nstringData: {a: from-no-manifest}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var secrets canary.Secrets
	if err := secrets.AddManifests(dir); err != nil {
		t.Fatal(err)
	}
	for text, found := range map[string]bool{
		"from-a-string": true, "from-some-data": true, "from-a-list": true, "not-secret": false, "from-no-manifest": false,
	} {
		if err := secrets.Search(text, []byte(text)); (err != nil) != found {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Arguments and environments of all that a process starts are seen.
func TestWatch(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sh", "-c", `(IN_ENV=canary-in-environment sh -c 'read x; true' in-arguments-canary)`)
	command.Env = []string{"OWN=canary-of-the-root", "PATH=" + os.Getenv("PATH")}
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	watch := canary.Watch(command.Process.Pid)
	found := func() bool {
		seen := watch.Seen()
		return strings.Contains(string(seen["environment of sh"]), "IN_ENV=canary-in-environment") &&
			strings.Contains(string(seen["arguments of sh"]), "in-arguments-canary")
	}
	for late := time.Now().Add(time.Minute); !found() && time.Now().Before(late); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // read fails at the end of the input
	watch.Stop()
	seen := watch.Seen()
	if text := string(seen["environment of sh"]); !strings.Contains(text, "IN_ENV=canary-in-environment") {
		t.Errorf("environments: %q", text)
	}
	if text := string(seen["arguments of sh"]); !strings.Contains(text, "in-arguments-canary") {
		t.Errorf("arguments: %q", text)
	}
}
