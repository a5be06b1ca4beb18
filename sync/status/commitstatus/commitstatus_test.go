package commitstatus

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/test/lab/lines"
)

const (
	first  = "1111111111111111111111111111111111111111"
	second = "2222222222222222222222222222222222222222"
)

// gitServer is an API as its vendor documents it: one version path, and the path of
// statuses. All else is 404, as a page.
type gitServer struct {
	*httptest.Server

	mu     stdsync.Mutex // guards what follows
	status []int         // the next answers to statuses; 201 if empty
	answer string        // goes with them
	seen   []string      // "METHOD PATH AUTHORIZATION BODY"
}

// start serves an API whose version path answers with a status.
func start(t *testing.T, version string, versionStatus int, statuses string) *gitServer {
	t.Helper()
	g := &gitServer{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization")+" "+string(body)))
		switch {
		case r.Method == http.MethodGet && r.URL.Path == version:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(versionStatus)
			_, _ = io.WriteString(w, `{"version":"1.2.3"}`)
		case r.Method == http.MethodPost && strings.HasPrefix(r.URL.EscapedPath(), statuses):
			code := http.StatusCreated
			if len(g.status) > 0 {
				code, g.status = g.status[0], g.status[1:]
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, g.answer)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<html>not found</html>")
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// posts are the statuses that were set so far.
func (g *gitServer) posts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var posts []string
	for _, request := range g.seen {
		if rest, is := strings.CutPrefix(request, "POST "); is {
			posts = append(posts, rest)
		}
	}
	return posts
}

// newNotifier notifies the git server of one repo.
func newNotifier(t *testing.T, address string, credentials repo.Credentials) (*Notifier, *lines.Log) {
	t.Helper()
	parsed, err := repo.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	log := &lines.Log{}
	notifier := New(Options{
		Find: func(name string) (Repo, bool) {
			return Repo{URL: parsed, Credentials: func() (repo.Credentials, bool, error) { return credentials, credentials != repo.Credentials{}, nil }}, name == "site"
		},
		Roots:     func() (*x509.CertPool, error) { return nil, nil },
		UserAgent: "kubesync/test",
		Redact:    func(text string) string { return strings.ReplaceAll(text, "hunter22", "***") },
		Log:       zerolog.New(log),
		sleep:     func(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil },
	})
	ctx, stop := context.WithCancel(context.Background())
	var running stdsync.WaitGroup
	running.Go(func() { notifier.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return notifier, log
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func report(revision string, err error, outcomes ...apply.Outcome) sync.Report {
	return sync.Report{Repo: "site", Revision: repo.Revision{ID: revision}, FailedStage: sync.Planning, Err: err, Result: apply.Result{Outcomes: outcomes}}
}

func created() apply.Outcome { return apply.Outcome{Action: apply.Created} }

func TestServers(t *testing.T) {
	t.Parallel()
	const github = `{"context":"kubesync/site","description":"kubesync: files","state":"pending"}|` +
		`{"context":"kubesync/site","description":"site: plan 1111111: a.yaml:1: bad ***","state":"failure"}|` +
		`{"context":"kubesync/site","description":"1 created","state":"success"}`
	gitlab := strings.NewReplacer(`"context":"kubesync/site",`, "", `"description":`, `"description":`, `,"state"`, `,"name":"kubesync/site","state"`, `"failure"`, `"failed"`).Replace(github)
	for name, test := range map[string]struct {
		version       string
		versionStatus int
		path          string // of the repo
		statuses      string
		authorization string
		bodies        string
	}{
		"GitHub Enterprise":        {"/api/v3/meta", 200, "/team/site.git", "/api/v3/repos/team/site/statuses/", "Bearer token-1", github},
		"GitHub, private":          {"/api/v3/meta", 401, "/team/site", "/api/v3/repos/team/site/statuses/", "Bearer token-1", github},
		"Gitea":                    {"/api/v1/version", 200, "/team/site.git", "/api/v1/repos/team/site/statuses/", "Basic amFuZTp0b2tlbi0x", github},
		"Gitea that wants a login": {"/api/v1/version", 403, "/team/site.git", "/api/v1/repos/team/site/statuses/", "Basic amFuZTp0b2tlbi0x", github},
		"Gitea not at the root":    {"/code/git/api/v1/version", 200, "/code/git/team/site.git", "/code/git/api/v1/repos/team/site/statuses/", "Basic amFuZTp0b2tlbi0x", github},
		"GitLab":                   {"/api/v4/version", 401, "/group/sub/site.git", "/api/v4/projects/group%2Fsub%2Fsite/statuses/", "Bearer token-1", gitlab},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, test.version, test.versionStatus, test.statuses)
			notifier, log := newNotifier(t, g.URL+test.path, repo.Credentials{User: "jane", Password: "token-1"})
			arrived := func(n int) func() bool { return func() bool { return len(g.posts()) >= n } }
			notifier.Begin(sync.Progress{Repo: "site", Stage: sync.Resolving})
			notifier.Begin(sync.Progress{Repo: "site", Stage: sync.Reading, Revision: repo.Revision{ID: first}})
			eventually(t, "pending", arrived(1))
			notifier.Begin(sync.Progress{Repo: "site", Stage: sync.Applying, Revision: repo.Revision{ID: first}})
			notifier.Observe(report(first, errors.New("a.yaml:1:\n  bad hunter22")))
			eventually(t, "failure", arrived(2))
			notifier.Begin(sync.Progress{Repo: "site", Stage: sync.Reading, Revision: repo.Revision{ID: first}})
			notifier.Observe(report(first, errors.New("a.yaml:1:\n  bad hunter22")))
			notifier.Observe(report(second, nil, created()))
			eventually(t, "success", arrived(3))
			notifier.Observe(report(second, nil))
			notifier.Observe(report("worktree-"+second, nil))

			var bodies []string
			for i, post := range g.posts() {
				want := test.statuses + first
				if i == 2 {
					want = test.statuses + second
				}
				body, is := strings.CutPrefix(post, want+" "+test.authorization+" ")
				if !is {
					t.Errorf("got %q, want it at %s with %s", post, want, test.authorization)
				}
				bodies = append(bodies, body)
			}
			if got := strings.Join(bodies, "|"); got != test.bodies {
				t.Errorf("got\n%s\nwant\n%s", got, test.bodies)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, request := range g.seen {
				if strings.HasPrefix(request, "GET ") && strings.Count(request, " ") > 1 {
					t.Errorf("credentials are sent to look for the API: %q", request)
				}
			}
			if log.String() != "" {
				t.Errorf("log: %s", log)
			}
		})
	}
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	pending := apply.Outcome{ID: manifest.ID{Kind: "Gadget", Name: "g"}, Action: apply.Pending, Reason: "its kind is not served"}
	held := report(first, nil, created())
	held.Result.PruneHeld = "12 objects would go"
	stopped := report(first, context.Canceled)
	stopped.Interrupted = true
	suspended := report(first, nil)
	suspended.Result.Suspended = "by annotation"
	for name, test := range map[string]struct {
		report sync.Report
		want   status
		is     bool
	}{
		"synced":         {report(first, nil, created()), status{first, Success, "1 created"}, true},
		"prune held":     {held, status{first, Success, "1 created; pruning waits: 12 objects would go"}, true},
		"pending":        {report(first, nil, created(), pending), status{first, Pending, "waits: Gadget/g: pending: its kind is not served"}, true},
		"failed objects": {report(first, nil, pending, apply.Outcome{ID: manifest.ID{Kind: "Pod", Name: "p"}, Action: apply.Failed, Err: errors.New("no")}), status{first, Failure, "Gadget/g: pending: its kind is not served\nPod/p: failed: no"}, true},
		"suspended":      {suspended, status{first, Pending, "suspended: by annotation"}, true},
		"interrupted":    {stopped, status{}, false},
		"no revision":    {report("", errors.New("no route")), status{}, false},
		"a working tree": {report("worktree-"+first, nil), status{}, false},
	} {
		if got, is := of(test.report); got != test.want || is != test.is {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, is, test.want)
		}
	}
	if got := line(strings.Repeat("long\n", 100)); len([]rune(got)) != mostDescription || strings.Contains(got, "\n") {
		t.Errorf("got %q", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://github.com/team/site.git":        "https://api.github.com",
		"https://user:pw12@github.com/team/site":  "https://api.github.com",
		"http://github.com/team/site":             "http://github.com/api/v4",
		"https://github.com.example.com/team/x":   "https://github.com.example.com/api/v4",
		"https://git.example.com:8443/a/b/c.git/": "https://git.example.com:8443/api/v4",
		"git@github.com:team/site.git":            "its URL is not https:// or http://",
		"ssh://git@github.com/team/site.git":      "its URL is not https:// or http://",
		"file:///srv/team/site.git":               "its URL is not https:// or http://",
		"https://git.example.com/site.git":        "does not end in OWNER/REPO",
	} {
		parsed, err := repo.ParseURL(address)
		if err != nil {
			t.Fatal(err)
		}
		got, err := placeOf(parsed)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", address, err, want)
			}
			continue
		}
		if api := got.candidates()[0].api.String(); api != want {
			t.Errorf("%s: %s, want %s", address, api, want)
		}
	}
}

// Credentials go to the repo's own server, wherever it points.
func TestCredentialsStay(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another writer is asked: %s %v", r.URL, r.Header)
	}))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/version" {
			_, _ = io.WriteString(w, `{"version":"1.22"}`)
			return
		}
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	notifier, log := newNotifier(t, redirecting.URL+"/team/site", repo.Credentials{User: "jane", Password: "token-1"})
	notifier.Observe(report(first, nil))
	eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), "a redirect, which is not followed") })
	if strings.Contains(log.String(), "token-1") {
		t.Errorf("log: %s", log)
	}
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	jane := repo.Credentials{User: "jane", Password: "token-1"}
	t.Run("tried again", func(t *testing.T) {
		t.Parallel()
		g := start(t, "/api/v1/version", 200, "/api/v1/repos/team/site/statuses/")
		g.status = []int{500, 429}
		notifier, log := newNotifier(t, g.URL+"/team/site", jane)
		notifier.Observe(report(first, nil))
		eventually(t, "three tries", func() bool { return len(g.posts()) == 3 })
		if !strings.Contains(log.String(), "500 Internal Server Error") {
			t.Errorf("log: %s", log)
		}
	})
	t.Run("refused once per reason", func(t *testing.T) {
		t.Parallel()
		g := start(t, "/api/v1/version", 200, "/api/v1/repos/team/site/statuses/")
		g.status = []int{403, 403}
		notifier, log := newNotifier(t, g.URL+"/team/site", jane)
		notifier.Observe(report(first, nil))
		eventually(t, "the first", func() bool { return len(g.posts()) == 1 && log.String() != "" })
		notifier.Observe(report(second, nil))
		eventually(t, "the second", func() bool { return len(g.posts()) == 2 })
		notifier.Observe(report(first, nil))
		eventually(t, "the third", func() bool { return len(g.posts()) == 3 })
		if logged := strings.Count(log.String(), "must allow to set the status of commits"); logged != 1 {
			t.Errorf("logged %d times: %s", logged, log)
		}
	})
	t.Run("the same state again at GitLab", func(t *testing.T) {
		t.Parallel()
		g := start(t, "/api/v4/version", 401, "/api/v4/projects/team%2Fsite/statuses/")
		g.status, g.answer = []int{400}, `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`
		notifier, log := newNotifier(t, g.URL+"/team/site", jane)
		notifier.Observe(report(first, nil))
		eventually(t, "it", func() bool { return len(g.posts()) == 1 })
		notifier.Observe(report(second, nil))
		eventually(t, "the next", func() bool { return len(g.posts()) == 2 })
		if log.String() != "" {
			t.Errorf("log: %s", log)
		}
	})
	for name, test := range map[string]struct {
		address string
		as      repo.Credentials
		want    string
	}{
		"no credentials": {"http://127.0.0.1:1/team/site", repo.Credentials{}, "there are no credentials for it"},
		"ssh":            {"git@127.0.0.1:team/site", jane, "its URL is not https:// or http://"},
		"no one there":   {"http://127.0.0.1:1/team/site", jane, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notifier, log := newNotifier(t, test.address, test.as)
			notifier.Observe(report(first, nil))
			eventually(t, "it is logged", func() bool { return strings.Contains(log.String(), test.want) })
			notifier.Unlist("site")
			notifier.Unlist("none")
		})
	}
	t.Run("no API", func(t *testing.T) {
		t.Parallel()
		g := start(t, "/none", 200, "/none")
		notifier, log := newNotifier(t, g.URL+"/team/site", jane)
		notifier.Observe(report(first, nil))
		eventually(t, "it is logged", func() bool {
			return strings.Contains(log.String(), "has the API of neither GitHub nor GitLab nor Gitea")
		})
	})
}

func TestCredentialsInTheURL(t *testing.T) {
	t.Parallel()
	g := start(t, "/api/v3/meta", 200, "/api/v3/repos/team/site/statuses/")
	notifier, _ := newNotifier(t, strings.Replace(g.URL, "http://", "http://user:token-2@", 1)+"/team/site", repo.Credentials{User: "jane", Password: "token-1"})
	notifier.Observe(report(first, nil))
	eventually(t, "it is logged", func() bool { return len(g.posts()) == 1 })
	if !strings.Contains(g.posts()[0], "Bearer token-2 ") {
		t.Errorf("got %q", g.posts()[0])
	}
}
