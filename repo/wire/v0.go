package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

// v0 is a server that speaks git's pack protocol in version 0
// (gitprotocol-pack(5)), as every server does: it begins with all its refs.
type v0 struct {
	exchange

	listed refs.List
	adv    *packp.AdvRefs
	// full is the whole repository, where that had to be fetched during this
	// poll; nil otherwise.
	full *pack.Pack
}

// Refs implements Protocol. All of them came with the greeting.
func (s *v0) Refs(context.Context, refs.Scope) (refs.List, error) { return s.listed, nil }

// History implements Protocol. A server that can filter sends bare commits; one
// that cannot sends everything, of which the rest is thrown away.
func (s *v0) History(ctx context.Context, tips []refs.Tag, older refs.History) (refs.History, error) {
	a, err := s.past(ctx, tips, older.Tips)
	if err != nil {
		return refs.History{}, err
	}
	if !s.can(capability.Filter) && len(older.Tips) == 0 {
		s.full = a.Pack
	}
	got := refs.NewHistory(tips)
	if err := addCommits(got, a.Pack); err != nil {
		return refs.History{}, err
	}
	return got.Completed(older, a.Shallow)
}

// past fetches all commits that can be reached from some tips and not from others.
func (s *v0) past(ctx context.Context, of []refs.Tag, less []plumbing.Hash) (Fetched, error) {
	req := s.newRequest(of)
	req.Haves = less
	if s.can(capability.Filter) {
		req.Filter = "tree:0"
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return Fetched{}, err
		}
	}
	p, err := s.fetch(ctx, req)
	out := Fetched{Pack: p, Shallow: map[plumbing.Hash]bool{}}
	for _, hash := range s.adv.Shallows {
		out.Shallow[hash] = true
	}
	return out, err
}

// Commits implements Protocol. A commit that is not handed out by its hash is
// among those of all that refs point at, unless it was replaced.
func (s *v0) Commits(ctx context.Context, of refs.Tag, less ...plumbing.Hash) (Fetched, error) {
	if s.handsOut(of.Tip) {
		return s.past(ctx, []refs.Tag{of}, less)
	}
	return s.past(ctx, s.listed.Tips(), less)
}

// Commit implements Protocol.
func (s *v0) Commit(ctx context.Context, of refs.Tag) (p *pack.Pack, whole bool, err error) {
	p, err = s.Whole(ctx, of)
	return p, true, err
}

// Objects implements Protocol.
func (s *v0) Objects(context.Context, []plumbing.Hash, bool) (*pack.Pack, error) {
	return nil, ErrMoved
}

// TagObjects implements Protocol: they came with the commit.
func (s *v0) TagObjects(context.Context, []plumbing.Hash) (*pack.Pack, error) { return nil, nil }

// Whole implements Protocol: at depth 1, unless the commit is one that the
// server does not hand out by its hash. Then there is only everything.
func (s *v0) Whole(ctx context.Context, of refs.Tag) (*pack.Pack, error) {
	if s.full == nil && s.handsOut(of.Tip) {
		req := s.newRequest([]refs.Tag{of})
		if s.can(capability.Shallow) {
			req.Depth = packp.DepthCommits(1)
			if err := req.Capabilities.Set(capability.Shallow); err != nil {
				return nil, err
			}
		}
		p, err := s.fetch(ctx, req)
		if errors.Is(err, ErrMoved) && !s.isTip(of.Tip) {
			err = s.listed.NoCommit(of.Tip.String())
		}
		return p, err
	}
	if s.full == nil {
		full, err := s.fetch(ctx, s.newRequest(s.listed.Tips()))
		if err != nil {
			return nil, err
		}
		s.full = full
	}
	return only(ctx, s.listed, s.full, of)
}

func (s *v0) can(c capability.Capability) bool {
	return s.adv.Capabilities.Supports(c)
}

// handsOut reports whether a server answers a request for that object: it does for
// what a ref points at, and for more if it is configured to.
func (s *v0) handsOut(tip plumbing.Hash) bool {
	return s.can(capability.AllowReachableSHA1InWant) || s.isTip(tip)
}

// isTip reports whether a ref points there.
func (s *v0) isTip(tip plumbing.Hash) bool {
	return slices.Contains(slices.Collect(maps.Values(s.adv.References)), tip) ||
		(s.adv.Head != nil && *s.adv.Head == tip)
}

// newRequest asks for some tips and all that can be reached from them.
func (s *v0) newRequest(tips []refs.Tag) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequestFromCapabilities(s.adv.Capabilities)
	for _, t := range tips {
		req.Wants = append(req.Wants, t.Tip)
	}
	// A thin pack leaves out objects that we are thought to have.
	req.Capabilities.Delete(capability.ThinPack)
	for _, c := range []capability.Capability{capability.IncludeTag, capability.NoProgress} {
		if s.can(c) {
			_ = req.Capabilities.Set(c) // fails only for those that take a value
		}
	}
	if s.can(capability.Agent) {
		_ = req.Capabilities.Set(capability.Agent, s.agent)
	}
	return req
}

// fetch sends a request and reads the pack that answers it.
func (s *v0) fetch(ctx context.Context, req *packp.UploadPackRequest) (*pack.Pack, error) {
	if len(req.Wants) == 0 {
		return nil, errors.New("the repository is empty")
	}
	body, err := encode(req)
	if err != nil {
		return nil, err
	}
	answer, err := s.request(ctx, body)
	if err != nil {
		return nil, err
	}
	packed := boundedBy(s.limits, limits.Pack, tooMuch, answer)
	data, err := readPack(packed, req)
	if err = errors.Join(packed.or(err), answer.Close()); err != nil {
		return nil, err
	}
	return pack.New(ctx, data, s.limits)
}

func encode(req *packp.UploadPackRequest) ([]byte, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := req.UploadRequest.Encode(&body); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(&body, false); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(&body).EncodeString("done\n"); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// readPack reads an answer: what is shallow, what is in common, the pack.
func readPack(answer io.ReadCloser, req *packp.UploadPackRequest) (*pack.Chunks, error) {
	response := packp.NewUploadPackResponse(req)
	if err := response.Decode(answer); err != nil {
		return nil, serverError(err)
	}
	var packed io.Reader = response
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		packed = sideband.NewDemuxer(sideband.Sideband64k, response)
	case req.Capabilities.Supports(capability.Sideband):
		packed = sideband.NewDemuxer(sideband.Sideband, response)
	}
	data := new(pack.Chunks)
	if _, err := io.Copy(data, packed); err != nil {
		return nil, serverError(err)
	}
	data.Trim()
	return data, nil
}
