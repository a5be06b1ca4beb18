package notify

import (
	"context"
	"crypto/rand"
	stdsync "sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync"
)

// Options say where notifications go.
type Options struct {
	Addresses []Address
	Source    string // of the events: "/kubesync/NAMESPACE/LEASE"
	UserAgent string
	Redact    func(string) string // masks the secrets in a text
	Log       zerolog.Logger

	sleep func(context.Context, time.Duration) bool // between two tries; nil for real time
}

// Notifier notifies of what is news. It is a sync.Observer whose methods never wait.
type Notifier struct {
	options   Options
	endpoints []*endpoint

	mu    stdsync.Mutex // guards what follows
	repos map[string]*known
}

// known is what a repo was notified of.
type known struct {
	failing   bool
	synced    string                    // revision; empty before the first sync
	held      string                    // what waits for approval
	conflicts map[manifest.ID]time.Time // last notified
}

const (
	// failuresToNotify is how many failures in a row are news.
	failuresToNotify = 2
	// conflictAgain is when a conflict that goes on is notified again.
	conflictAgain = time.Hour
)

// New returns a notifier; notifications are sent while Run runs.
func New(options Options) *Notifier {
	n := &Notifier{options: options, repos: map[string]*known{}}
	for _, address := range options.Addresses {
		n.endpoints = append(n.endpoints, newEndpoint(address, options))
	}
	return n
}

// Run sends until ctx ends. What is then still to be sent is lost.
func (n *Notifier) Run(ctx context.Context) {
	var all stdsync.WaitGroup
	for _, r := range n.endpoints {
		all.Go(func() { r.Run(ctx) })
	}
	all.Wait()
}

// Unreadable does nothing: the result of the wait is notified.
func (n *Notifier) Unreadable(sync.Unreadable) {}

// Begin implements sync.Observer.
func (n *Notifier) Begin(sync.Progress) {}

// Observe notifies of what a sync has changed.
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
	} else if !about.failing && report.Failures >= failuresToNotify {
		about.failing = true
		n.notify(Failing, report, report.Problem().Error())
	}
	if report.Err != nil {
		return // nothing is known of the prune
	}
	if held := report.Result.Approve; held != about.held {
		about.held = held
		if held != "" {
			n.notify(PruneHeld, report, heldReason(report.Result))
		}
	}
}

// inSync notifies of a recovery and of a new revision.
func (n *Notifier) inSync(about *known, report sync.Report) {
	summary := report.Result.Summary()
	if about.failing {
		about.failing = false
		n.notify(Recovered, report, summary)
	}
	if report.Revision.ID != about.synced && (about.synced != "" || report.Changed()) {
		n.notify(Synced, report, summary)
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

// Drift notifies of a conflict.
func (n *Notifier) Drift(drift apply.Drift) {
	if !drift.Conflict {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	about, now := n.about(drift.Repo), time.Now()
	if now.Sub(about.conflicts[drift.ID]) < conflictAgain {
		return
	}
	for id, notified := range about.conflicts {
		if now.Sub(notified) >= conflictAgain {
			delete(about.conflicts, id)
		}
	}
	about.conflicts[drift.ID] = now
	n.send(Conflict, now, Data{Repo: drift.Repo, Object: drift.ID.String(), Message: drift.String()})
}

// Unlist forgets a repo.
func (n *Notifier) Unlist(repo string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.repos, repo)
}

// about returns what a repo was notified of; the caller has locked.
func (n *Notifier) about(repo string) *known {
	if n.repos[repo] == nil {
		n.repos[repo] = &known{conflicts: map[manifest.ID]time.Time{}}
	}
	return n.repos[repo]
}

// notify sends an event about a sync.
func (n *Notifier) notify(kind Kind, report sync.Report, message string) {
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
	for _, r := range n.endpoints {
		if !r.Queue(event) {
			r.log.Error().Str("event", string(kind)).Str("repo", data.Repo).Msg("notification dropped: the queue is full")
		}
	}
}
