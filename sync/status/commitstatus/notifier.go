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
	"github.com/kubesync/kubesync/sync/status/sender"
)

// Repo is how a repo's server is reached.
type Repo struct {
	URL repo.URL
	// Credentials is asked before each status; a password in the URL goes before them.
	Credentials func() (repo.Credentials, bool, error)
}

// Options are what a Notifier works with.
type Options struct {
	// Find returns a repo by its name, false if it is not listed any more.
	Find func(name string) (Repo, bool)
	// Roots returns the certificate authorities for https; nil stands for the system's.
	Roots     func() (*x509.CertPool, error)
	UserAgent string
	Redact    func(string) string // masks the secrets in a text
	Log       zerolog.Logger

	sleep func(context.Context, time.Duration) bool // between two tries; nil for real time
}

// Notifier sets the statuses of commits at git servers. It is a sync.Observer whose methods
// never wait.
type Notifier struct {
	ctx     context.Context // ends all sending
	stop    context.CancelFunc
	senders stdsync.WaitGroup
	options Options

	mu    stdsync.Mutex // guards what follows
	repos map[string]*lane
}

// lane is what goes to the server of one repo.
type lane struct {
	*sender.Sender[status]
	queued status // the last one, without description
	stop   context.CancelFunc
}

// New returns a notifier that sends until Run returns.
func New(options Options) *Notifier {
	ctx, stop := context.WithCancel(context.Background())
	return &Notifier{ctx: ctx, stop: stop, options: options, repos: map[string]*lane{}}
}

// Run waits for the end of ctx, and then of all sending. What is not sent by then is lost.
func (n *Notifier) Run(ctx context.Context) {
	<-ctx.Done()
	n.mu.Lock()
	n.stop()
	n.mu.Unlock()
	n.senders.Wait()
}

// Unreadable does nothing: the result of the wait becomes the status.
func (n *Notifier) Unreadable(sync.Unreadable) {}

// Begin notifies that a new commit is on its way. The status of a commit stays until there is
// another: a repo is polled again and again.
func (n *Notifier) Begin(progress sync.Progress) {
	if !isCommit(progress.Revision) {
		return
	}
	n.mu.Lock()
	known := n.repos[progress.Repo]
	same := known != nil && known.queued.revision == progress.Revision.ID
	n.mu.Unlock()
	if !same {
		n.queue(progress.Repo, begun(progress))
	}
}

// Observe notifies of what became of a commit.
func (n *Notifier) Observe(report sync.Report) {
	if s, is := of(report); is {
		n.queue(report.Repo, s)
	}
}

// Drift implements sync.Observer.
func (n *Notifier) Drift(apply.Drift) {}

// Unlist forgets a repo.
func (n *Notifier) Unlist(repo string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.repos[repo]; known != nil {
		known.stop()
		delete(n.repos, repo)
	}
}

// queue queues a status unless it is the last one still. It replaces one that is not sent yet.
func (n *Notifier) queue(repo string, s status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	known := n.repos[repo]
	if known == nil {
		ctx, stop := context.WithCancel(n.ctx)
		to := &client{options: n.options, repo: repo, log: n.options.Log.With().Str("repo", repo).Logger()}
		known = &lane{stop: stop, Sender: sender.New(sender.Options[status]{
			Send: to.set, Failed: to.failed, Newest: true, First: firstPause, Sleep: n.options.sleep,
		})}
		n.repos[repo] = known
		n.senders.Go(func() { known.Run(ctx) })
	}
	if known.queued.revision == s.revision && known.queued.state == s.state {
		return
	}
	known.queued = status{revision: s.revision, state: s.state}
	s.description = line(n.options.Redact(s.description))
	known.Queue(s)
}
