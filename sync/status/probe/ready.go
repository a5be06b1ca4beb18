package probe

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/kubesync/kubesync/apply"
	repos "github.com/kubesync/kubesync/sync"
)

// Ready knows whether the process is ready. It is a sync.Observer.
type Ready struct {
	standby func() bool

	mu       sync.Mutex // guards what follows
	loaded   bool
	waiting  map[string]bool // repos that were not tried yet
	listed   int
	ready    bool
	stopping bool
}

// NewReady returns a probe that is not ready. standby reports whether another process
// holds the Lease.
func NewReady(standby func() bool) *Ready {
	return &Ready{standby: standby, waiting: map[string]bool{}}
}

// Listed takes the list of repos, whenever it was read. Only the first matters:
// a repo that comes later makes no one unready.
func (p *Ready) Listed(repos []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded {
		return
	}
	p.loaded, p.listed = true, len(repos)
	for _, name := range repos {
		p.waiting[name] = true
	}
}

// Unreadable does nothing: ready does not depend on the health of objects.
func (p *Ready) Unreadable(repos.Unreadable) {}

// Begin implements sync.Observer.
func (p *Ready) Begin(repos.Progress) {}

// Observe notes that a repo was tried.
func (p *Ready) Observe(report repos.Report) {
	if report.State() != repos.Interrupted {
		p.tried(report.Repo)
	}
}

// Drift implements sync.Observer.
func (p *Ready) Drift(apply.Drift) {}

// Unlist notes that a repo need not be tried any more.
func (p *Ready) Unlist(repo string) { p.tried(repo) }

func (p *Ready) tried(repo string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, repo)
}

// Stop makes the process unready: it was asked to end.
func (p *Ready) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
}

// wanting returns what is missing, "" if nothing is.
func (p *Ready) wanting() string {
	standby := p.standby()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopping:
		return "it is stopping"
	case p.ready:
	case !p.loaded:
		return "there is no list of repos yet"
	case !standby && len(p.waiting) > 0:
		return fmt.Sprintf("%d of %d repos have not been tried yet", len(p.waiting), p.listed)
	}
	p.ready = true
	return ""
}

// ServeHTTP answers /readyz: 200, or 503 and what is missing.
func (p *Ready) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if missing := p.wanting(); missing != "" {
		http.Error(w, "not ready: "+missing, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// Healthy answers /healthz.
func Healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
