package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/test/golden"
	"github.com/kubesync/kubesync/test/lab/pki"
)

// example is an overview with a healthy repo and one that is not.
func example() status.Overview {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	return status.Overview{
		Writing: true,
		Repos: []status.Repo{
			{
				Name: "shop", URL: "https://git.example.com/shop.git", Tier: "application", State: sync.Synced, Healthy: true,
				Revision: &repo.Revision{ID: "1111111", Subject: "Sell"}, Applied: &repo.Revision{ID: "1111111"},
				Objects: map[status.ObjectState]int{status.ObjectSynced: 12}, Health: map[health.State]int{health.Current: 12},
				LastSync: ago(time.Minute), LastVerified: ago(time.Minute), NextPoll: ago(-4 * time.Minute),
			},
			{
				Name: "cluster", Tier: "system", State: sync.Partial, Stale: &status.Stale{Since: ago(time.Second), Reasons: []string{"configmaps: connection refused"}},
				Revision: &repo.Revision{ID: "2222222", Subject: "Nodes"}, Applied: &repo.Revision{ID: "1111111"},
				Objects: map[status.ObjectState]int{status.ObjectSynced: 3, status.ObjectFailed: 1}, Failures: 2, Error: "Service/a: failed\nService/b: failed\nService/c: failed",
				LastSync: ago(2 * time.Hour), PruneHeld: "pruning 1 object waits",
			},
			{
				Name: "web", State: sync.Synced, Objects: map[status.ObjectState]int{status.ObjectSynced: 3, status.ObjectConflict: 1},
				Health: map[health.State]int{health.Current: 2, health.InProgress: 1, health.Failed: 1},
			},
			{Name: "new", State: status.Waiting},
		},
		Unlisted: []status.Unlisted{{Repo: "old", Delete: "kubectl annotate …"}},
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	for name, wide := range map[string]bool{"table.txt": false, "wide.txt": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := table(&out, wide, example()); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, filepath.Join("testdata", name), out.String())
			})
		})
	}
}

func TestNextPoll(t *testing.T) {
	t.Parallel()
	now := time.Now()
	phase := &status.Phase{Stage: sync.Applying, Since: now.Add(-time.Minute)}
	tests := map[string]struct {
		repo status.Repo
		want string
	}{
		"never synced":             {status.Repo{}, "<none>"},
		"to come":                  {status.Repo{NextPoll: now.Add(5 * time.Minute)}, "5m"},
		"due":                      {status.Repo{NextPoll: now}, "0s"},
		"about to begin":           {status.Repo{NextPoll: now.Add(-10 * time.Second)}, "0s"},
		"the first is under way":   {status.Repo{Phase: phase}, "now"},
		"another is under way":     {status.Repo{NextPoll: now.Add(-time.Minute), Phase: phase}, "now"},
		"one before it was due":    {status.Repo{NextPoll: now.Add(time.Minute), Phase: phase}, "now"},
		"under way since long ago": {status.Repo{NextPoll: now.Add(-24 * time.Hour), Phase: phase}, "now"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := nextPoll(test.repo, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestClocksDiffer has a daemon whose clock is ahead of ours.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	overview := example()
	overview.Repos[0].LastSync, overview.Repos[0].LastVerified = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	overview.Repos[0].NextPoll = time.Now().Add(-time.Hour)
	var out bytes.Buffer
	if err := table(&out, true, overview); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "invalid") {
		t.Error(out.String())
	}
}

// TestTableForgesNothing has texts of others that would move a terminal's cursor or make
// rows of their own.
func TestTableForgesNothing(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\u202e\r\nforged\tsynced"
	overview := example()
	overview.Repos[0].PruneHeld, overview.Repos[0].URL, overview.Repos[0].Revision.Subject = evil, evil, evil
	var out bytes.Buffer
	if err := table(&out, true, overview); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.ContainsAny(text, "\x1b\u202e\r") || strings.Contains(text, "\nforged") {
		t.Errorf("%q", text)
	}
}

// serve serves an overview and returns where.
func serve(t *testing.T, start func(*httptest.Server), overview status.Overview) (*httptest.Server, server.Listen) {
	t.Helper()
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/repos":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer right-token":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			if err := json.NewEncoder(w).Encode(overview); err != nil {
				t.Error(err)
			}
		}
	}))
	start(web)
	t.Cleanup(web.Close)
	address := web.Listener.Addr()
	return web, server.Listen{Network: address.Network(), Address: address.String()}
}

// call runs the command.
func call(t *testing.T, options Options, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	options.Out, options.Err = &stdout, &stderr
	code = Run(t.Context(), args, options)
	return code, stdout.String(), stderr.String()
}

// token returns what reads a token.
func token(text string) func() (string, error) {
	return func() (string, error) { return text, nil }
}

