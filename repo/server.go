package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// wire carries git's pack protocol (gitprotocol-pack(5)) to a server and back.
type wire interface {
	// advertise asks what the repository has.
	advertise(context.Context) (*packp.AdvRefs, error)
	// request sends what is wanted and returns the answer.
	request(_ context.Context, body []byte) (io.ReadCloser, error)
	// close ends the conversation.
	close()
}

// server is the source that a git server is, in protocol version 0, which every
// server speaks.
type server struct {
	wire
	agent string

	listed refs
	adv    *packp.AdvRefs
	// full is the whole repository, where that had to be fetched during this
	// poll; nil otherwise.
	full *pack
}

// refs implements source.
func (s *server) refs(ctx context.Context) (refs, error) {
	adv, err := s.advertise(ctx)
	if err != nil {
		return refs{}, err
	}
	s.adv, s.listed = adv, advertised(adv)
	return s.listed, nil
}

// history implements source. A server that can filter sends bare commits; one
// that cannot sends everything, of which the rest is thrown away.
func (s *server) history(ctx context.Context, tips []tag, older history) (history, error) {
	req := s.newRequest(tips)
	req.Haves = older.tips
	filtered := s.can(capability.Filter)
	if filtered {
		req.Filter = "tree:0"
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return history{}, err
		}
	}
	p, err := s.fetch(ctx, req)
	if err != nil {
		return history{}, err
	}
	if !filtered && len(req.Haves) == 0 {
		s.full = p
	}
	got := newHistory(tips)
	if err := p.addCommits(got); err != nil {
		return history{}, err
	}
	shallow := map[plumbing.Hash]bool{}
	for _, hash := range s.adv.Shallows {
		shallow[hash] = true
	}
	return got.completed(older, shallow)
}

// objects implements source: at depth 1, unless the commit is one that the
// server does not hand out by its hash. Then there is only everything.
func (s *server) objects(ctx context.Context, sel selection) (objects, error) {
	if s.full == nil && s.handsOut(sel.tip) {
		req := s.newRequest([]tag{sel.tag})
		if s.can(capability.Shallow) {
			req.Depth = packp.DepthCommits(1)
			if err := req.Capabilities.Set(capability.Shallow); err != nil {
				return nil, err
			}
		}
		p, err := s.fetch(ctx, req)
		if errors.Is(err, errMoved) && !s.isTip(sel.tip) {
			err = s.listed.noCommit(sel.tip.String())
		}
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	if s.full == nil {
		full, err := s.fetch(ctx, s.newRequest(s.listed.tips()))
		if err != nil {
			return nil, err
		}
		s.full = full
	}
	if !s.full.has(sel.tip) {
		return nil, s.listed.noCommit(sel.tip.String())
	}
	commit, err := readCommit(s.full, sel.tip)
	if err != nil {
		return nil, err
	}
	p, err := packCommit(ctx, s.full, commit, s.listed.tagsOf(s.full, commit.Hash))
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s *server) can(c capability.Capability) bool {
	return s.adv.Capabilities.Supports(c)
}

// handsOut tells whether a server answers a request for that object: it does for
// what a ref points at, and for more if it was told to.
func (s *server) handsOut(tip plumbing.Hash) bool {
	return s.can(capability.AllowReachableSHA1InWant) || s.isTip(tip)
}

// isTip tells whether a ref points there.
func (s *server) isTip(tip plumbing.Hash) bool {
	return slices.Contains(slices.Collect(maps.Values(s.adv.References)), tip) ||
		(s.adv.Head != nil && *s.adv.Head == tip)
}

// newRequest asks for some tips and all that can be reached from them.
func (s *server) newRequest(tips []tag) *packp.UploadPackRequest {
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
func (s *server) fetch(ctx context.Context, req *packp.UploadPackRequest) (*pack, error) {
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
	data, err := readPack(answer, req)
	if err = errors.Join(err, answer.Close()); err != nil {
		return nil, err
	}
	return newPack(ctx, data)
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
	return data, nil
}

// serverError makes out what a server meant to say.
func serverError(err error) error {
	var line *pktline.ErrorLine
	switch {
	case errors.As(err, &line) && strings.Contains(line.Text, "not our ref"):
		return errMoved
	case errors.As(err, &line):
		return &saidError{line.Text}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pktline.ErrInvalidPktLen):
		return fmt.Errorf("%w (%w)", errCutOff, err)
	default:
		return err
	}
}

// saidError is an error in the server's own words.
type saidError struct{ text string }

func (e *saidError) Error() string { return "the server says: " + e.text }

// agent is how kubesync names itself in the protocol, where a space would end
// the name.
func agent(userAgent string) string {
	return strings.Join(strings.Fields(userAgent), "/")
}

// decodeAdvertisement reads the list of refs. An empty repository is no error
// here: it has none.
func decodeAdvertisement(r io.Reader) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(r)
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return packp.NewAdvRefs(), nil
	}
	if err != nil {
		return nil, serverError(err)
	}
	return adv, nil
}
