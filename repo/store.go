package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/repo/limits"
)

// maxWants bounds the objects of one request: each is a line of 50 bytes, and web
// servers have a limit to what they take, nginx for one of 1 MiB.
const maxWants = 10_000

// store holds those objects of a commit that were needed so far. What else is
// needed it fetches. All methods may be called by many goroutines.
type store struct {
	tip    tag
	limits limits.Limits
	// reach lends the way to the server, one user at a time, and bounds and
	// explains what is done with it.
	reach func(context.Context, func(context.Context, speaker) error) error

	mu    sync.Mutex
	packs []*pack // what was fetched, each as it came
	// whole is the pack that has all files, nil if none has.
	whole *pack
	// older is the store of the revision before, for what has not changed since. It
	// is settled, so there is never more than one. kept is what was asked for and
	// found in it; the rest goes when this store is settled.
	older *store
	kept  map[plumbing.Hash]bool
}

// object implements objects, for what is held.
func (s *store) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	from := s.holder(hash)
	if from == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	return from.object(hash)
}

// size implements objects, for what is held.
func (s *store) size(hash plumbing.Hash) (int64, error) {
	from := s.holder(hash)
	if from == nil {
		return 0, plumbing.ErrObjectNotFound
	}
	return from.size(hash)
}

// bounds implements objects.
func (s *store) bounds() limits.Limits { return s.limits }

// has implements objects: it tells what is held.
func (s *store) has(hash plumbing.Hash) bool { return s.holder(hash) != nil }

// holder returns what has an object, nil if nobody has. An object of the revision
// before that somebody looks for is one of this revision too, and kept.
func (s *store) holder(hash plumbing.Hash) *pack {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.own(hash); p != nil {
		return p
	}
	if s.older == nil {
		return nil
	}
	p := s.older.holder(hash)
	if p != nil {
		s.kept[hash] = true
	}
	return p
}

// own finds an object in the packs. The caller holds mu.
func (s *store) own(hash plumbing.Hash) *pack {
	i := slices.IndexFunc(s.packs, func(p *pack) bool { return p.has(hash) })
	if i < 0 {
		return nil
	}
	return s.packs[i]
}

// follow makes a store take over what it can use of the one of the revision before.
func (s *store) follow(ctx context.Context, older *store) {
	older.settle(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.older, s.kept = older, map[plumbing.Hash]bool{}
}

// settle lets go of the store of the revision before, when this revision has been
// used: what nobody asked for meanwhile is not needed any more, or is fetched
// again. So nobody has to be told when that cannot be copied which is.
func (s *store) settle(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.older == nil {
		return
	}
	stay, copied := s.older.divide(func(hash plumbing.Hash) bool { return s.kept[hash] && s.own(hash) == nil })
	if len(copied) > 0 {
		if data, err := writePack(ctx, s.older, copied); err == nil {
			if p, err := newPack(ctx, data, s.limits); err == nil {
				s.packs = append(s.packs, p)
			}
		}
	}
	s.packs = append(s.packs, stay...)
	s.older, s.kept = nil, nil
}

// divide sorts what is needed of a store: into packs that stay as they are, and
// objects to be copied out of those that hold little else than what is not needed, or
// little. To copy all at each revision would cost in proportion to the files, never
// to copy any in packs to look through: what is copied together with as much or more
// is copied some ten times in a store of 10,000 files.
func (s *store) divide(needed func(plumbing.Hash) bool) (stay []*pack, copied []plumbing.Hash) {
	type part struct {
		*pack
		needed []plumbing.Hash
	}
	parts := make([]part, 0, len(s.packs))
	for _, p := range s.packs {
		parts = append(parts, part{p, p.those(needed)})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(len(a.needed), len(b.needed)) })
	smaller, last := 0, -1
	for i, p := range parts {
		if len(p.needed) <= 2*smaller {
			last = i
		}
		smaller += len(p.needed)
	}
	for i, p := range parts {
		switch {
		case i <= last, 2*len(p.needed) < p.len():
			copied = append(copied, p.needed...)
		default:
			stay = append(stay, p.pack)
		}
	}
	plumbing.HashesSort(copied)
	return stay, slices.Compact(copied)
}

// missing returns those of some objects that are not held, each once.
func (s *store) missing(hashes []plumbing.Hash) []plumbing.Hash {
	var out []plumbing.Hash
	seen := make(map[plumbing.Hash]bool, len(hashes))
	for _, hash := range hashes {
		if !seen[hash] && !s.has(hash) {
			out = append(out, hash)
		}
		seen[hash] = true
	}
	return out
}

// need fetches those of some objects that are not held, in one request; of
// directories, if below is set, all directories below them, too.
func (s *store) need(ctx context.Context, hashes []plumbing.Hash, below bool) error {
	if hashes = s.missing(hashes); len(hashes) == 0 {
		return nil
	}
	return s.reach(ctx, func(ctx context.Context, from speaker) error {
		// Somebody else may have needed them meanwhile.
		for wants := range slices.Chunk(s.missing(hashes), maxWants) {
			if err := s.take(ctx, from, wants, below); err != nil {
				return err
			}
		}
		if left := s.missing(hashes); len(left) > 0 {
			return fmt.Errorf("%w: %s of commit %s", errIncomplete, left[0], s.tip.commit)
		}
		return nil
	})
}

