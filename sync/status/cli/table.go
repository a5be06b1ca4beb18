package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/internal/printable"
	"github.com/kubesync/kubesync/sync/status"
)

// none stands for what there is not, as in kubectl's tables.
const none = "<none>"

// table prints an overview as kubectl does.
func table(to io.Writer, wide bool, overview status.Overview) error {
	out := printers.GetNewTabWriter(to)
	header := []string{"NAME", "STATE", "HEALTHY", "REVISION", "OBJECTS", "CURRENT", "VERIFIED", "MESSAGE"}
	if wide {
		header = []string{"NAME", "STATE", "HEALTHY", "REVISION", "OBJECTS", "CURRENT", "VERIFIED", "LAST SYNC", "NEXT POLL", "FAILURES", "TIER", "URL", "SUBJECT", "MESSAGE"}
	}
	row(out, header)
	now := time.Now()
	for _, r := range overview.Repos {
		cells := []string{r.Name, state(r), yes(r.Healthy), revision(r), share(r.Objects, status.ObjectSynced), share(r.Health, health.Current), age(r.LastVerified, now)}
		if wide {
			subject := ""
			if r.Revision != nil {
				subject = r.Revision.Subject
			}
			cells = append(cells, age(r.LastSync, now), nextPoll(r, now), fmt.Sprint(r.Failures), r.Tier, r.URL, cmp.Or(subject, none))
		}
		row(out, append(cells, message(r)))
	}
	for _, set := range overview.Unlisted {
		cells := make([]string, len(header))
		for i := range cells {
			cells[i] = none
		}
		cells[0], cells[1], cells[len(cells)-1] = set.Repo, "unlisted", "its objects stay; to delete them: "+set.Delete
		row(out, cells)
	}
	return out.Flush()
}

// row prints one line, whatever others have written into a cell.
func row(out io.Writer, cells []string) {
	for i, cell := range cells {
		cells[i] = printable.Line(cell)
	}
	fmt.Fprintln(out, strings.Join(cells, "\t"))
}

// state words a repo's state, and what runs now.
func state(r status.Repo) string {
	text := string(r.State)
	if r.Stale != nil {
		text += ",stale"
	}
	return text
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// revision names what git says and, if that is another one, what the cluster has.
func revision(r status.Repo) string {
	switch {
	case r.Revision == nil:
		return none
	case r.Applied == nil:
		return "(none)->" + r.Revision.Short()
	case r.Applied.ID != r.Revision.ID:
		return r.Applied.Short() + "->" + r.Revision.Short()
	}
	return r.Revision.Short()
}

// share says how many of all are in a state.
func share[S ~string](counts map[S]int, state S) string {
	all := 0
	for _, n := range counts {
		all += n
	}
	if len(counts) == 0 {
		return none
	}
	return fmt.Sprintf("%d/%d", counts[state], all)
}

// age words how long something is ago, as kubectl does.
func age(at, now time.Time) string {
	if at.IsZero() {
		return none
	}
	return span(now.Sub(at))
}

// nextPoll words in how long a repo is polled next. While a sync is under way the time that
// was shown for it is over.
func nextPoll(r status.Repo, now time.Time) string {
	switch {
	case r.Phase != nil:
		return "now"
	case r.NextPoll.IsZero():
		return none
	}
	return span(r.NextPoll.Sub(now))
}

// span words how long something takes. The daemon's clock may be another than ours, and a
// moment passes before a poll that is due begins: kubectl's words for less than nothing are
// "<invalid>".
func span(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// message says in a line what a person has to know.
func message(r status.Repo) string {
	var texts []string
	if r.Error != "" {
		first, others, _ := strings.Cut(r.Error, "\n")
		if others != "" {
			first += fmt.Sprintf(" (and %d more)", strings.Count(others, "\n")+1)
		}
		texts = append(texts, first)
	}
	if r.Stale != nil && len(r.Stale.Reasons) > 0 {
		text := "stale: " + r.Stale.Reasons[0]
		if others := len(r.Stale.Reasons) - 1; others > 0 {
			text += fmt.Sprintf(" (and %d more)", others)
		}
		texts = append(texts, text)
	}
	for _, state := range []status.ObjectState{status.ObjectConflict, status.ObjectDrifted} {
		if n := r.Objects[state]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, state))
		}
	}
	for _, state := range []health.State{health.Failed, health.Terminating, health.InProgress, health.Unknown} {
		if n := r.Health[state]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, healthWord(state)))
		}
	}
	for _, text := range []string{r.PruneHeld, r.Suspended, r.Waits} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return cmp.Or(strings.Join(texts, "; "), none)
}

// healthWord distinguishes an object that is unhealthy from one that could not be applied.
func healthWord(state health.State) string {
	switch state {
	case health.Failed:
		return "unhealthy"
	case health.Unknown:
		return "of unknown health"
	}
	return string(state)
}
