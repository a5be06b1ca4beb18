package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/wire"
)

// Descends reports whether a commit is a strict ancestor of a revision's commit, the
// current one. The ancestor is a full hash, and may be one that the repository does
// not have any more.
//
// It is true only if a chain of parents leads from one to the other, each commit of
// which was checked against its hash; it is false, without an error, only if the
// whole history was looked through. Where that cannot be done (a shallow repository,
// a history over a limit, a server that hands it out no more) it is an error.
//
// Commits alone are fetched, where the server can leave out their files, and as a
// rule those between the two alone. The answers are remembered for as long as the
// revision is the current one.
func (r *Repo) Descends(ctx context.Context, revision Revision, ancestor string) (bool, error) {
	s, err := r.held(revision)
	if err != nil {
		return false, err
	}
	if r.options.Version.IsWorktree() {
		return false, fmt.Errorf("%s (%s): files on disk have no history, so no commit is known to be older than they are", r.options.URL, r.options.Version)
	}
	if !plumbing.IsHash(ancestor) {
		return false, fmt.Errorf("%s (%s): %q is not the full hash of a commit, so it has no place in the history of %s", r.options.URL, r.options.Version, brief(ancestor, maxSubject), revision.Short())
	}
	wanted := plumbing.NewHash(ancestor)
	if answer, ok := s.descents[wanted]; ok {
		return answer.descends, answer.err
	}
	descends, err := r.descends(ctx, s, wanted)
	if err != nil {
		err = fmt.Errorf("cannot find out whether %s is an ancestor of %s: %w", wanted.String()[:7], revision.Short(), err)
	}
	// How commits descend from one another does not change, and a history that is over a
	// limit would be fetched up to there each time.
	var exceeded *limits.Exceeded
	if err == nil || errors.As(err, &exceeded) {
		s.descents[wanted] = descent{descends, err}
	}
	return descends, err
}

