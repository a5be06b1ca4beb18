package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo"
)

const secret = "the-shared-secret"

// hook is a webhook and what it polls.
type hook struct {
	*Handler
	log     bytes.Buffer
	standby bool
	secret  string
	err     error

	mu     sync.Mutex // guards what follows
	polled []string
}

func newHook(t *testing.T, targets ...Target) *hook {
	t.Helper()
	h := &hook{secret: secret}
	h.Handler = New(Options{
		Secret:  func() (string, error) { return h.secret, h.err },
		Targets: func() []Target { return targets },
		Standby: func() bool { return h.standby },
		Poll: func(name string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.polled = append(h.polled, name)
		},
		Log: zerolog.New(zerolog.SyncWriter(&h.log)),
	})
	return h
}

// polls returns what was polled so far.
func (h *hook) polls() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(h.polled)), " ")
}

// post sends a body, and returns status and answer.
func (h *hook) post(header http.Header, body []byte) (int, string) {
	request := httptest.NewRequest(http.MethodPost, "/webhook", bytes.NewReader(body))
	request.Header = header
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func target(t *testing.T, name, address, version string) Target {
	t.Helper()
	parsed, err := repo.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	mode, err := repo.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return Target{Name: name, URL: parsed, Version: mode}
}

// mac is the signature of a body.
func mac(body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return fmt.Sprintf("%x", m.Sum(nil))
}

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	header := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		header.Set(pairs[i], pairs[i+1])
	}
	return header
}

// sign are the headers that each provider sends with a body.
func sign(provider string, body []byte) http.Header {
	switch provider {
	case "github":
		return headers("X-GitHub-Event", "push", "X-Hub-Signature", "sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709", "X-Hub-Signature-256", "sha256="+mac(body))
	case "gitea":
		return headers("X-Gitea-Event", "push", "X-GitHub-Event", "push", "X-Gitea-Signature", mac(body), "X-Hub-Signature-256", "sha256="+mac(body))
	case "forgejo":
		return headers("X-Forgejo-Event", "push", "X-Forgejo-Signature", mac(body))
	case "gitlab":
		return headers("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", secret)
	case "bitbucket":
		return headers("X-Event-Key", "repo:push", "X-Hub-Signature", "sha256="+mac(body))
	case "bitbucket-server":
		return headers("X-Event-Key", "repo:refs_changed", "X-Hub-Signature", "sha256="+mac(body))
	}
	return headers("X-Hub-Signature-256", "sha256="+mac(body))
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestProviders(t *testing.T) {
	t.Parallel()
	form := []byte("payload=" + url.QueryEscape(string(fixture(t, "github"))))
	asForm := sign("github", form)
	asForm.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, test := range map[string]struct {
		provider string
		body     []byte
		header   http.Header // the provider's if nil
		url      string
		follows  string // a version that the push concerns
		not      string // one that it does not
	}{
		"GitHub":                {"github", fixture(t, "github"), nil, "git@github.com:team/site", "branch:main", "branch:other"},
		"GitHub as a form":      {"github", form, asForm, "https://github.com/team/site.git", "branch:main", "branch:other"},
		"GitHub default branch": {"github", fixture(t, "github"), nil, "https://github.com/Team/Site", "", "tag:v1"},
		"Gitea":                 {"gitea", fixture(t, "gitea"), nil, "ssh://git@gitea.example.com/team/site", "branch:develop", ""},
		"Forgejo":               {"forgejo", fixture(t, "gitea"), nil, "http://gitea.example.com/team/site", "branch:develop", "branch:main"},
		"GitLab":                {"gitlab", fixture(t, "gitlab"), nil, "https://gitlab.example.com/group/team/site", "", "semver:>=1"},
		"GitLab tag":            {"gitlab", fixture(t, "gitlab-tag"), nil, "https://gitlab.example.com/group/team/site", "semver:>=1", "branch:master"},
		"GitLab system hook":    {"gitlab", fixture(t, "gitlab-system"), nil, "git@gitlab.example.com:group/team/site", "branch:master", "branch:x"},
		"Bitbucket":             {"bitbucket", fixture(t, "bitbucket"), nil, "git@bitbucket.org:team/site.git", "branch:main", "branch:x"},
		"Bitbucket tag":         {"bitbucket", fixture(t, "bitbucket"), nil, "https://bitbucket.org/team/site", "tag:v2", "tag:v1"},
		"Bitbucket Data Center": {"bitbucket-server", fixture(t, "bitbucket-server"), nil, "https://bitbucket.example.com/scm/TEAM/site.git", "branch:main", "branch:x"},
		"anybody":               {"", []byte(`{"url":"https://git.example.com/a.git","ref":"refs/heads/main"}`), nil, "git@git.example.com:a", "branch:main", "branch:x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.header == nil {
				test.header = sign(test.provider, test.body)
			}
			h := newHook(t, target(t, "yes", test.url, test.follows), target(t, "no", test.url, test.not), target(t, "other", test.url+"2", test.follows))
			if status, answer := h.post(test.header, test.body); status != http.StatusAccepted || answer != "polling yes\n" || h.polls() != "yes" {
				t.Errorf("%d %q, polled %q", status, answer, h.polls())
			}
			test.header.Set("X-Gitlab-Token", "the-shared-secrets")
			if test.provider != "gitlab" {
				test.body = append(slices.Clone(test.body), ' ')
			}
			if status, answer := h.post(test.header, test.body); status != http.StatusForbidden || h.polls() != "yes" {
				t.Errorf("a wrong signature: %d %q, polled %q", status, answer, h.polls())
			}
		})
	}
}

