package commitstatus

import (
	"fmt"
	"strings"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
)

// State is what a commit's status says.
type State string

// The states, as GitHub and Gitea name them.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// status is what a git server shows of a commit.
type status struct {
	revision    string // full hash
	state       State
	description string // one line
}

// mostDescription is how many characters GitHub takes; GitLab takes more.
const mostDescription = 140

// line makes one line of a text, of a length that servers take.
func line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > mostDescription {
		return string(runes[:mostDescription-1]) + "…"
	}
	return text
}

// isCommit reports whether a revision is one that a server knows: a working tree is not.
func isCommit(revision repo.Revision) bool {
	return len(revision.ID) >= 40 && strings.Trim(revision.ID, "0123456789abcdef") == ""
}

// of returns what a report says of its commit, false if nothing.
func of(report sync.Report) (status, bool) {
	if !isCommit(report.Revision) || report.State() == sync.Interrupted {
		return status{}, false
	}
	s := status{revision: report.Revision.ID, state: Success, description: report.Result.Summary()}
	problem := report.Problem()
	switch {
	case report.State() == sync.Suspended:
		s.state, s.description = Pending, "suspended: "+report.Result.Suspended
	case problem != nil && onlyPending(report):
		s.state, s.description = Pending, "waits: "+problem.Error()
	case problem != nil:
		s.state, s.description = Failure, problem.Error()
	case report.Result.PruneHeld != "":
		s.description += "; pruning waits: " + report.Result.PruneHeld
	}
	return s, true
}

// onlyPending reports whether a sync is incomplete for nothing but objects that follow by
// themselves.
func onlyPending(report sync.Report) bool {
	counts := report.Result.Counts()
	return report.Err == nil && counts[apply.Failed]+counts[apply.Refused] == 0
}

// begun is the status of a commit that is on its way.
func begun(progress sync.Progress) status {
	return status{revision: progress.Revision.ID, state: Pending, description: fmt.Sprintf("kubesync: %s", progress.Stage)}
}
