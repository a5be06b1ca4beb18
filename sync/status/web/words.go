package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
)

// words are the functions with which templates word things.
func words() template.FuncMap {
	return template.FuncMap{
		"badge":   badgeOf,
		"counts":  countsOf,
		"moment":  momentOf,
		"summary": summaryOf,
		"attend":  needsAttention,
		"unwell":  func(r status.Repo) bool { return r.Health[apply.HealthFailed] > 0 && r.State != sync.Unhealthy },
		"brief":   briefOf,
		"person":  personOf,
		"lines":   func(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") },
		"seconds": func(s float64) string {
			return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
		},
		"diff": diffOf,
	}
}

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

// badgeOf words the state of a repo, an object, its health or what was done about it.
func badgeOf(state any) (badge, error) {
	switch is := state.(type) {
	case sync.State:
		return repoBadge(is), nil
	case status.ObjectState:
		return objectBadge(is), nil
	case apply.HealthState:
		return healthBadge(is), nil
	case apply.Action:
		return actionBadge(is), nil
	}
	return badge{}, fmt.Errorf("no badge for a %T", state)
}

func repoBadge(state sync.State) badge {
	switch state {
	case sync.Synced:
		return badge{"✓", "synced", good}
	case sync.Progressing:
		return badge{"◔", "synced, not healthy yet", busy}
	case sync.Unhealthy:
		return badge{"✗", "synced, not healthy", bad}
	case sync.Incomplete:
		return badge{"◐", "synced in part", warn}
	case sync.Failed:
		return badge{"✗", "not synced", bad}
	case sync.Suspended:
		return badge{"‖", "suspended", muted}
	case status.Waiting:
		return badge{"…", "not synced yet", busy}
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
	case status.ObjectFight:
		return badge{"⇄", "fight", bad}
	case status.ObjectDrifted:
		return badge{"≠", "drifted", warn}
	case status.ObjectParked:
		return badge{"…", "parked", warn}
	case status.ObjectBlocked:
		return badge{"◌", "blocked", warn}
	}
	return badge{"‖", string(state), muted}
}

func healthBadge(state apply.HealthState) badge {
	switch state {
	case apply.Current:
		return badge{"●", "current", good}
	case apply.InProgress:
		return badge{"◔", "in progress", busy}
	case apply.HealthFailed:
		return badge{"✗", "failed", bad}
	case apply.Terminating:
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
	case apply.Parked:
		return objectBadge(status.ObjectParked)
	case apply.Blocked:
		return objectBadge(status.ObjectBlocked)
	}
	return badge{"·", string(action), muted}
}

// counted is a number of things in a state.
type counted struct {
	Badge badge
	N     int
}

// countsOf lists the states that there are, those first that need a person's attention.
func countsOf(counts any) ([]counted, error) {
	var list []counted
	add := func(b badge, n int) {
		if n > 0 {
			list = append(list, counted{b, n})
		}
	}
	switch in := counts.(type) {
	case map[status.ObjectState]int:
		for _, state := range status.ObjectStates() {
			add(objectBadge(state), in[state])
		}
	case map[apply.HealthState]int:
		for _, state := range apply.HealthStates() {
			add(healthBadge(state), in[state])
		}
	case map[apply.Action]int:
		for _, action := range apply.Actions() {
			add(actionBadge(action), in[action])
		}
	default:
		return nil, fmt.Errorf("no counts of a %T", counts)
	}
	return list, nil
}

// moment is a point in time for people and for machines.
type moment struct {
	Machine, Exact, Relative string
}

// momentOf words a time as seen from now.
func momentOf(at, now time.Time) moment {
	exact := at.UTC().Format("2006-01-02 15:04:05 MST")
	distance := now.Sub(at)
	switch {
	case distance > -time.Second && distance <= 0:
		return moment{at.UTC().Format(time.RFC3339), exact, "now"}
	case distance < 0:
		return moment{at.UTC().Format(time.RFC3339), exact, "in " + span(-distance)}
	case distance < time.Second:
		return moment{at.UTC().Format(time.RFC3339), exact, "just now"}
	}
	return moment{at.UTC().Format(time.RFC3339), exact, span(distance) + " ago"}
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

// needsAttention tells whether a person should look at a repo: something went wrong,
// or waits for a decision. What is merely on its way does not.
func needsAttention(r status.Repo) bool {
	switch {
	case r.State == sync.Failed, r.State == sync.Incomplete, r.State == sync.Unhealthy, r.PruneHeld != "", r.Approve != "":
		return true
	}
	return r.Objects[status.ObjectFight]+r.Objects[status.ObjectDrifted]+r.Health[apply.HealthFailed] > 0
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
		return "This process stands by"
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

// approvalFollows begins the part of a reason that tells how to approve a prune, for
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

// diffLine is a line of a diff.
type diffLine struct {
	Tone, Text string
}

// diffOf takes a unified diff apart.
func diffOf(text string) []diffLine {
	var lines []diffLine
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		tone := ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			tone = muted
		case strings.HasPrefix(line, "+"):
			tone = good
		case strings.HasPrefix(line, "-"):
			tone = bad
		}
		lines = append(lines, diffLine{tone, line})
	}
	return lines
}
