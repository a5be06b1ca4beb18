package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
)

// badge is a state as people see it: a symbol, a word, and a tone, which only repeats
// what the word says.
type badge struct {
	Symbol, Word, Tone string
}

// Tones of a badge.
const (
	good  = "good"
	busy  = "busy"
	warn  = "warn"
	bad   = "bad"
	muted = "muted"
)

func repoBadge(state sync.State) badge {
	switch state {
	case sync.Synced:
		return badge{"✓", "synced", good}
	case sync.Progressing:
		return badge{"◔", "progressing", busy}
	case sync.Unhealthy:
		return badge{"✗", "unhealthy", bad}
	case sync.Partial:
		return badge{"◐", "partial", warn}
	case sync.Failed:
		return badge{"✗", "failed", bad}
	case sync.Suspended:
		return badge{"‖", "suspended", muted}
	case status.Waiting:
		return badge{"…", "waiting", busy}
	}
	return badge{"·", string(state), muted}
}

func objectBadge(state status.ObjectState) badge {
	switch state {
	case status.ObjectSynced:
		return badge{"✓", "synced", good}
	case status.ObjectFailed:
		return badge{"✗", "failed", bad}
	case status.ObjectRefused:
		return badge{"⊘", "refused", bad}
	case status.ObjectConflict:
		return badge{"⇄", "conflict", bad}
	case status.ObjectDrifted:
		return badge{"≠", "drifted", warn}
	case status.ObjectPending:
		return badge{"…", "pending", warn}
	case status.ObjectBlocked:
		return badge{"◌", "blocked", warn}
	}
	return badge{"‖", string(state), muted}
}

func healthBadge(state health.State) badge {
	switch state {
	case health.Current:
		return badge{"●", "current", good}
	case health.InProgress:
		return badge{"◔", "in progress", busy}
	case health.Failed:
		return badge{"✗", "failed", bad}
	case health.Terminating:
		return badge{"◌", "terminating", warn}
	}
	return badge{"?", string(state), muted}
}

func actionBadge(action apply.Action) badge {
	switch action {
	case apply.Created:
		return badge{"+", "created", good}
	case apply.Configured:
		return badge{"~", "configured", busy}
	case apply.Pruned:
		return badge{"−", "pruned", warn}
	case apply.Unchanged:
		return badge{"=", "unchanged", muted}
	case apply.Failed:
		return objectBadge(status.ObjectFailed)
	case apply.Refused:
		return objectBadge(status.ObjectRefused)
	case apply.Pending:
		return objectBadge(status.ObjectPending)
	case apply.Blocked:
		return objectBadge(status.ObjectBlocked)
	}
	return badge{"·", string(action), muted}
}

// counted is a number of things in a state.
type counted struct {
	badge
	N int
}

// countsOf lists the states that there are, in the order of all.
func countsOf[S comparable](all []S, counts map[S]int, badgeOf func(S) badge) []counted {
	var list []counted
	for _, state := range all {
		if n := counts[state]; n > 0 {
			list = append(list, counted{badgeOf(state), n})
		}
	}
	return list
}

// machineTime words a time for programs.
func machineTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// relative words a time as seen from now.
func relative(at, now time.Time) string {
	switch distance := now.Sub(at); {
	case distance > -time.Second && distance <= 0:
		return "now"
	case distance < 0:
		return "in " + span(-distance)
	case distance < time.Second:
		return "just now"
	default:
		return span(distance) + " ago"
	}
}

// secondsOf words how long something took.
func secondsOf(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// span words a duration in its largest unit.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d/day))
}

// needsAttention reports whether a person should look at a repo: something went wrong,
// or waits for a decision. What is merely on its way does not.
func needsAttention(r status.Repo) bool {
	switch {
	case r.State == sync.Failed, r.State == sync.Partial, r.State == sync.Unhealthy, r.PruneHeld != "", r.Approve != "":
		return true
	}
	return r.Objects[status.ObjectConflict]+r.Objects[status.ObjectDrifted]+r.Health[health.Failed] > 0
}

// summaryOf says in a sentence how all repos are.
func summaryOf(o status.Overview) string {
	attention, waiting, moving := 0, 0, 0
	for _, r := range o.Repos {
		switch {
		case needsAttention(r):
			attention++
		case r.State == status.Waiting:
			waiting++
		case !r.Healthy && r.Stale == nil:
			moving++
		}
	}
	all := len(o.Repos)
	switch {
	case all == 0 && o.ListError != nil:
		return "The list of repos cannot be read"
	case all == 0:
		return "No repos are listed"
	case o.Stale != nil && !o.Writing:
		return "This process is on standby"
	case o.Stale != nil:
		return "What is shown is stale"
	case attention > 0:
		return ofAll(attention, all, "needs attention", "need attention")
	case waiting > 0:
		return ofAll(waiting, all, "is not synced yet", "are not synced yet")
	case moving > 0:
		return ofAll(moving, all, "is synced, but not all of it is current", "are synced, but not all of them is current")
	}
	return ofAll(all, all, "is in sync", "are in sync")
}

// ofAll says something of some of all repos.
func ofAll(n, all int, one, several string) string {
	switch {
	case all == 1:
		return "The repo " + one
	case n == all:
		return fmt.Sprintf("All %d repos %s", all, several)
	case n == 1:
		return fmt.Sprintf("1 of %d repos %s", all, one)
	}
	return fmt.Sprintf("%d of %d repos %s", n, all, several)
}

// approvalFollows begins the part of a reason that says how to approve a prune, for
// which a page has a place of its own.
const approvalFollows = "; to approve it: "

// briefOf leaves out of a reason how to approve a prune.
func briefOf(reason string) string {
	brief, _, _ := strings.Cut(reason, approvalFollows)
	return brief
}

// personOf leaves the address out of "Name <address>".
func personOf(author string) string {
	if name, _, found := strings.Cut(author, " <"); found && name != "" {
		return name
	}
	return author
}

// firstLine is the first line of a text.
func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// nameOf is an object's name with its namespace, if it has one.
func nameOf(o status.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// failureOf says what went wrong in the last sync of a repo.
func failureOf(r status.Repo) string {
	what := "Not everything could be applied"
	switch {
	case r.FailedStage != "":
		what = fmt.Sprintf("The sync failed at “%s”", r.FailedStage)
	case r.State == sync.Unhealthy:
		what = "Not everything was healthy in time"
	}
	if r.Failures > 1 {
		what += fmt.Sprintf(", %d times in a row", r.Failures)
	}
	return what
}

// afterDrift says what became of a drift, as the rest of a sentence.
func afterDrift(d *status.Drift, now time.Time) string {
	text := "; not corrected"
	if d.Corrected {
		text = "; corrected"
	}
	if d.Times > 1 {
		text = fmt.Sprintf(", %d times so far", d.Times) + text
	}
	if d.Error != "" {
		text += ": " + d.Error
	}
	if d.NextTry.After(now) {
		text += "; next try " + relative(d.NextTry, now)
	}
	return text
}

// refAnd names where a revision comes from: its ref, if it has one, and its author.
func refAnd(r *repo.Revision) string {
	if r.Ref == "" {
		return r.Author
	}
	return r.Ref + " · " + r.Author
}

// diffTone is the tone of a line of a unified diff.
func diffTone(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
		return muted
	case strings.HasPrefix(line, "+"):
		return good
	case strings.HasPrefix(line, "-"):
		return bad
	}
	return ""
}
