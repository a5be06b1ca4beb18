package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
	"github.com/kubesync/kubesync/repo/wire"
)

// maxWants bounds the objects of one request: each is a line of 50 bytes, and web
// servers have a limit to what they take, nginx for one of 1 MiB.
const maxWants = 10_000

// store holds those objects of a commit that were needed so far. What else is
// needed it fetches. All methods may be called by many goroutines.
type store struct {
	tip    refs.Tag
	limits limits.Limits
	// reach lends the way to the server, one user at a time, and bounds and
	// explains what is done with it.
	reach func(context.Context, func(context.Context, wire.Protocol) error) error

	mu    sync.Mutex
	packs []*pack.Pack // what was fetched, each as it came
	// whole is the pack that has all files, nil if none has.
	whole *pack.Pack
	// older is the store of the revision before, for what has not changed since. It
	// is settled, so there is never more than one. kept is what was asked for and
	// found in it; the rest goes when this store is settled.
	older *store
	kept  map[plumbing.Hash]bool
	// below is what is known of all that is below a tree. Of trees of which the revision
	// before knew something, older holds it: it is kept, without being asked for.
	below map[plumbing.Hash]fact
}

// fact is something that holds of a tree and of those below it.
type fact uint8

const (
	listed fact = 1 << iota // all trees below it are held
	used                    // a user fetched what it needs of what is below it
)

// Object implements pack.Objects, for what is held.
func (s *store) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	from := s.holder(hash)
	if from == nil {
		return nil, plumbing.ErrObjectNotFound
	}
	return from.Object(hash)
}

// Size implements pack.Objects, for what is held.
func (s *store) Size(hash plumbing.Hash) (int64, error) {
	from := s.holder(hash)
	if from == nil {
		return 0, plumbing.ErrObjectNotFound
	}
	return from.Size(hash)
}

// Limits implements pack.Objects.
func (s *store) Limits() limits.Limits { return s.limits }

// Has implements pack.Objects: it returns what is held.
func (s *store) Has(hash plumbing.Hash) bool { return s.holder(hash) != nil }

// holder returns what has an object, nil if no one has. An object of the revision
// before that a user looks for is one of this revision too, and kept.
func (s *store) holder(hash plumbing.Hash) *pack.Pack {
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
func (s *store) own(hash plumbing.Hash) *pack.Pack {
	i := slices.IndexFunc(s.packs, func(p *pack.Pack) bool { return p.Has(hash) })
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

// holds reports whether something holds of a tree, perhaps since the revision before.
func (s *store) holds(what fact, tree plumbing.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.below[tree]&what == 0 && s.older != nil && s.older.holds(what, tree) {
		s.learn(what, tree)
	}
	return s.below[tree]&what != 0
}

// learn notes what holds of a tree. The caller holds mu.
func (s *store) learn(what fact, tree plumbing.Hash) {
	if s.below == nil {
		s.below = map[plumbing.Hash]fact{}
	}
	s.below[tree] |= what
}

// keep notes that a user uses what it fetched, or is about to fetch, below a tree. It
// reports whether one did so before: then that is still held.
func (s *store) keep(tree plumbing.Hash) bool {
	before := s.holds(used, tree)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learn(used, tree)
	return before
}

// keepBelow keeps what the revision before holds of a tree of which it knew something,
// with all that is known of what is below. What cannot be read there is not needed, or is
// fetched again. The caller holds mu.
func (s *store) keepBelow(tree plumbing.Hash, done map[plumbing.Hash]bool) {
	if done[tree] || !s.older.Has(tree) {
		return
	}
	done[tree], s.kept[tree] = true, true
	s.learn(s.older.known(tree), tree)
	entries, err := pack.ReadTree(s.older, tree)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Mode == filemode.Dir {
			s.keepBelow(e.Hash, done)
		} else {
			s.kept[e.Hash] = true
		}
	}
}

// known returns all that is known of a tree.
func (s *store) known(tree plumbing.Hash) fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.below[tree]
}

