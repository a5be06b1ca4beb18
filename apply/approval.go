package apply

import (
	"fmt"
	"slices"
	"strings"
)

// minApprovalPrefix is how many digits of a revision an approval must give.
const minApprovalPrefix = 7

// approved tells whether a person has approved what this revision prunes: in its
// commit message, or by the annotation on the parent. An approval is for one
// revision, the next needs its own; and for one prune: what leaves the set later
// without a new revision, because CMD or the configuration says something else, is
// not what the person had looked at. So the trailer counts until the revision was
// pruned in full, and then the annotation is taken away.
func (p Plan) approved() bool {
	if hasApprovalTrailer(p.Revision.Message) && p.parent.data(dataPruned) != p.Revision.Revision {
		return true
	}
	return approves(p.parent.annotation(approvePruneAnnotation), p.Revision.Revision)
}

// approves tells whether an annotation's value names a revision, in full or abbreviated.
func approves(given, revision string) bool {
	return given != "" && given == revision || len(given) >= minApprovalPrefix && strings.HasPrefix(revision, given)
}

// hasApprovalTrailer looks for "Kubesync-Prune: approved" in the last paragraph
// of a commit message, where git keeps trailers.
func hasApprovalTrailer(message string) bool {
	paragraphs := strings.Split(strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n")), "\n\n")
	if len(paragraphs) < 2 {
		return false // a lone subject line has no trailers
	}
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.EqualFold(strings.TrimSpace(key), "Kubesync-Prune") && strings.EqualFold(strings.TrimSpace(value), "approved") {
			return true
		}
	}
	return false
}

// howToApprove says what releases a held prune.
func (s *Set) howToApprove(revision string) string {
	return fmt.Sprintf("to approve it: %s, or the trailer \"Kubesync-Prune: approved\" in the commit's message", s.approvalCommand(revision))
}

// approvalCommand approves what a revision prunes.
func (s *Set) approvalCommand(revision string) string {
	return fmt.Sprintf("kubectl annotate configmap --namespace %s %s --overwrite %s=%s",
		s.cluster.options.OwnNamespace, s.parentName, approvePruneAnnotation, revision)
}

// approval returns the command that releases what a result says is waiting for
// approval, "" if nothing is.
func (s *Set) approval(revision string, result Result) string {
	asks := s.howToApprove(revision)
	waits := strings.Contains(result.PruneHeld, asks) || slices.ContainsFunc(result.Outcomes, func(o Outcome) bool {
		return o.Action == Blocked && strings.Contains(o.Reason, asks)
	})
	if !waits {
		return ""
	}
	return s.approvalCommand(revision)
}
