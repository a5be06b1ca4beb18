package repo

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/revision"
)

// Revision is one state of a repository's files.
type Revision = revision.Revision

// newRevision describes a commit that ref led to.
func newRevision(c *object.Commit, ref string) Revision {
	message := strings.ToValidUTF8(c.Message, "\uFFFD")
	subject, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return Revision{
		ID:        c.Hash.String(),
		Ref:       ref,
		Subject:   brief(strings.TrimSpace(subject), maxSubject),
		Author:    brief(c.Author.String(), maxSubject),
		Committed: c.Committer.When,
		Message:   message,
	}
}
