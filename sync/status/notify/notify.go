package notify

import (
	"context"
	"crypto/rand"
	stdsync "sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
)

// Options say who is told, and how.
type Options struct {
	Addresses []config.NotifyURL
	Source    string // of the events: "/kubesync/NAMESPACE/LEASE"
	UserAgent string
	Redact    func(string) string // masks the secrets in a text
	Log       zerolog.Logger
}

// Notifier finds out what is news. It is a sync.Observer whose methods never wait.
type Notifier struct {
	options Options
	senders []*sender

	mu    stdsync.Mutex // guards what follows
	repos map[string]*known
}

// known is what was told of a repo.
type known struct {
	failing bool
	synced  string                 // revision; empty before the first sync
	held    string                 // what waits for approval
	fights  map[apply.ID]time.Time // last told
}

const (
	// failuresToTell is how many failures in a row are news.
	failuresToTell = 2
	// fightAgain is when a fight that goes on is told again.
	fightAgain = time.Hour
)

// New returns a notifier; what it has to tell is sent while Run runs.
func New(options Options) *Notifier {
	n := &Notifier{options: options, repos: map[string]*known{}}
	for _, address := range options.Addresses {
		n.senders = append(n.senders, newSender(address, options))
	}
	return n
}

// Run sends until ctx ends. What is then still to be sent is lost.
func (n *Notifier) Run(ctx context.Context) {
	var all stdsync.WaitGroup
	for _, s := range n.senders {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
}

// Begin implements sync.Observer.
func (n *Notifier) Begin(sync.Progress) {}

// Observe tells what a sync has changed.
func (n *Notifier) Observe(report sync.Report) {
	state := report.State()
	if state == sync.Interrupted || state == sync.Suspended {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	about := n.about(report.Repo)
	if report.InSync() {
		n.inSync(about, report)
	} else if !about.failing && report.Failures >= failuresToTell {
		about.failing = true
		n.tell(Failing, report, report.Problem().Error())
	}
	if report.Err != nil {
		return // nothing is known of the prune
	}
	if held := report.Result.Approve; held != about.held {
		about.held = held
		if held != "" {
			n.tell(PruneHeld, report, heldReason(report.Result))
		}
	}
}

// inSync tells of a recovery and of a new revision.
func (n *Notifier) inSync(about *known, report sync.Report) {
	summary := report.Result.Summary()
	if about.failing {
		about.failing = false
		n.tell(Recovered, report, summary)
	}
	if report.Revision.ID != about.synced && (about.synced != "" || report.Changed()) {
		n.tell(Synced, report, summary)
	}
	about.synced = report.Revision.ID
}

// heldReason says why a prune waits.
func heldReason(result apply.Result) string {
	if result.PruneHeld != "" {
		return result.PruneHeld
	}
	for _, outcome := range result.Outcomes {
		if outcome.Action == apply.Blocked && outcome.Reason != "" {
			return outcome.ID.String() + ": " + outcome.Reason
		}
	}
	return "objects that left git wait for approval to be deleted"
}

// Drift tells of a fight.
func (n *Notifier) Drift(drift apply.Drift) {
	if !drift.Fight {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	about, now := n.about(drift.Repo), time.Now()
	if now.Sub(about.fights[drift.ID]) < fightAgain {
		return
	}
	for id, told := range about.fights {
		if now.Sub(told) >= fightAgain {
			delete(about.fights, id)
		}
	}
	about.fights[drift.ID] = now
	n.send(Fight, now, Data{Repo: drift.Repo, Object: drift.ID.String(), Message: drift.String()})
}

// Abandon forgets a repo.
func (n *Notifier) Abandon(repo string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.repos, repo)
}

// about returns what was told of a repo; the caller has locked.
func (n *Notifier) about(repo string) *known {
	if n.repos[repo] == nil {
		n.repos[repo] = &known{fights: map[apply.ID]time.Time{}}
	}
	return n.repos[repo]
}

// tell sends an event about a sync.
func (n *Notifier) tell(kind Kind, report sync.Report, message string) {
	data := Data{
		Repo: report.Repo, URL: report.URL, Tier: report.Tier.String(),
		Revision: report.Revision.ID, Ref: report.Revision.Ref, Subject: report.Revision.Subject, Author: report.Revision.Author,
		Message: message, Failures: report.Failures, Objects: map[string]int{},
	}
	if kind == PruneHeld {
		data.Approve = report.Result.Approve
	}
	for action, count := range report.Result.Counts() {
		data.Objects[string(action)] = count
	}
	n.send(kind, report.Finished, data)
}

// send queues an event for every address.
func (n *Notifier) send(kind Kind, at time.Time, data Data) {
	for _, text := range []*string{&data.Message, &data.Subject, &data.Author, &data.Object} {
		*text = shorten(n.options.Redact(*text))
	}
	event := Event{
		SpecVersion: "1.0", ID: rand.Text(), Source: n.options.Source, Type: kind, Subject: data.Repo,
		Time: at.UTC(), ContentType: "application/json", Data: data,
	}
	for _, s := range n.senders {
		s.queue(event)
	}
}
