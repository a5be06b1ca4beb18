package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/repo/limits"
)

// filters are how a server is asked for a commit without its files, the one that
// saves the most requests first: the directory at the root and nothing else; not
// even that, which hosting sites take that shun the former; all directories. The
// last one is none, for servers that cannot leave out anything.
var filters = []string{"tree:1", "tree:0", "blob:none", ""}

// v2 is a server that speaks protocol version 2 (gitprotocol-v2(5)).
type v2 struct {
	wire
	agent  string
	can    capabilities
	habits *habits
	limits limits.Limits

	// listed are the refs of the last listing, full is the whole repository where
	// that had to be fetched during this poll.
	listed refs
	full   *pack
}

// refs implements speaker.
func (s *v2) refs(ctx context.Context, of scope) (refs, error) {
	answer, err := s.request(ctx, listRequest(s.header("ls-refs"), of.prefixes()))
	if err != nil {
		return refs{}, err
	}
	list := boundedBy(s.limits, limits.Refs, "its list of branches and tags is too long", answer)
	listed, err := readListing(list, of)
	if err = errors.Join(list.or(err), answer.Close()); err != nil {
		s.close()
		return refs{}, err
	}
	s.listed = listed
	return listed, nil
}

// history implements speaker.
func (s *v2) history(ctx context.Context, tips []tag, older history) (history, error) {
	req := fetchRequest{wants: hashes(tips), haves: older.tips, filter: s.treeless()}
	req.tags = req.filter == "" // then the rest is used, too
	a, err := s.fetch(ctx, req)
	if s.refuses(err) {
		return withLess(s, func() (history, error) { return s.history(ctx, tips, older) })
	}
	if err != nil {
		return history{}, err
	}
	if req.filter == "" && len(req.haves) == 0 {
		s.full = a.pack
	}
	got := newHistory(tips)
	if err := a.pack.addCommits(got); err != nil {
		return history{}, err
	}
	return got.completed(older, a.shallow)
}

// objects implements speaker: the commit, and of its files what the filter lets
// through. The rest is fetched when it is needed.
func (s *v2) objects(ctx context.Context, sel selection) (objects, error) {
	filter := s.filter()
	if s.full != nil || filter == "" {
		p, err := s.whole(ctx, sel.tag)
		if err != nil {
			return nil, err // and no pack that is nil
		}
		return p, nil
	}
	a, err := s.fetch(ctx, fetchRequest{wants: []plumbing.Hash{sel.tip}, depth: 1, filter: filter})
	if s.refuses(err) {
		return withLess(s, func() (objects, error) { return s.objects(ctx, sel) })
	}
	if err != nil {
		return nil, s.notThere(ctx, sel.tag, err)
	}
	if _, err := readCommit(a.pack, sel.tip); err != nil {
		return nil, fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return &store{tip: sel.tag, limits: s.limits, packs: []*pack{a.pack}}, nil
}

// whole implements speaker.
func (s *v2) whole(ctx context.Context, of tag) (*pack, error) {
	if s.full != nil {
		return s.listed.only(ctx, s.full, of)
	}
	req := fetchRequest{wants: []plumbing.Hash{of.tip}, tags: true}
	if s.can.has("fetch", "shallow") {
		req.depth = 1
	}
	a, err := s.fetch(ctx, req)
	if err != nil {
		return nil, s.notThere(ctx, of, err)
	}
	return a.pack, nil
}

// take returns objects by their hashes, and of directories, if below is set, also
// those below them; files that are not named are left out.
func (s *v2) take(ctx context.Context, wants []plumbing.Hash, below bool) (*pack, error) {
	filter := s.treeless()
	if below && filter != "" {
		filter = "blob:none"
	}
	a, err := s.fetch(ctx, fetchRequest{wants: wants, filter: filter})
	if s.refuses(err) {
		return withLess(s, func() (*pack, error) { return s.take(ctx, wants, below) })
	}
	return a.pack, err
}

// commits implements speaker.
func (s *v2) commits(ctx context.Context, of tag, less ...plumbing.Hash) (fetched, error) {
	a, err := s.fetch(ctx, fetchRequest{wants: []plumbing.Hash{of.tip}, haves: less, filter: s.treeless()})
	if s.refuses(err) {
		return withLess(s, func() (fetched, error) { return s.commits(ctx, of, less...) })
	}
	return a, err
}

// tagObjects returns annotated tags, which lead to a commit that is held.
func (s *v2) tagObjects(ctx context.Context, tips []plumbing.Hash) (*pack, error) {
	a, err := s.fetch(ctx, fetchRequest{wants: tips, depth: 1, filter: s.treeless()})
	return a.pack, err
}

// filter is the best that the server takes for a commit, empty if it takes none.
func (s *v2) filter() string {
	if !s.can.has("fetch", "filter") {
		return ""
	}
	return filters[s.habits.refused]
}

// treeless is the filter for objects that are asked for by their hashes: they are
// sent whatever it leaves out.
func (s *v2) treeless() string {
	if filter := s.filter(); filter != "tree:1" {
		return filter
	}
	return "tree:0"
}

// refuses tells whether an error may be that of a server which does not like the filter.
func (s *v2) refuses(err error) bool {
	var said *saidError
	return errors.As(err, &said) && strings.Contains(said.text, "filter") && s.filter() != ""
}

// withLess tries with the next filter in line. That the server takes none better is
// remembered only if that goes well: else the error was not for the filter.
func withLess[T any](s *v2, try func() (T, error)) (T, error) {
	s.habits.refused++
	got, err := try()
	if err != nil {
		s.habits.refused--
	}
	return got, err
}

// notThere turns the refusal of a commit that no ref points at into an error that
// says what there is. One that a ref pointed at has moved.
func (s *v2) notThere(ctx context.Context, of tag, err error) error {
	if !errors.Is(err, errMoved) || slices.Contains(hashes(s.listed.tips()), of.tip) {
		return err
	}
	listed, err := s.refs(ctx, scope{all: true})
	if err != nil {
		return err
	}
	return listed.noCommit(of.tip.String())
}

func (s *v2) fetch(ctx context.Context, req fetchRequest) (fetched, error) {
	if len(req.wants) == 0 {
		return fetched{}, errors.New("the repository is empty")
	}
	answer, err := s.request(ctx, req.encode(s.header("fetch")))
	if err != nil {
		return fetched{}, err
	}
	packed := boundedBy(s.limits, limits.Pack, tooMuch, answer)
	data, shallow, err := readFetched(packed, s.limits)
	if err = errors.Join(packed.or(err), answer.Close()); err != nil {
		s.close() // what is left of the answer would be taken for the next one's
		return fetched{}, err
	}
	p, err := newPack(ctx, data, s.limits)
	return fetched{pack: p, shallow: shallow}, err
}

// tooMuch is what is wrong with an answer that is larger than allowed.
const tooMuch = "the server sends too much"

// fetched is the answer to a fetch.
type fetched struct {
	pack *pack
	// shallow are the commits whose parents were left out.
	shallow map[plumbing.Hash]bool
}

func (s *v2) header(command string) []string {
	lines := []string{"command=" + command}
	if _, ok := s.can["agent"]; ok && s.agent != "" {
		lines = append(lines, "agent="+s.agent)
	}
	if _, ok := s.can["object-format"]; ok {
		lines = append(lines, "object-format="+sha1Format)
	}
	return lines
}