// settle lets go of the store of the revision before, when this revision has been
// used: what no one asked for meanwhile is not needed any more, or is fetched
// again. So it is no error if what is needed cannot be copied.
func (s *store) settle(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.older == nil {
		return
	}
	done := map[plumbing.Hash]bool{}
	for _, tree := range slices.Collect(maps.Keys(s.below)) {
		if s.older.known(tree) != 0 {
			s.keepBelow(tree, done)
		}
	}
	stay, copied := s.older.divide(func(hash plumbing.Hash) bool { return s.kept[hash] && s.own(hash) == nil })
	if len(copied) > 0 {
		if data, err := pack.Write(ctx, s.older, copied); err == nil {
			if p, err := pack.New(ctx, data, s.limits); err == nil {
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
func (s *store) divide(needed func(plumbing.Hash) bool) (stay []*pack.Pack, copied []plumbing.Hash) {
	type part struct {
		*pack.Pack
		needed []plumbing.Hash
	}
	parts := make([]part, 0, len(s.packs))
	for _, p := range s.packs {
		parts = append(parts, part{p, p.Those(needed)})
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
		case i <= last, 2*len(p.needed) < p.Len():
			copied = append(copied, p.needed...)
		default:
			stay = append(stay, p.Pack)
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
		if !seen[hash] && !s.Has(hash) {
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
	return s.reach(ctx, func(ctx context.Context, from wire.Protocol) error {
		// Another writer may have needed them meanwhile.
		for wants := range slices.Chunk(s.missing(hashes), maxWants) {
			if err := s.take(ctx, from, wants, below); err != nil {
				return err
			}
		}
		if left := s.missing(hashes); len(left) > 0 {
			return fmt.Errorf("%w: %s of commit %s", pack.ErrIncomplete, left[0], s.tip.Commit)
		}
		return nil
	})
}

// take fetches objects, or the whole commit from a server that sends nothing less.
func (s *store) take(ctx context.Context, from wire.Protocol, wants []plumbing.Hash, below bool) error {
	p, err := from.Objects(ctx, wants, below)
	switch {
	case errors.Is(err, wire.ErrMoved):
		return s.takeWhole(ctx, from)
	case err != nil:
		return err
	}
	s.add(p)
	return nil
}

func (s *store) takeWhole(ctx context.Context, from wire.Protocol) error {
	p, err := from.Whole(ctx, s.tip)
	if errors.Is(err, wire.ErrMoved) {
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

func (s *store) add(p *pack.Pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = append(s.packs, p)
}

// become puts a pack with everything in the place of all that was held.
func (s *store) become(p *pack.Pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.whole, s.older, s.kept = []*pack.Pack{p}, p, nil, nil
}

// complete returns all files of the commit, and tag objects that lead to it, as
// one pack, which is what a checkout's .git needs. If the revision before was
// complete, only what is new is fetched, else everything in one request.
func (s *store) complete(ctx context.Context, c *object.Commit, tags []plumbing.Hash) (*pack.Pack, error) {
	p, renew := s.wholePack()
	switch {
	case p != nil: // perhaps taken when something else was needed
	case renew:
		if err := s.fill(ctx, c, tags); err != nil {
			return nil, err
		}
		p, err := pack.OfCommit(ctx, s, c, tags)
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
	if err := pack.CheckWhole(ctx, p, c); err != nil {
		s.forget()
		return nil, err
	}
	return p, nil
}

// forget lets go of all that is held, since it is not what the server was asked for.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.whole, s.older, s.kept, s.below = nil, nil, nil, nil, nil
}

// wholePack returns the pack that has all files, nil if none has, and whether the
// revision before had one.
func (s *store) wholePack() (p *pack.Pack, renew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, s.older != nil && s.older.isWhole()
}

func (s *store) isWhole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole != nil
}

// fill fetches everything that is missing.
func (s *store) fill(ctx context.Context, c *object.Commit, tags []plumbing.Hash) error {
	if err := s.lists(ctx, c.TreeHash); err != nil {
		return err
	}
	var all []plumbing.Hash
	err := pack.WalkTrees(ctx, s, c.TreeHash, func(hash plumbing.Hash) error {
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
	return s.reach(ctx, func(ctx context.Context, from wire.Protocol) error {
		p, err := from.TagObjects(ctx, tips)
		if err == nil && p != nil {
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
// the one they are in is. It does not look again below trees of which all are.
func (s *store) missingTrees(root plumbing.Hash) ([]plumbing.Hash, error) {
	var missing []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	var walk func(tree plumbing.Hash, depth int64) error
	walk = func(tree plumbing.Hash, depth int64) error {
		if seen[tree] || s.holds(listed, tree) {
			return nil
		}
		seen[tree] = true
		if err := pack.CheckDepth(s, depth); err != nil {
			return err
		}
		if !s.Has(tree) {
			missing = append(missing, tree)
			return nil
		}
		entries, err := pack.ReadTree(s, tree)
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
	if err == nil && len(missing) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		for tree := range seen {
			s.learn(listed, tree)
		}
	}
	return missing, err
}

// lazy are the objects of a commit, which are fetched when they are read, while a
// context lasts.
type lazy struct {
	*store
	ctx context.Context
}

// Object implements pack.Objects.
func (l lazy) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if err := l.need(l.ctx, []plumbing.Hash{hash}, false); err != nil {
		return nil, err
	}
	return l.store.Object(hash)
}

// Size implements pack.Objects. Git does not say how large an object is without it.
func (l lazy) Size(hash plumbing.Hash) (int64, error) {
	if err := l.need(l.ctx, []plumbing.Hash{hash}, false); err != nil {
		return 0, err
	}
	return l.store.Size(hash)
}
