package log

import (
	"context"
	"errors"
	"fmt"
	"strings"
	stdsync "sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/internal/backoff"
	"github.com/kubesync/kubesync/sync"
)

// heartbeat is how often the log says that all is well when there is nothing else.
const heartbeat = time.Hour

// listedObjects is how many objects a log line names; the rest is counted.
const listedObjects = 10

// Logger writes what happens into the log: one line per sync that changed something,
// failed, or ended differently from the one before. What goes on unchanged is said
// again only as [backoff.Repeat] has it, and at debug level every time.
type Logger struct {
	log    zerolog.Logger
	dryRun bool // what would change is no news at every interval

	mu    stdsync.Mutex // guards what follows
	repos map[string]*logged
}

// logged is what was said about a repo.
type logged struct {
	state    sync.State
	revision string
	trouble  backoff.Repeat
	warned   map[string]bool // texts, for this revision
}

// New returns an observer that writes to log, of what is done or, in a dry
// run, what would be.
func New(log zerolog.Logger, dryRun bool) *Logger {
	return &Logger{log: log, dryRun: dryRun, repos: map[string]*logged{}}
}

// Begin writes nothing: a sync is logged when it has ended.
func (l *Logger) Begin(sync.Progress) {}

// Unreadable writes a line about an object that a sync waits for, perhaps in vain.
func (l *Logger) Unreadable(object sync.Unreadable) {
	l.log.Warn().Str("repo", object.Repo).Str("revision", object.Revision.Short()).Stringer("object", object.Object.ID).
		Str("health", object.Object.Message).Msg("health unknown, waiting for it all the same")
}

// Observe writes the line about a sync, if there is one to write.
func (l *Logger) Observe(report sync.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	about := l.repos[report.Repo]
	if about == nil {
		about = &logged{}
		l.repos[report.Repo] = about
	}
	if about.revision != report.Revision.ID && report.Revision.ID != "" {
		about.revision, about.warned = report.Revision.ID, nil
		about.state = "" // a new revision is news, even if it changes no object
	}
	if event := l.log.WithLevel(l.level(about, report)); event != nil {
		if l.log.GetLevel() <= zerolog.DebugLevel {
			event.Str("stages", stageTimes(report.Stages))
		}
		describe(event, report).Msg(l.message(report))
	}
	about.state = report.State()
	l.warn(about, report)
	var panicked *sync.PanicError
	if errors.As(report.Err, &panicked) {
		l.log.Debug().Str("repo", report.Repo).Bytes("stack", panicked.Stack).Msg("where it happened")
	}
}

// Unlist says that a repo's loop has ended. What becomes of its objects, and how to have
// them deleted, says who finds their parent without a repo, once.
func (l *Logger) Unlist(repo string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.repos, repo)
	l.log.Info().Str("repo", repo).Msg("stopped: the configuration does not name the repo any more")
}

// Drift writes a line about an object that another writer changed.
func (l *Logger) Drift(drift apply.Drift) {
	level, message := zerolog.WarnLevel, "drifted, and left as it is"
	switch {
	case drift.Err != nil:
		level, message = zerolog.ErrorLevel, "drifted, and could not be corrected"
	case drift.Conflict:
		message = "corrected, but it drifts again and again: another writer writes it too"
	case drift.Corrected:
		level, message = zerolog.InfoLevel, "drift corrected"
	}
	event := l.log.WithLevel(level).Str("repo", drift.Repo).Stringer("object", drift.ID).Stringer("drift", drift)
	if drift.Err != nil {
		event.AnErr("error", drift.Err)
	}
	if drift.Retry > 0 {
		event.Str("next", drift.Retry.Round(time.Second).String())
	}
	event.Msg(message)
}

// level decides at which level a sync is logged.
func (l *Logger) level(about *logged, report sync.Report) zerolog.Level {
	news := about.state != report.State() || !l.dryRun && report.Changed()
	loud := zerolog.InfoLevel
	if report.State() == sync.Interrupted {
		return zerolog.InfoLevel
	}
	if wrong := trouble(report); wrong == "" {
		about.trouble = backoff.Repeat{}
	} else {
		news = about.trouble.Due(wrong, report.Finished) || news
		loud = zerolog.WarnLevel
	}
	if report.State() == sync.Failed || report.Did(apply.Failed, apply.Refused) {
		loud = zerolog.ErrorLevel
	}
	if !news {
		return zerolog.DebugLevel
	}
	return loud
}

