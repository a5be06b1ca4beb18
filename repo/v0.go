package repo

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

	"github.com/kubesync/kubesync/repo/limits"
)

// v0 is a server that speaks git's pack protocol in version 0
// (gitprotocol-pack(5)), as every server does: it begins with all its refs.
type v0 struct {
	wire
	agent  string
	limits limits.Limits

	listed refs
	adv    *packp.AdvRefs
	// full is the whole repository, where that had to be fetched during this
	// poll; nil otherwise.
	full *pack
}

// refs implements source. It was told all of them when the conversation began.
func (s *v0) refs(context.Context, scope) (refs, error) { return s.listed, nil }

// history implements source. A server that can filter sends bare commits; one
// that cannot sends everything, of which the rest is thrown away.
func (s *v0) history(ctx context.Context, tips []tag, older history) (history, error) {
	a, err := s.past(ctx, tips, older.tips)
	if err != nil {
		return history{}, err
	}
	if !s.can(capability.Filter) && len(older.tips) == 0 {
		s.full = a.pack
	}
	got := newHistory(tips)
	if err := a.pack.addCommits(got); err != nil {
		return history{}, err
	}
	return got.completed(older, a.shallow)
}

// past fetches all commits that can be reached from some tips and not from others.
func (s *v0) past(ctx context.Context, of []tag, less []plumbing.Hash) (fetched, error) {
	req := s.newRequest(of)
	req.Haves = less
	if s.can(capability.Filter) {
		req.Filter = "tree:0"
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return fetched{}, err
		}
	}
	p, err := s.fetch(ctx, req)
	out := fetched{pack: p, shallow: map[plumbing.Hash]bool{}}
	for _, hash := range s.adv.Shallows {
		out.shallow[hash] = true
	}
	return out, err
}

// commits implements server's speaker. A commit that is not handed out by its hash is
// among those of all that refs point at, unless it was replaced.
func (s *v0) commits(ctx context.Context, of tag, less ...plumbing.Hash) (fetched, error) {
	if s.handsOut(of.tip) {
		return s.past(ctx, []tag{of}, less)
	}
	return s.past(ctx, s.listed.tips(), less)
}

// objects implements source.
func (s *v0) objects(ctx context.Context, sel selection) (objects, error) {
	p, err := s.whole(ctx, sel.tag)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// whole implements server's speaker: at depth 1, unless the commit is one that the
// server does not hand out by its hash. Then there is only everything.
func (s *v0) whole(ctx context.Context, of tag) (*pack, error) {
	if s.full == nil && s.handsOut(of.tip) {
		req := s.newRequest([]tag{of})
		if s.can(capability.Shallow) {
			req.Depth = packp.DepthCommits(1)
			if err := req.Capabilities.Set(capability.Shallow); err != nil {
				return nil, err
			}
		}
		p, err := s.fetch(ctx, req)
		if errors.Is(err, errMoved) && !s.isTip(of.tip) {
			err = s.listed.noCommit(of.tip.String())
		}
		return p, err
	}
	if s.full == nil {
		full, err := s.fetch(ctx, s.newRequest(s.listed.tips()))
		if err != nil {
			return nil, err
		}
		s.full = full
	}
	return s.listed.only(ctx, s.full, of)
}

func (s *v0) can(c capability.Capability) bool {
	return s.adv.Capabilities.Supports(c)
}

// handsOut tells whether a server answers a request for that object: it does for
// what a ref points at, and for more if it was told to.
func (s *v0) handsOut(tip plumbing.Hash) bool {
	return s.can(capability.AllowReachableSHA1InWant) || s.isTip(tip)
}

// isTip tells whether a ref points there.
func (s *v0) isTip(tip plumbing.Hash) bool {
	return slices.Contains(slices.Collect(maps.Values(s.adv.References)), tip) ||
		(s.adv.Head != nil && *s.adv.Head == tip)
}

// newRequest asks for some tips and all that can be reached from them.
func (s *v0) newRequest(tips []tag) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequestFromCapabilities(s.adv.Capabilities)
	for _, t := range tips {
		req.Wants = append(req.Wants, t.tip)
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
func (s *v0) fetch(ctx context.Context, req *packp.UploadPackRequest) (*pack, error) {
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
	return newPack(ctx, data, s.limits)
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
func readPack(answer io.ReadCloser, req *packp.UploadPackRequest) (*chunks, error) {
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
	data := new(chunks)
	if _, err := io.Copy(data, packed); err != nil {
		return nil, serverError(err)
	}
	data.trim()
	return data, nil
}
