package commitstatus

import (
	"context"
	"crypto/x509"
	stdsync "sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

// Repo is how a repo's server is reached.
type Repo struct {
	URL repo.URL
	// Credentials is asked before each status; a password in the URL goes before them.
	Credentials func() (repo.Credentials, bool, error)
}

// Options are what a Teller works with.
type Options struct {
	// Find returns a repo by its name, false if it is not listed any more.
	Find func(name string) (Repo, bool)
	// Roots returns the certificate authorities for https; nil stands for the system's.
	Roots     func() (*x509.CertPool, error)
	UserAgent string
	Redact    func(string) string // masks the secrets in a text
	Log       zerolog.Logger
}

// Teller tells git servers what becomes of commits. It is a sync.Observer whose methods
// never wait.
type Teller struct {
	ctx     context.Context // ends all sending
	options Options
	wait    func(context.Context, time.Duration) bool

	mu    stdsync.Mutex // guards what follows
	repos map[string]*lane
}

// lane is what is told of one repo.
type lane struct {
	told status // the last that was queued, without description
	next chan status
	stop context.CancelFunc
}

// New returns a teller that sends until ctx ends.
func New(ctx context.Context, options Options) *Teller {
	return &Teller{ctx: ctx, options: options, wait: sync.Sleep, repos: map[string]*lane{}}
}

// Begin tells that a new commit is on its way. What was told of a commit stays until
// there is something else to tell: a repo is looked at again and again.
func (t *Teller) Begin(progress sync.Progress) {
	if !isCommit(progress.Revision) {
		return
	}
	t.mu.Lock()
	known := t.repos[progress.Repo]
	same := known != nil && known.told.revision == progress.Revision.ID
	t.mu.Unlock()
	if !same {
		t.tell(progress.Repo, begun(progress))
	}
}

// Observe tells what became of a commit.
func (t *Teller) Observe(report sync.Report) {
	if s, is := of(report); is {
		t.tell(report.Repo, s)
	}
}

// Drift implements sync.Observer.
func (t *Teller) Drift(apply.Drift) {}

// Abandon forgets a repo.
func (t *Teller) Abandon(repo string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.repos[repo]; known != nil {
		known.stop()
		delete(t.repos, repo)
	}
}

// tell queues a status unless it was told already. An older one that is not sent yet
// gives way.
func (t *Teller) tell(repo string, s status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.repos[repo]
	if known == nil {
		ctx, stop := context.WithCancel(t.ctx)
		known = &lane{next: make(chan status, 1), stop: stop}
		t.repos[repo] = known
		go (&sender{teller: t, repo: repo, log: t.options.Log.With().Str("repo", repo).Logger()}).run(ctx, known.next)
	}
	if known.told.revision == s.revision && known.told.state == s.state {
		return
	}
	known.told = status{revision: s.revision, state: s.state}
	s.description = line(t.options.Redact(s.description))
	select {
	case <-known.next:
	default:
	}
	known.next <- s // there is room: only this function sends, and it holds the lock
}