// descends looks where the repository is.
func (r *Repo) descends(ctx context.Context, s *snapshot, wanted plumbing.Hash) (bool, error) {
	if !r.options.URL.IsFile() {
		return r.descendsOnServer(ctx, s, wanted)
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	descends, err := r.descendsOnDisk(ctx, s, wanted)
	if err != nil {
		return false, r.explain(ctx, err)
	}
	return descends, nil
}

func (r *Repo) descendsOnDisk(ctx context.Context, s *snapshot, wanted plumbing.Hash) (bool, error) {
	from, err := openLocal(r.options.URL.path, r.options.Limits)
	if err != nil {
		return false, err
	}
	shallow, err := from.shallow()
	if err != nil {
		return false, err
	}
	look := ancestry{parents: parentsIn(from.disk), shallow: shallow, limits: r.options.Limits}
	return look.whole(ctx, s.commit.Hash, wanted)
}

func (r *Repo) descendsOnServer(ctx context.Context, s *snapshot, wanted plumbing.Hash) (bool, error) {
	look := ancestry{parents: r.heldParents(s), limits: r.options.Limits}
	if found, err := look.from(ctx, s.commit.Hash, wanted); err != nil || found.is || found.all() {
		return found.is, err
	}
	descends := false
	err := r.reach(ctx, func(ctx context.Context, from wire.Protocol) error {
		// What comes before a commit that we seem to have is left out: if it is the
		// ancestor, no more is needed.
		got, err := from.Commits(ctx, s.tip, wanted)
		if err != nil {
			return noHistory(err)
		}
		look.parents, look.shallow = either(r.heldParents(s), parentsIn(got.Pack)), got.Shallow
		found, err := look.from(ctx, s.commit.Hash, wanted)
		if descends = found.is; err != nil || found.is || found.all() {
			return err
		}
		if got, err = from.Commits(ctx, s.tip); err != nil {
			return noHistory(err)
		}
		look.parents, look.shallow = either(r.heldParents(s), parentsIn(got.Pack)), got.Shallow
		descends, err = look.whole(ctx, s.commit.Hash, wanted)
		return err
	})
	return descends && err == nil, err
}

// noHistory is the error of a server that does not hand out what it has handed out.
func noHistory(err error) error {
	if errors.Is(err, wire.ErrMoved) {
		return errNoHistory
	}
	return err
}

var errNoHistory = errors.New("the server does not hand out the history of that revision; was it replaced by force? The next poll takes what is there then")

// heldParents are the parents of commits that were fetched for something else.
func (r *Repo) heldParents(s *snapshot) parents {
	return func(hash plumbing.Hash) ([]plumbing.Hash, error) {
		if hash == s.commit.Hash {
			return s.commit.ParentHashes, nil
		}
		if c, ok := r.latest.of.Commits[hash]; ok {
			return c.Parents, nil
		}
		return nil, plumbing.ErrObjectNotFound
	}
}

// parents returns the parents of a commit, of which it was checked that it has that
// hash; plumbing.ErrObjectNotFound if there is no such commit.
type parents func(plumbing.Hash) ([]plumbing.Hash, error)

// parentsIn are those of commits that are read from objects.
func parentsIn(from pack.Objects) parents {
	return func(hash plumbing.Hash) ([]plumbing.Hash, error) {
		c, err := pack.ReadCommit(from, hash)
		if err != nil {
			return nil, err
		}
		if c.Hash != hash { // a tag object, and its commit is no ancestor by that
			return nil, fmt.Errorf("commit %s has a parent that is no commit: %s", c.Hash, hash)
		}
		return c.ParentHashes, nil
	}
}

// either looks in one place, then in another.
func either(one, other parents) parents {
	return func(hash plumbing.Hash) ([]plumbing.Hash, error) {
		found, err := one(hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return other(hash)
		}
		return found, err
	}
}

// ancestry is a history in which an ancestor is looked for.
type ancestry struct {
	parents parents
	// shallow are the commits behind which the repository itself is cut off.
	shallow map[plumbing.Hash]bool
	limits  limits.Limits
}

// outcome is what looking for an ancestor came to.
type outcome struct {
	is bool // it is one
	// missing are commits whose own parents are not known, cut those behind which
	// the repository is cut off.
	missing, cut []plumbing.Hash
}

// all reports whether the whole history was seen.
func (o outcome) all() bool { return len(o.missing) == 0 && len(o.cut) == 0 }

// from looks for a commit among the ancestors of another, the nearest ones first. A
// commit that names it as its parent is all the proof there is to have: the hash of
// the one is made from that of the other.
func (a ancestry) from(ctx context.Context, descendant, wanted plumbing.Hash) (outcome, error) {
	var out outcome
	seen := map[plumbing.Hash]bool{descendant: true}
	todo := []plumbing.Hash{descendant}
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return outcome{}, err
		}
		hash := todo[0]
		todo = todo[1:]
		parents, err := a.parents(hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			out.missing = append(out.missing, hash)
			continue
		}
		if err != nil {
			return outcome{}, err
		}
		if slices.Contains(parents, wanted) {
			return outcome{is: true}, nil
		}
		if a.shallow[hash] {
			out.cut = append(out.cut, hash)
			continue
		}
		for _, parent := range parents {
			if !seen[parent] {
				seen[parent] = true
				todo = append(todo, parent)
			}
		}
		if err := a.limits.Check(limits.Objects, "the history is too long", int64(len(seen))); err != nil {
			return outcome{}, err
		}
	}
	return out, nil
}

// whole looks through a history of which there is no more to be had.
func (a ancestry) whole(ctx context.Context, descendant, wanted plumbing.Hash) (bool, error) {
	found, err := a.from(ctx, descendant, wanted)
	switch {
	case err != nil || found.is:
		return found.is, err
	case len(found.missing) > 0:
		return false, fmt.Errorf("%w: commit %s of the history", pack.ErrIncomplete, found.missing[0])
	case len(found.cut) > 0:
		return false, fmt.Errorf("the repository is shallow, its history is cut off behind commit %s; \"git fetch --unshallow\" there gets the rest", found.cut[0])
	}
	return false, nil
}

// descent is an answer of Repo.Descends.
type descent struct {
	descends bool
	err      error
}
