package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

// filters are how a server is asked for a commit without its files, the one that
// saves the most requests first: the directory at the root and nothing else; not
// even that, which hosting sites take that shun the former; all directories. The
// last one is none, for servers that cannot leave out anything.
var filters = []string{"tree:1", "tree:0", "blob:none", ""}

// v2 is a server that speaks protocol version 2 (gitprotocol-v2(5)).
type v2 struct {
	exchange
	can     capabilities
	learned *learned

	// listed are the refs of the last listing, full is the whole repository where
	// that had to be fetched during this poll.
	listed refs.List
	full   *pack.Pack
}

// Refs implements Protocol.
func (s *v2) Refs(ctx context.Context, of refs.Scope) (refs.List, error) {
	answer, err := s.request(ctx, listRequest(s.header("ls-refs"), of.Prefixes()))
	if err != nil {
		return refs.List{}, err
	}
	list := boundedBy(s.limits, limits.Refs, "its list of branches and tags is too long", answer)
	listed, err := readListing(list, of)
	if err = errors.Join(list.or(err), answer.Close()); err != nil {
		s.close()
		return refs.List{}, err
	}
	s.listed = listed
	return listed, nil
}

// History implements Protocol.
func (s *v2) History(ctx context.Context, tips []refs.Tag, older refs.History) (refs.History, error) {
	req := fetchRequest{wants: hashes(tips), haves: older.Tips, filter: s.treeless()}
	req.tags = req.filter == "" // then the rest is used, too
	a, err := s.fetch(ctx, req)
	if s.refuses(err) {
		return withLess(s, func() (refs.History, error) { return s.History(ctx, tips, older) })
	}
	if err != nil {
		return refs.History{}, err
	}
	if req.filter == "" && len(req.haves) == 0 {
		s.full = a.Pack
	}
	got := refs.NewHistory(tips)
	if err := addCommits(got, a.Pack); err != nil {
		return refs.History{}, err
	}
	return got.Completed(older, a.Shallow)
}

// Commit implements Protocol.
func (s *v2) Commit(ctx context.Context, of refs.Tag) (p *pack.Pack, whole bool, err error) {
	filter := s.filter()
	if s.full != nil || filter == "" {
		p, err := s.Whole(ctx, of)
		return p, true, err
	}
	a, err := s.fetch(ctx, fetchRequest{wants: []plumbing.Hash{of.Tip}, depth: 1, filter: filter})
	if s.refuses(err) {
		p, err = withLess(s, func() (p *pack.Pack, err error) {
			p, whole, err = s.Commit(ctx, of)
			return p, err
		})
		return p, whole, err
	}
	if err != nil {
		return nil, false, s.notThere(ctx, of, err)
	}
	if _, err := pack.ReadCommit(a.Pack, of.Tip); err != nil {
		return nil, false, fmt.Errorf("%w: %w", pack.ErrIncomplete, err)
	}
	return a.Pack, false, nil
}

// Whole implements Protocol.
func (s *v2) Whole(ctx context.Context, of refs.Tag) (*pack.Pack, error) {
	if s.full != nil {
		return only(ctx, s.listed, s.full, of)
	}
	req := fetchRequest{wants: []plumbing.Hash{of.Tip}, tags: true}
	if s.can.has("fetch", "shallow") {
		req.depth = 1
	}
	a, err := s.fetch(ctx, req)
	if err != nil {
		return nil, s.notThere(ctx, of, err)
	}
	return a.Pack, nil
}

// Objects implements Protocol.
func (s *v2) Objects(ctx context.Context, wants []plumbing.Hash, below bool) (*pack.Pack, error) {
	filter := s.treeless()
	switch {
	case filter == "":
		return nil, ErrMoved
	case below:
		filter = "blob:none"
	}
	a, err := s.fetch(ctx, fetchRequest{wants: wants, filter: filter})
	if s.refuses(err) {
		return withLess(s, func() (*pack.Pack, error) { return s.Objects(ctx, wants, below) })
	}
	return a.Pack, err
}

// Commits implements Protocol.
func (s *v2) Commits(ctx context.Context, of refs.Tag, less ...plumbing.Hash) (Fetched, error) {
	a, err := s.fetch(ctx, fetchRequest{wants: []plumbing.Hash{of.Tip}, haves: less, filter: s.treeless()})
	if s.refuses(err) {
		return withLess(s, func() (Fetched, error) { return s.Commits(ctx, of, less...) })
	}
	return a, err
}

// TagObjects implements Protocol.
func (s *v2) TagObjects(ctx context.Context, tips []plumbing.Hash) (*pack.Pack, error) {
	a, err := s.fetch(ctx, fetchRequest{wants: tips, depth: 1, filter: s.treeless()})
	return a.Pack, err
}

// filter is the best that the server takes for a commit, empty if it takes none.
func (s *v2) filter() string {
	if !s.can.has("fetch", "filter") {
		return ""
	}
	return filters[s.learned.refused]
}

// treeless is the filter for objects that are asked for by their hashes: they are
// sent whatever it leaves out.
func (s *v2) treeless() string {
	if filter := s.filter(); filter != "tree:1" {
		return filter
	}
	return "tree:0"
}

// refuses reports whether an error may be that of a server which does not like the filter.
func (s *v2) refuses(err error) bool {
	var remote *remoteError
	return errors.As(err, &remote) && strings.Contains(remote.text, "filter") && s.filter() != ""
}

// withLess tries with the next filter in line. That the server takes none better is
// remembered only if that goes well: else the error was not for the filter.
func withLess[T any](s *v2, try func() (T, error)) (T, error) {
	s.learned.refused++
	got, err := try()
	if err != nil {
		s.learned.refused--
	}
	return got, err
}

// notThere turns the refusal of a commit that no ref points at into an error that
// says what there is. One that a ref pointed at has moved.
func (s *v2) notThere(ctx context.Context, of refs.Tag, err error) error {
	if !errors.Is(err, ErrMoved) || slices.Contains(hashes(s.listed.Tips()), of.Tip) {
		return err
	}
	listed, err := s.Refs(ctx, refs.Scope{All: true})
	if err != nil {
		return err
	}
	return listed.NoCommit(of.Tip.String())
}

func (s *v2) fetch(ctx context.Context, req fetchRequest) (Fetched, error) {
	if len(req.wants) == 0 {
		return Fetched{}, errors.New("the repository is empty")
	}
	answer, err := s.request(ctx, req.encode(s.header("fetch")))
	if err != nil {
		return Fetched{}, err
	}
	packed := boundedBy(s.limits, limits.Pack, tooMuch, answer)
	data, shallow, err := readFetched(packed, s.limits)
	if err = errors.Join(packed.or(err), answer.Close()); err != nil {
		s.close() // what is left of the answer would be taken for the next one's
		return Fetched{}, err
	}
	p, err := pack.New(ctx, data, s.limits)
	return Fetched{Pack: p, Shallow: shallow}, err
}

// tooMuch is what is wrong with an answer that is larger than allowed.
const tooMuch = "the server sends too much"

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
