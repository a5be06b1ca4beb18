package probe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kubesync/kubesync/sync"
)

// expect asks for readiness.
func expect(t *testing.T, p *Ready, status int, body string) {
	t.Helper()
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if answer.Code != status || answer.Body.String() != body {
		t.Errorf("%d %q, want %d %q", answer.Code, answer.Body, status, body)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	p := NewReady(func() bool { return false })
	expect(t, p, 503, "not ready: there is no list of repos yet\n")
	p.Listed([]string{"a", "b", "c"})
	expect(t, p, 503, "not ready: 3 of 3 repos have not been tried yet\n")
	p.Observe(sync.Report{Repo: "a"})
	p.Observe(sync.Report{Repo: "a"})
	p.Observe(sync.Report{Repo: "b", Interrupted: true, Err: context.Canceled})
	expect(t, p, 503, "not ready: 2 of 3 repos have not been tried yet\n")
	p.Observe(sync.Report{Repo: "b", Err: errors.New("no such host")})
	p.Unlist("c")
	expect(t, p, 200, "ok\n")
	p.Listed([]string{"a", "b", "new"})
	expect(t, p, 200, "ok\n")
	p.Stop()
	expect(t, p, 503, "not ready: it is stopping\n")
}

func TestStandbyIsReady(t *testing.T) {
	t.Parallel()
	standby := true
	p := NewReady(func() bool { return standby })
	expect(t, p, 503, "not ready: there is no list of repos yet\n")
	p.Listed([]string{"a"})
	expect(t, p, 200, "ok\n")
	standby = false
	expect(t, p, 200, "ok\n")
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	Healthy(answer, nil)
	if answer.Code != 200 || answer.Body.String() != "ok\n" {
		t.Errorf("%d %q", answer.Code, answer.Body)
	}
}
