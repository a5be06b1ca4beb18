package repo

import (
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// worktreePrefix begins the ID of a revision that is no commit.
const worktreePrefix = "worktree-"

// shortHash is how many digits of a hash are shown to people.
const shortHash = 7

// Revision is one state of a repository's files.
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
	// Message is the whole commit message, as it was written.
	Message string
	// Committed is the committer's date; in worktree mode the newest time at
	// which a file was modified.
	Committed time.Time
}

// Short returns the ID for people: the first seven digits of its hash.
func (r Revision) Short() string {
	hash, worktree := strings.CutPrefix(r.ID, worktreePrefix)
	hash = hash[:min(len(hash), shortHash)]
	if worktree {
		return worktreePrefix + hash
	}
	return hash
}

// newRevision describes a commit that ref led to.
func newRevision(c *object.Commit, ref string) Revision {
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return Revision{
		ID:        c.Hash.String(),
		Ref:       ref,
		Subject:   brief(strings.TrimSpace(subject), maxSubject),
		Author:    brief(c.Author.String(), maxSubject),
		Message:   message,
		Committed: c.Committer.When,
	}
}