func TestWhatPollsNothing(t *testing.T) {
	t.Parallel()
	body := fixture(t, "github")
	plain := func(text string) ([]byte, http.Header) { return []byte(text), sign("", []byte(text)) }
	broken, brokenHeader := plain(`{"url":`)
	array, arrayHeader := plain(`[]`)
	nameless, namelessHeader := plain(`{"ref":"refs/heads/main"}`)
	elsewhere, elsewhereHeader := plain(`{"url":"https://git.example.com/team/other"}`)
	with := func(header http.Header, pairs ...string) http.Header {
		for i := 0; i < len(pairs); i += 2 {
			header.Set(pairs[i], pairs[i+1])
		}
		return header
	}
	huge := bytes.Repeat([]byte("x"), mostBody+1)
	for name, test := range map[string]struct {
		header http.Header
		body   []byte
		status int
		says   string
	}{
		"no signature":          {headers("X-GitHub-Event", "push"), body, 401, "a signature is wanted"},
		"an old signature":      {headers("X-GitHub-Event", "push", "X-Hub-Signature", "sha1="+mac(body)), body, 401, "a signature is wanted"},
		"no digits":             {headers("X-Hub-Signature-256", "sha256=zz"), body, 401, "a signature is wanted"},
		"part of a signature":   {headers("X-Hub-Signature-256", "sha256="+mac(body)[:62]), body, 401, "a signature is wanted"},
		"an empty signature":    {headers("X-Hub-Signature-256", "sha256="), body, 401, "a signature is wanted"},
		"another's signature":   {headers("X-Hub-Signature-256", "sha256="+mac(nil)), body, 403, "the signature is wrong"},
		"the secret in the way": {headers("X-Gitea-Signature", secret), body, 401, "a signature is wanted"},
		"a wrong token":         {headers("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", secret[1:]), body, 403, "the signature is wrong"},
		"a ping":                {with(sign("github", body), "X-GitHub-Event", "ping"), body, 200, "no push"},
		"an issue":              {with(sign("gitlab", nil), "X-Gitlab-Event", "Issue Hook"), []byte(`{"object_kind":"issue"}`), 200, "no push"},
		"a test":                {with(sign("bitbucket", body), "X-Event-Key", "diagnostics:ping"), body, 200, "no push"},
		"another repo":          {elsewhereHeader, elsewhere, 200, "no repo here follows that"},
		"no JSON":               {brokenHeader, broken, 400, "not the JSON that its headers promise"},
		"other JSON":            {arrayHeader, array, 400, "not the JSON that its headers promise"},
		"no URL":                {namelessHeader, nameless, 400, `no "url"`},
		"a huge body":           {sign("github", huge), huge, 413, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHook(t, target(t, "site", "https://github.com/team/site", "branch:main"))
			status, answer := h.post(test.header, test.body)
			if status != test.status || !strings.Contains(answer, test.says) || h.polls() != "" {
				t.Errorf("%d %q, polled %q; want %d %q", status, answer, h.polls(), test.status, test.says)
			}
			if strings.Contains(answer+h.log.String(), secret) {
				t.Errorf("the secret is shown: %q, %s", answer, h.log.String())
			}
			if logged := strings.Contains(h.log.String(), "refused"); logged != (status == 401 || status == 403 || status == 413) {
				t.Errorf("logged: %v, %s", logged, h.log.String())
			}
		})
	}
}

func TestSecretIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newHook(t, target(t, "site", "https://github.com/team/site", "branch:main"))
	body := fixture(t, "github")
	h.secret = "another"
	if status, _ := h.post(sign("github", body), body); status != 403 {
		t.Errorf("status %d after a rotation", status)
	}
	h.secret, h.err = "", errors.New("the file is gone")
	h.refused = h.refused.Add(-refusals)
	empty := hmac.New(sha256.New, nil)
	empty.Write(body)
	header := sign("github", body)
	header.Set("X-Hub-Signature-256", fmt.Sprintf("sha256=%x", empty.Sum(nil)))
	if status, _ := h.post(header, body); status != 503 || !strings.Contains(h.log.String(), "the file is gone") {
		t.Errorf("status %d without a secret, log: %s", status, h.log.String())
	}
	h.err, h.secret, h.standby = nil, secret, true
	if status, _ := h.post(sign("github", body), body); status != 503 || h.polls() != "" {
		t.Errorf("status %d in a standby", status)
	}
}

// A flood of pushes is one poll, and one more for all that came after it.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHook(t, target(t, "site", "https://github.com/team/site", "branch:main"), target(t, "tags", "https://github.com/team/site", "semver:*"))
		body := fixture(t, "github")
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if status, answer := h.post(sign("github", body), body); status != http.StatusAccepted {
					t.Errorf("%d %q", status, answer)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if h.polls() != "site" {
			t.Errorf("polled %q at first", h.polls())
		}
		time.Sleep(while)
		synctest.Wait()
		if h.polls() != "site site" {
			t.Errorf("polled %q after a second", h.polls())
		}
		time.Sleep(10 * while)
		synctest.Wait()
		if h.polls() != "site site" {
			t.Errorf("polled %q in the end", h.polls())
		}
		h.post(sign("github", body), body)
		if h.polls() != "site site site" {
			t.Errorf("a push later: polled %q", h.polls())
		}
		time.Sleep(10 * while)
		synctest.Wait()
	})
}

// A thousand requests over real connections, most of them forged.
func TestFlood(t *testing.T) {
	t.Parallel()
	h := newHook(t, target(t, "site", "https://github.com/team/site", "branch:main"))
	server := httptest.NewServer(h)
	defer server.Close()
	body := fixture(t, "github")
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			request, err := http.NewRequest(http.MethodPost, server.URL, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			want := http.StatusForbidden
			request.Header = headers("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+mac(nil))
			if i%10 == 0 {
				request.Header, want = sign("github", body), http.StatusAccepted
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != want {
				t.Errorf("%s, want %d, %v", answer.Status, want, err)
			}
		})
	}
	all.Wait()
	if logged := strings.Count(h.log.String(), "refused"); logged != 1 {
		t.Errorf("refusals are logged %d times", logged)
	}
}

func FuzzParse(f *testing.F) {
	for _, provider := range []string{"github", "gitea", "forgejo", "gitlab", "bitbucket", "bitbucket-server", ""} {
		content, err := os.ReadFile(filepath.Join("testdata", strings.Replace(provider, "forgejo", "gitea", 1)+".json"))
		if err != nil {
			content = []byte(`{"url":"https://git.example.com/a.git","ref":"refs/heads/main"}`)
		}
		f.Add(provider, content)
	}
	f.Add("github", []byte("payload=%7B%7D"))
	f.Fuzz(func(t *testing.T, provider string, body []byte) {
		header := sign(provider, nil)
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		push, is, err := parse(header, body)
		if is && err != nil {
			t.Errorf("a push with an error: %v", err)
		}
		for _, address := range push.URLs {
			if address.String() == "" {
				t.Errorf("an address that is none in %+v", push)
			}
		}
		push.Concerns(repo.URL{}, repo.Version{})
	})
}