// trouble words all that is wrong after a sync, "" if nothing is: equal texts are
// the same trouble.
func trouble(report sync.Report) string {
	text := report.Result.Suspended + report.Result.PruneHeld
	if problem := report.Problem(); problem != nil {
		text += problem.Error()
	}
	for _, outcome := range report.Result.Outcomes {
		if outcome.Action == apply.Blocked {
			text += outcome.ID.String() + outcome.Reason
		}
	}
	return text
}

// message says in a few words what a sync came to.
func (l *Logger) message(report sync.Report) string {
	switch report.State() {
	case sync.Interrupted:
		return "interrupted"
	case sync.Failed:
		if l.dryRun {
			return "not planned"
		}
		return "sync failed"
	case sync.Suspended:
		return "suspended"
	case sync.Partial:
		if l.dryRun {
			return "planned in part"
		}
		return "sync partial"
	case sync.Progressing:
		return "sync progressing"
	case sync.Unhealthy:
		return "sync unhealthy"
	}
	if l.dryRun {
		return "planned"
	}
	return "synced"
}

// describe fills a log line with what is known of a sync.
func describe(event *zerolog.Event, report sync.Report) *zerolog.Event {
	event.Str("repo", report.Repo).Stringer("tier", report.Tier)
	if report.Revision.ID != "" {
		event.Str("revision", report.Revision.Short())
	}
	if report.Revision.Ref != "" {
		event.Str("ref", report.Revision.Ref)
	}
	counts := report.Result.Counts()
	for _, action := range apply.Actions() {
		if counts[action] > 0 {
			event.Int(string(action), counts[action])
		}
	}
	if objects := attention(report.Result.Outcomes); len(objects) > 0 {
		event.Strs("objects", objects)
	}
	if report.Result.PruneHeld != "" {
		event.Str("prune", report.Result.PruneHeld)
	}
	if report.Result.Suspended != "" {
		event.Str("suspended", report.Result.Suspended)
	}
	if report.Err != nil {
		event.Str("stage", string(report.FailedStage)).AnErr("error", report.Err)
	}
	if problem := report.Health.Problem(); problem != nil {
		event.Str("health", problem.Error())
	}
	if report.Failures > 0 && !report.Next.IsZero() {
		event.Int("failures", report.Failures).Str("retry", report.Next.Sub(report.Finished).Round(time.Second).String())
	}
	return event.Str("took", report.Duration().Round(time.Millisecond).String())
}

// stageTimes words how long the stages took.
func stageTimes(stages []sync.StageTime) string {
	texts := make([]string, len(stages))
	for i, s := range stages {
		texts[i] = fmt.Sprintf("%s %s", s.Stage, s.Duration.Round(time.Millisecond))
	}
	return strings.Join(texts, ", ")
}

// attention lists the objects of which there is something to say: why they are not
// as git has them, or what was unusual about it.
func attention(outcomes []apply.Outcome) []string {
	var texts []string
	more := 0
	for _, o := range outcomes {
		if sync.Reason(o) == "" {
			continue
		}
		if len(texts) == listedObjects {
			more++
			continue
		}
		text := fmt.Sprintf("%s %s: %s", o.ID, o.Action, sync.Reason(o))
		if o.Origin.File != "" {
			text = o.Origin.String() + ": " + text
		}
		texts = append(texts, text)
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}

// warn writes what a person should look at, once per revision.
func (l *Logger) warn(about *logged, report sync.Report) {
	if about.warned == nil {
		about.warned = map[string]bool{}
	}
	say := func(object, text string) {
		if about.warned[object+text] {
			return
		}
		about.warned[object+text] = true
		event := l.log.Warn().Str("repo", report.Repo).Str("revision", report.Revision.Short())
		if object != "" {
			event.Str("object", object)
		}
		event.Msg(text)
	}
	for _, note := range report.Notes {
		say("", note)
	}
	for _, warning := range report.Result.Warnings {
		say("", warning)
	}
	for _, outcome := range report.Result.Outcomes {
		for _, warning := range outcome.Warnings {
			say(outcome.ID.String(), warning)
		}
	}
}

// Run writes the heartbeat until ctx ends.
func (l *Logger) Run(ctx context.Context) {
	for backoff.Sleep(ctx, heartbeat, nil) {
		l.beat()
	}
}

func (l *Logger) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	states := map[sync.State]int{}
	for _, about := range l.repos {
		states[about.state]++
	}
	event := l.log.Info().Int("repos", len(l.repos))
	for _, state := range []sync.State{sync.Synced, sync.Progressing, sync.Unhealthy, sync.Partial, sync.Failed, sync.Suspended} {
		if states[state] > 0 {
			event.Int(string(state), states[state])
		}
	}
	event.Msg("alive")
}
