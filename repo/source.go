package repo

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
)

// source is where a repository is read from during one poll.
type source interface {
	// refs lists the branches, tags and HEAD that are in scope, in one request. It
	// may list more.
	refs(context.Context, scope) (refs, error)
	// history returns the past of tips, without the content of commits. Of
	// older, a history got before, nothing is asked for again.
	history(_ context.Context, tips []tag, older history) (history, error)
	// objects returns the objects of one commit: itself, its files, and the tag
	// objects that were found on the way. It may have more; a store has only the
	// commit, and fetches its files when they are needed.
	objects(context.Context, selection) (objects, error)
}

// errMoved is a ref that changed between being listed and being fetched.
var errMoved = errors.New("the branch or tag changed while it was being fetched")

// selected is the commit of a selection by its hash, for messages.
func (s selection) selected() plumbing.Hash {
	if !s.commit.IsZero() {
		return s.commit
	}
	return s.tip
}
