// Package revision has the one value that a revision is, from git to the status page.
package revision

import (
	"encoding/json"
	"strings"
	"time"
)

// WorktreePrefix begins the ID of a revision that is no commit.
const WorktreePrefix = "worktree-"

// shortHash is how many digits of a hash are shown to people.
const shortHash = 7

// Revision is one state of a repository's files. What was not found out, or not
// recorded, is empty.
type Revision struct {
	// ID is the commit's hash, 40 hexadecimal digits; in worktree mode
	// "worktree-" and the hash of the files, so that equal files have equal IDs.
	ID string
	// Ref is the full name of the ref that led to it: refs/heads/NAME,
	// refs/tags/NAME, or HEAD where the repository's HEAD is on no branch. Empty
	// in the modes commit and worktree.
	Ref string
	// Subject is the first line of Message, and Author "Name <address>", both fit to be
	// shown: cut off where they are long, without control characters.
	Subject string
	Author  string
	// Committed is the committer's date; in worktree mode the newest time at
	// which a file was modified.
	Committed time.Time
	// Message is the whole commit message, as it was written.
	Message string
}

// MarshalJSON writes a revision as the API has it: with the short ID, without Message.
func (r Revision) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID        string    `json:"id"`
		Short     string    `json:"short"`
		Ref       string    `json:"ref,omitempty"`
		Subject   string    `json:"subject"`
		Author    string    `json:"author,omitempty"`
		Committed time.Time `json:"committed,omitzero"`
	}{r.ID, r.Short(), r.Ref, r.Subject, r.Author, r.Committed})
}

// Short returns the ID for people: the first seven digits of its hash.
func (r Revision) Short() string { return Short(r.ID) }

// Short returns an ID for people: the first seven digits of its hash.
func Short(id string) string {
	hash, worktree := strings.CutPrefix(id, WorktreePrefix)
	hash = hash[:min(len(hash), shortHash)]
	if worktree {
		return WorktreePrefix + hash
	}
	return hash
}

// HasTrailer reports whether the last paragraph of the message, where git keeps
// trailers, has a line "KEY: VALUE", in any case of letters.
func (r Revision) HasTrailer(key, value string) bool {
	paragraphs := strings.Split(strings.TrimSpace(strings.ReplaceAll(r.Message, "\r\n", "\n")), "\n\n")
	if len(paragraphs) < 2 {
		return false // a lone subject line has no trailers
	}
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		k, v, found := strings.Cut(line, ":")
		if found && strings.EqualFold(strings.TrimSpace(k), key) && strings.EqualFold(strings.TrimSpace(v), value) {
			return true
		}
	}
	return false
}