// take fetches objects. From a server that has no version 2, or does not hand out
// what is not a commit, it takes the whole commit.
func (s *store) take(ctx context.Context, from speaker, wants []plumbing.Hash, below bool) error {
	if two, ok := from.(*v2); ok && two.filter() != "" {
		p, err := two.take(ctx, wants, below)
		if err == nil {
			s.add(p)
			return nil
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return s.takeWhole(ctx, from)
}

func (s *store) takeWhole(ctx context.Context, from speaker) error {
	p, err := from.whole(ctx, s.tip)
	if errors.Is(err, errMoved) {
		return errGone
	}
	if err != nil {
		return err
	}
	s.become(p)
	return nil
}

// errGone is a revision that was there and is no more.
var errGone = errors.New("the server does not have the files of that revision any more; was it replaced by force? The next poll takes what is there then")

func (s *store) add(p *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = append(s.packs, p)
}

// become puts a pack with everything in the place of all that was held.
func (s *store) become(p *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.whole, s.older, s.kept = []*pack{p}, p, nil, nil
}

// complete returns all files of the commit, and tag objects that lead to it, as
// one pack, which is what a checkout's .git needs. If the revision before was
// complete, only what is new is fetched, else everything in one request.
func (s *store) complete(ctx context.Context, c *object.Commit, tags []plumbing.Hash) (*pack, error) {
	p, renew := s.wholePack()
	switch {
	case p != nil: // perhaps taken when something else was needed
	case renew:
		if err := s.fill(ctx, c, tags); err != nil {
			return nil, err
		}
		p, err := packCommit(ctx, s, c, heldOf(s, tags))
		if err != nil {
			return nil, err
		}
		s.become(p)
	default:
		if err := s.reach(ctx, s.takeWhole); err != nil {
			return nil, err
		}
	}
	p, _ = s.wholePack()
	if err := whole(ctx, p, c); err != nil {
		s.forget()
		return nil, err
	}
	return p, nil
}

// forget lets go of all that is held, since it is not what the server was asked for.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.whole, s.older, s.kept = nil, nil, nil, nil
}

// wholePack returns the pack that has all files, nil if none has, and whether the
// revision before had one.
func (s *store) wholePack() (p *pack, renew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, s.older != nil && s.older.isWhole()
}

func (s *store) isWhole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole != nil
}

// heldOf returns those of some objects that are there.
func heldOf(from objects, hashes []plumbing.Hash) []plumbing.Hash {
	return slices.DeleteFunc(slices.Clone(hashes), func(hash plumbing.Hash) bool { return !from.has(hash) })
}

// fill fetches everything that is missing.
func (s *store) fill(ctx context.Context, c *object.Commit, tags []plumbing.Hash) error {
	if err := s.lists(ctx, c.TreeHash); err != nil {
		return err
	}
	var all []plumbing.Hash
	err := walkTrees(ctx, s, c.TreeHash, func(hash plumbing.Hash) error {
		all = append(all, hash)
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.need(ctx, all, false); err != nil {
		return err
	}
	tips := s.missing(tags)
	if len(tips) == 0 {
		return nil
	}
	return s.reach(ctx, func(ctx context.Context, from speaker) error {
		two, ok := from.(*v2)
		if !ok {
			return nil // it sent them with the commit, or never will
		}
		p, err := two.tagObjects(ctx, tips)
		if err == nil {
			s.add(p)
		}
		return err
	})
}

// lists fetches a tree and all trees below it.
func (s *store) lists(ctx context.Context, tree plumbing.Hash) error {
	for {
		missing, err := s.missingTrees(tree)
		if err != nil || len(missing) == 0 {
			return err
		}
		if err := s.need(ctx, missing, true); err != nil {
			return err
		}
	}
}

// missingTrees returns the trees below one, or itself, that are not held although
// the one they are in is.
func (s *store) missingTrees(root plumbing.Hash) ([]plumbing.Hash, error) {
	var missing []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	var walk func(tree plumbing.Hash, depth int64) error
	walk = func(tree plumbing.Hash, depth int64) error {
		if seen[tree] {
			return nil
		}
		seen[tree] = true
		if err := checkDepth(s, depth); err != nil {
			return err
		}
		if !s.has(tree) {
			missing = append(missing, tree)
			return nil
		}
		entries, err := readTree(s, tree)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Mode == filemode.Dir {
				if err := walk(e.Hash, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := walk(root, 0)
	return missing, err
}

// lazy are the objects of a commit, which are fetched when they are read, while a
// context lasts.
type lazy struct {
	*store
	ctx context.Context
}

// object implements objects.
func (l lazy) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if err := l.need(l.ctx, []plumbing.Hash{hash}, false); err != nil {
		return nil, err
	}
	return l.store.object(hash)
}

// size implements objects. Git does not tell how large an object is without it.
func (l lazy) size(hash plumbing.Hash) (int64, error) {
	if err := l.need(l.ctx, []plumbing.Hash{hash}, false); err != nil {
		return 0, err
	}
	return l.store.size(hash)
}
