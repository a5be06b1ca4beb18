package repo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/kubesync/kubesync/repo/limits"
)

// wire carries git's protocol to a server and back, in whichever version the
// server chooses.
type wire interface {
	// greet begins a conversation and returns what the server says first. In
	// version 2 that does not change, so it may be remembered from before.
	greet(context.Context) (greeting, error)
	// forget drops what greet remembered, so that the next one asks the server. It
	// is false if there is nothing to drop.
	forget() bool
	// request sends what is wanted and returns the answer.
	request(_ context.Context, body []byte) (io.ReadCloser, error)
	// rest lets go of the context of the last request, which bounded it.
	rest()
	// close ends the conversation. Another request begins a new one.
	close()
}

// greeting is what a server says first.
type greeting struct {
	adv *packp.AdvRefs // its refs, in version 0
	can capabilities   // what it knows to do, in version 2; else nil
}

// server is the source that a git server is.
type server struct {
	wire
	agent  string
	limits limits.Limits
	// habits are what was learned of the server before; nil for nothing.
	habits *habits
	// speaker is the server in the version it speaks; nil before it was greeted.
	speaker speaker
}

// speaker is a server in one version of the protocol.
type speaker interface {
	refs(context.Context, scope) (refs, error)
	history(_ context.Context, tips []tag, older history) (history, error)
	objects(context.Context, selection) (objects, error)
	// commits returns a commit and its ancestors, with as little of their files as can
	// be had, and without what can be reached from some commits that we seem to have.
	commits(_ context.Context, of tag, less ...plumbing.Hash) (fetched, error)
	// whole returns a commit with all its files.
	whole(context.Context, tag) (*pack, error)
}

// habits are what a server turned out to do, which is not asked again.
type habits struct {
	// refused is how many of the filters it did not take.
	refused int
	// found is where a repository was found over http; nil if that has to be asked.
	found *place
}

// hello greets the server, and speaks to it as it likes to from then on.
func (s *server) hello(ctx context.Context) error {
	said, err := s.greet(ctx)
	if err != nil {
		return err
	}
	if said.can == nil {
		listed, err := advertised(said.adv)
		if err != nil {
			return err
		}
		s.speaker = &v0{wire: s.wire, agent: s.agent, limits: s.limits, adv: said.adv, listed: listed}
		return nil
	}
	if format, told := said.can["object-format"]; told && format != sha1Format {
		return fmt.Errorf("its objects are named by %s; only %s is known here", format, sha1Format)
	}
	if s.habits == nil {
		s.habits = new(habits)
	}
	s.speaker = &v2{wire: s.wire, agent: s.agent, limits: s.limits, can: said.can, habits: s.habits}
	return nil
}

// refs implements source. What is remembered of a server may be out of date, so an
// answer that does not fit is a reason to greet it anew.
func (s *server) refs(ctx context.Context, of scope) (refs, error) {
	listed, err := s.ask(ctx, of)
	if err != nil && unexpected(err) && s.forget() {
		return s.ask(ctx, of)
	}
	return listed, err
}

func (s *server) ask(ctx context.Context, of scope) (refs, error) {
	if err := s.hello(ctx); err != nil {
		return refs{}, err
	}
	return s.speaker.refs(ctx, of)
}

// unexpected tells whether an error may come from speaking to a server as it was.
// A server that has enough, or nobody to answer, is not asked twice.
func unexpected(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.busy()
	}
	var said *saidError
	return errors.As(err, &said) || errors.Is(err, errNotGit) || errors.Is(err, errCutOff)
}

// history implements source.
func (s *server) history(ctx context.Context, tips []tag, older history) (history, error) {
	return s.speaker.history(ctx, tips, older)
}

// objects implements source.
func (s *server) objects(ctx context.Context, sel selection) (objects, error) {
	return s.speaker.objects(ctx, sel)
}

// only returns the commit that tip leads to out of a whole repository.
func (r refs) only(ctx context.Context, full *pack, of tag) (*pack, error) {
	if !full.has(of.tip) {
		return nil, r.noCommit(of.tip.String())
	}
	commit, err := readCommit(full, of.tip)
	if err != nil {
		return nil, err
	}
	return packCommit(ctx, full, commit, r.tagsOf(full, commit.Hash))
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

// service is what a smart http server says before everything else; in version 2
// some do, some do not.
const service = "001e# service=git-upload-pack\n0000"

// readGreeting reads what a server says first. The reader goes on to be used for
// what it says later, where that comes the same way.
func readGreeting(in *bufio.Reader) (greeting, error) {
	// No more is waited for than a server surely sends: one that has no refs in
	// version 0 says no more than that, and waits.
	start, _ := in.Peek(len(flushLine))
	if len(start) == len(flushLine) && !isHex(start) {
		said, _ := in.Peek(min(in.Buffered(), len(versionLine)))
		return greeting{}, garbled(string(said))
	}
	if string(start) != flushLine {
		start, _ = in.Peek(len(versionLine))
	}
	if strings.HasPrefix(service, string(start)) {
		if all, _ := in.Peek(len(service) + len(versionLine)); string(all) == service+versionLine {
			_, _ = in.Discard(len(service)) // it was just looked at
			start = all[len(service):]
		}
	}
	if string(start) == versionLine {
		can, err := readCapabilities(in)
		return greeting{can: can}, err
	}
	adv, err := readAdvertisement(in)
	return greeting{adv: adv}, err
}

// isHex tells the length of a packet from anything else.
func isHex(digits []byte) bool {
	return strings.Trim(string(digits), "0123456789abcdefABCDEF") == ""
}

// readAdvertisement reads the list of refs. An empty repository is no error
// here: it has none.
func readAdvertisement(r io.Reader) (*packp.AdvRefs, error) {
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

// hashes returns the tips of tags.
func hashes(of []tag) []plumbing.Hash {
	out := make([]plumbing.Hash, 0, len(of))
	for _, t := range of {
		out = append(out, t.tip)
	}
	return out
}
