package prune

import (
	"fmt"
	"slices"
	"strings"
)

// maxUsed is how many revisions whose trailers were used are remembered.
const maxUsed = 100

// Step is the way from what was applied last to a revision whose commit carries the
// trailer. What was applied before is what the set's parent recorded.
type Step struct {
	Revision string
	Mode     string // what selects revisions, as VERSION_MODE has it

	Applied    string   // the revision applied last; empty if none is recorded
	AppliedBy  string   // the mode that had selected it
	Pruned     string   // the last revision of which nothing was left to prune; empty if there is none
	Counted    string   // the last revision whose trailer was found to count, when its step began
	UsedBefore []string // revisions whose trailer has been used
}

// Ancestors returns the revisions that have to be ancestors of the step's revision; none
// where the trailer counts, or does not, without that. It is the first question of Void.
func (s Step) Ancestors() []string {
	if s.void() != "" || s.Counted == s.Revision {
		return nil
	}
	if s.Pruned == "" || s.Pruned == s.Applied {
		return []string{s.Applied}
	}
	return []string{s.Applied, s.Pruned}
}

// Void returns why the trailer does not approve what goes, "" if it does. Unproven has,
// for those of Ancestors that are not known to be ancestors, the reason.
func (s Step) Void(unproven map[string]string) string {
	if reason := s.void(); reason != "" {
		return reason
	}
	for _, revision := range s.Ancestors() {
		if reason := unproven[revision]; reason != "" {
			return reason
		}
	}
	return ""
}

// void returns what speaks against the trailer whatever its commit's ancestors are.
func (s Step) void() string {
	switch {
	case slices.Contains(s.UsedBefore, s.Revision):
		return "it was used before"
	case s.Pruned == s.Revision:
		return "all that this revision prunes was pruned before"
	case s.Counted == s.Revision:
		return ""
	case s.Applied == "":
		return "which revision was applied before is not known"
	case s.Applied == s.Revision:
		return "this revision was applied before"
	case s.AppliedBy != s.Mode:
		return fmt.Sprintf("the revision applied before was selected by %s, this one by %s", orUnknown(s.AppliedBy), orUnknown(s.Mode))
	case strings.HasPrefix(s.Mode, "tag:") && s.Mode != "tag:latest":
		return fmt.Sprintf("the tag moved (%s)", s.Mode)
	}
	return ""
}

// orUnknown words a mode.
func orUnknown(mode string) string {
	if mode == "" {
		return "a mode that is not recorded"
	}
	return mode
}

// Use adds a revision whose trailer is used to those that were, the oldest first. It
// remembers the last 100.
func Use(used []string, revision string) []string {
	if slices.Contains(used, revision) {
		return used
	}
	used = append(slices.Clone(used), revision)
	return used[max(0, len(used)-maxUsed):]
}
