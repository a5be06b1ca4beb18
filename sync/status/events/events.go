package events

import (
	"context"
	"fmt"
	"strings"
	gosync "sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync"
)

// Reasons of the events.
const (
	Synced      = "Synced"
	Partial     = "SyncPartial" // applied, but objects failed, were refused, or are pending
	Failed      = "SyncFailed"
	Unhealthy   = "Unhealthy"
	Suspended   = "Suspended"
	PruneHeld   = "PruneHeld"
	Unlisted    = "Unlisted"
	Drifted     = "Drifted" // an object was changed by another writer, and is not corrected
	Conflict    = "Conflict"
	Blocked     = "PruneBlocked"
	ApplyFailed = "ApplyFailed"
	Refused     = "ApplyRefused"
)

const (
	// maxMessage is how many bytes of a message the API server takes.
	maxMessage = 1024
	// objectsPerSync bounds the objects that one sync reports; the parent's event and
	// the log have all.
	objectsPerSync = 20
	// patience is how long trouble of the same kind, in other words, is not reported again:
	// the words may hold a time, or the number of a port.
	patience = 10 * time.Minute
)

// cluster knows what events are about.
type cluster interface {
	Events() typedcorev1.EventsGetter
	ParentReference(repo string) *corev1.ObjectReference
	Reference(repo string, id manifest.ID) *corev1.ObjectReference
}

// Options are what Events work with.
type Options struct {
	Cluster cluster
	Redact  func(string) string
}

// Events is an observer that writes Kubernetes Events.
type Events struct {
	options     Options
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder

	mu    gosync.Mutex // guards what follows
	repos map[string]*reported
}

// reported is what was reported of a repo.
type reported struct {
	reason, revision, text string
	at                     time.Time
	objects                map[manifest.ID]string
}

// New returns an observer; Run has what it says written.
func New(options Options) *Events {
	broadcaster := record.NewBroadcaster()
	return &Events{
		options:     options,
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubesync"}),
		repos:       map[string]*reported{},
	}
}

// Run writes events until ctx ends.
func (e *Events) Run(ctx context.Context) {
	e.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: e.options.Cluster.Events().Events("")})
	<-ctx.Done()
	e.broadcaster.Shutdown()
}

// Unreadable does nothing: the result of the wait becomes an Event.
func (e *Events) Unreadable(sync.Unreadable) {}

// Begin says nothing: that a sync begins is no news.
func (e *Events) Begin(sync.Progress) {}

// Observe reports a sync if it is news.
func (e *Events) Observe(report sync.Report) {
	e.mu.Lock()
	defer e.mu.Unlock()
	about := e.repos[report.Repo]
	if about == nil {
		about = &reported{objects: map[manifest.ID]string{}}
		e.repos[report.Repo] = about
	}
	kind, reason, text := summarize(report)
	if reason == "" {
		return
	}
	if about.isNews(reason, report.Revision.ID, text, report.Finished) || reason == Synced && report.Changed() {
		e.say(e.options.Cluster.ParentReference(report.Repo), kind, reason, headline(report)+text)
		about.reason, about.revision, about.text, about.at = reason, report.Revision.ID, text, report.Finished
	}
	e.objects(about, report)
}

// isNews reports whether the same was not said already, or something much like it a
// short while ago. That all is well is news only after trouble.
func (t *reported) isNews(reason, revision, text string, now time.Time) bool {
	switch {
	case reason != t.reason:
		return reason != Synced || t.reason != ""
	case reason == Synced:
		return false
	}
	return revision != t.revision || text != t.text && now.Sub(t.at) > patience
}

// objects reports the objects that need attention, each once.
func (e *Events) objects(about *reported, report sync.Report) {
	if report.Err != nil {
		return // the sync did not get as far as to know
	}
	said := map[manifest.ID]string{}
	for _, o := range report.Result.Outcomes {
		reason := objectReasons()[o.Action]
		if reason == "" {
			continue
		}
		text := o.Reason
		if o.Err != nil {
			text = o.Err.Error()
		}
		if about.objects[o.ID] != reason && len(said) < objectsPerSync {
			e.say(e.options.Cluster.Reference(report.Repo, o.ID), corev1.EventTypeWarning, reason, fmt.Sprintf("repo %s: %s", report.Repo, text))
		}
		said[o.ID] = reason
	}
	about.objects = said
}

// Drift reports objects that are not corrected for good.
func (e *Events) Drift(drift apply.Drift) {
	var reason, text string
	switch {
	case drift.Err != nil:
		reason, text = ApplyFailed, fmt.Sprintf("drifted (%s), and could not be corrected: %v", drift, drift.Err)
	case drift.Conflict:
		reason, text = Conflict, fmt.Sprintf("corrected, but it drifts again and again (%s): another writer writes it too; the next correction is due in %s",
			drift, drift.Retry.Round(time.Second))
	case !drift.Corrected:
		reason, text = Drifted, fmt.Sprintf("drifted (%s), and left as it is", drift)
	default:
		return
	}
	e.say(e.options.Cluster.Reference(drift.Repo, drift.ID), corev1.EventTypeWarning, reason, fmt.Sprintf("repo %s: %s", drift.Repo, text))
}

// Unlist reports that a repo's objects are no one's now.
func (e *Events) Unlist(repo string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.repos, repo)
	e.say(e.options.Cluster.ParentReference(repo), corev1.EventTypeWarning, Unlisted, "the repo left the list, its objects stay")
}

// say has one event written. Without a user to be about there is none.
func (e *Events) say(about *corev1.ObjectReference, kind, reason, text string) {
	if about == nil || about.UID == "" {
		return
	}
	if text = e.options.Redact(text); len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-len("…")], "") + "…"
	}
	e.recorder.Event(about, kind, reason, text)
}