func TestAskingTheDaemon(t *testing.T) {
	t.Parallel()
	healthy := example()
	healthy.Repos, healthy.Healthy = healthy.Repos[:1], true
	_, well := serve(t, (*httptest.Server).Start, healthy)
	_, ill := serve(t, (*httptest.Server).Start, example())
	right := token("right-token")
	tests := map[string]struct {
		options Options
		args    []string
		code    int
		out     string // part of stdout
		problem string // part of stderr
	}{
		"healthy":           {Options{Listen: well, Token: right}, nil, Healthy, "shop   synced", ""},
		"not healthy":       {Options{Listen: ill, Token: right}, nil, Unhealthy, "partial,stale", ""},
		"the healthy one":   {Options{Listen: ill, Token: right}, []string{"shop"}, Healthy, "shop", ""},
		"no such repo":      {Options{Listen: well, Token: right}, []string{"shop", "shopp"}, Unhealthy, "shop", `there is no repo "shopp"`},
		"json":              {Options{Listen: well, Token: right}, []string{"-o", "json"}, Healthy, `"name": "shop"`, ""},
		"wide":              {Options{Listen: well, Token: right}, []string{"-owide"}, Healthy, "https://git.example.com/shop.git", ""},
		"help":              {Options{}, []string{"--help"}, Healthy, "usage: kubesync status", ""},
		"no such format":    {Options{}, []string{"-o", "yaml"}, Misused, "", `-o "yaml": there is table, wide and json`},
		"no such flag":      {Options{}, []string{"--all"}, Misused, "", "usage:"},
		"no token":          {Options{Listen: well}, nil, Unhealthy, "", "set LISTEN_TOKEN_FILE"},
		"wrong token":       {Options{Listen: well, Token: token("wrong-token")}, nil, Unhealthy, "", "asks for a token"},
		"off, no cluster":   {Options{}, nil, Unhealthy, "", "LISTEN is off, and no cluster is configured"},
		"TLS against plain": {Options{Listen: well, CertFile: "/does/not/exist"}, nil, Unhealthy, "", "LISTEN_TLS_CERT_FILE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, problems := call(t, test.options, test.args...)
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(problems, test.problem) {
				t.Errorf("status %d, want %d\nstdout: %s\nstderr: %s", code, test.code, out, problems)
			}
			if strings.Contains(out+problems, "-token\n") {
				t.Error("the token is shown")
			}
		})
	}
}

func TestOverTLSAndSockets(t *testing.T) {
	t.Parallel()
	healthy := example()
	healthy.Repos, healthy.Healthy = healthy.Repos[:1], true
	right := token("right-token")
	write := func(certificate []byte) string {
		name := filepath.Join(t.TempDir(), "tls.crt")
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	web, listen := serve(t, (*httptest.Server).StartTLS, healthy)
	own := write(web.TLS.Certificates[0].Certificate[0])
	if code, _, problems := call(t, Options{Listen: listen, Token: right, CertFile: own}); code != Healthy {
		t.Errorf("over TLS: status %d, %s", code, problems)
	}
	authority, err := pki.NewAuthority("another writer")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := authority.Server("kubesync")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.crt")
	if err := os.WriteFile(other, foreign.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, problems := call(t, Options{Listen: listen, Token: right, CertFile: other}); code != Unhealthy || !strings.Contains(problems, "another certificate") {
		t.Errorf("with a foreign certificate: status %d, %s", code, problems)
	}
	socket := filepath.Join(t.TempDir(), "s")
	_, _ = serve(t, func(s *httptest.Server) {
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		s.Listener = listener
		s.Start()
	}, healthy)
	if code, _, problems := call(t, Options{Listen: server.Listen{Network: "unix", Address: socket}, Token: right}); code != Healthy {
		t.Errorf("over a socket: status %d, %s", code, problems)
	}
}

func TestWithoutADaemonTheClusterIsAsked(t *testing.T) {
	t.Parallel()
	unserved := server.Listen{Network: "unix", Address: filepath.Join(t.TempDir(), "nobody")}
	says := func(records ...parent.Record) func(context.Context) ([]parent.Record, error) {
		return func(context.Context) ([]parent.Record, error) { return records, nil }
	}
	shop := parent.Record{Repo: "shop", URL: "https://git.example.com/shop.git", Tier: "system", Revision: repo.Revision{ID: strings.Repeat("1", 40)}, Result: "3 synced, 1 blocked"}
	failed := parent.Record{Repo: "cluster", Revision: repo.Revision{ID: strings.Repeat("2", 40)}, Result: "3 synced, 1 failed"}
	tests := map[string]struct {
		records func(context.Context) ([]parent.Record, error)
		code    int
		out     string
	}{
		"healthy":     {says(shop), Healthy, "shop   synced   yes       1111111    3/4"},
		"not healthy": {says(shop, failed), Unhealthy, "3 synced, 1 failed"},
		"first sync":  {says(parent.Record{Repo: "new"}), Unhealthy, "waiting"},
		"nothing":     {says(), Unhealthy, "NAME"},
		"no answer":   {func(context.Context) ([]parent.Record, error) { return nil, errors.New("forbidden") }, Unhealthy, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, problems := call(t, Options{Listen: unserved, Records: test.records})
			if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(problems, "no kubesync answers at LISTEN=unix:") {
				t.Errorf("status %d, want %d\nstdout: %s\nstderr: %s", code, test.code, out, problems)
			}
		})
	}
}
