package wire

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

const (
	// idleTime is how long a connection stays open for the next request, which for a
	// new revision follows at once. So a Server needs no closing.
	idleTime = 10 * time.Second
	// maxBusy bounds how long a server is left alone because it asks for that.
	maxBusy = 15 * time.Minute
)

// Options say how a server is spoken to.
type Options struct {
	// Limits bound what the server sends.
	Limits limits.Limits
	// UserAgent names the program to the server.
	UserAgent string
	// Meter counts the traffic; nil counts nothing.
	Meter Meter
	// Silence is how long a connection may send or take nothing; 0 is a minute. A
	// server that computes something says so every 5 s.
	Silence time.Duration
}

// Target is where a repository is, and what opens it.
type Target struct {
	// URL has the scheme http, https or ssh, and no password.
	URL *url.URL
	// Credentials are sent over http and https, to the URL's own scheme, host and port
	// only; nil for none.
	Credentials *Credentials
	// Roots are the certificate authorities for https; nil for the system's.
	Roots *x509.CertPool
	// SSHKeyFile and SSHKnownHostsFile are a private key without a passphrase, and the
	// host keys that are trusted.
	SSHKeyFile, SSHKnownHostsFile string
}

// Protocol is a server in one version of the protocol.
type Protocol interface {
	// Refs lists the branches, tags and HEAD in scope, in one request. It may list more.
	Refs(context.Context, refs.Scope) (refs.List, error)
	// History returns the past of tips, without the content of commits. Of older, a
	// history that was fetched before, nothing is requested again.
	History(_ context.Context, tips []refs.Tag, older refs.History) (refs.History, error)
	// Commit returns a commit with as few of its files as the server can leave out,
	// and whether that is none.
	Commit(context.Context, refs.Tag) (p *pack.Pack, whole bool, err error)
	// Commits returns a commit and its ancestors, with as few of their files as can be,
	// and without what can be reached from some commits that we seem to have.
	Commits(_ context.Context, of refs.Tag, less ...plumbing.Hash) (Fetched, error)
	// Whole returns a commit with all its files, and tag objects that lead to it.
	Whole(context.Context, refs.Tag) (*pack.Pack, error)
	// Objects returns objects by their hashes, and with below the directories below them;
	// files that are not named are left out. ErrMoved if the server sends whole commits
	// only.
	Objects(_ context.Context, wants []plumbing.Hash, below bool) (*pack.Pack, error)
	// TagObjects returns tag objects that lead to a commit that is held; nil if the
	// server cannot send them alone.
	TagObjects(context.Context, []plumbing.Hash) (*pack.Pack, error)
}

// transport carries git's protocol to a server and back, in whichever version the
// server chooses.
type transport interface {
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

// Fetched is the answer to a fetch.
type Fetched struct {
	Pack *pack.Pack
	// Shallow are the commits whose parents were left out.
	Shallow map[plumbing.Hash]bool
}

// learned is what a server turned out to support, which is not asked again.
type learned struct {
	// refused is how many of the filters it did not take.
	refused int
	// found is where a repository was found over http; nil if that has to be asked.
	found *place
}

// Server is a git server, and the way to it. One at a time uses it: a poll, or the
// files of a revision, which outlive the poll.
type Server struct {
	options Options
	turn    chan struct{} // has room for the one whose turn it is, who uses the rest

	target    Target    // of the last poll
	transport transport // nil before the first poll
	protocol  Protocol  // nil before the server was greeted
	learned   learned
	hangUp    *time.Timer // closes the connection; nil while there is none
	silence   silence
	busyUntil time.Time // when a server that is busy may be asked again
}

// New returns a server that was not spoken to yet.
func New(o Options) *Server {
	if o.Meter == nil {
		o.Meter = unmetered{}
	}
	if o.Silence == 0 {
		o.Silence = time.Minute
	}
	return &Server{target: Target{URL: new(url.URL)}, options: o, turn: make(chan struct{}, 1), silence: silence{most: o.Silence}}
}

// Poll speaks to the server as target says from now on. do lists the refs first, which
// greets the server. What is remembered of it may be out of date: an answer that does
// not fit is a reason to greet it again. The error is in words for a person.
func (s *Server) Poll(ctx context.Context, to Target, do func(context.Context, Protocol) error) error {
	return s.inTurn(ctx, func() error {
		if s.transport != nil {
			s.transport.close()
		}
		s.target, s.protocol = to, nil
		connect := dialer{s.options.Meter, &s.silence}
		if to.URL.Scheme == "ssh" {
			s.transport = &sshTransport{to: to, limits: s.options.Limits, dialer: connect}
		} else {
			s.transport = newHTTPTransport(to, s.options, &s.learned, connect)
		}
		return do(ctx, &polling{server: s})
	})
}

// Use speaks to the server as it was last polled. The error is in words for a person.
func (s *Server) Use(ctx context.Context, do func(context.Context, Protocol) error) error {
	return s.inTurn(ctx, func() error {
		if s.transport == nil {
			return errors.New("the server was not polled yet")
		}
		if s.protocol == nil { // the last poll did not get far
			if err := s.greet(ctx); err != nil {
				return err
			}
		}
		err := do(ctx, s.protocol)
		if ctx.Err() == nil && (errors.Is(err, pack.ErrCutOff) || errors.Is(err, io.EOF)) {
			// The connection may have ended while it was idle.
			s.transport.close()
			err = do(ctx, s.protocol)
		}
		return err
	})
}

// inTurn waits for its turn. While a server wants to be left alone, there is none.
func (s *Server) inTurn(ctx context.Context, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if wait := time.Until(s.busyUntil); wait > 0 {
		return fmt.Errorf("the server is busy, and wants to be left alone for another %s", wait.Round(time.Second))
	}
	if s.hangUp != nil {
		s.hangUp.Stop()
	}
	s.silence.fallen.Store(false)
	err := do()
	var status *statusError
	if errors.As(err, &status) && status.busy() {
		s.busyUntil = time.Now().Add(min(status.retryAfter, maxBusy))
	}
	if s.transport != nil {
		s.transport.rest()
		s.hangUp = time.AfterFunc(idleTime, s.CloseIdle)
	}
	return s.explain(err)
}

// CloseIdle closes the connection, unless it is in use. The next request opens another.
func (s *Server) CloseIdle() {
	select {
	case s.turn <- struct{}{}:
		s.transport.close()
		<-s.turn
	default:
	}
}

// greet greets the server, and speaks to it in the version of its choice from then on.
func (s *Server) greet(ctx context.Context) error {
	greeted, err := s.transport.greet(ctx)
	if err != nil {
		return err
	}
	with := exchange{s.transport, strings.Join(strings.Fields(s.options.UserAgent), "/"), s.options.Limits}
	if greeted.can == nil {
		listed, err := advertised(greeted.adv)
		s.protocol = &v0{exchange: with, adv: greeted.adv, listed: listed}
		return err
	}
	if format, named := greeted.can["object-format"]; named && format != sha1Format {
		return fmt.Errorf("its objects are named by %s; only %s is known here", format, sha1Format)
	}
	s.protocol = &v2{exchange: with, can: greeted.can, learned: &s.learned}
	return nil
}

// exchange is what both versions of the protocol need. In agent, a space would end the
// name.
type exchange struct {
	transport
	agent  string
	limits limits.Limits
}

// polling is the protocol that a server turns out to speak when refs are listed.
type polling struct {
	Protocol
	server *Server
}

// Refs implements Protocol.
func (p *polling) Refs(ctx context.Context, of refs.Scope) (refs.List, error) {
	listed, err := p.ask(ctx, of)
	if err != nil && unexpected(err) && p.server.transport.forget() {
		return p.ask(ctx, of)
	}
	return listed, err
}

func (p *polling) ask(ctx context.Context, of refs.Scope) (refs.List, error) {
	if err := p.server.greet(ctx); err != nil {
		return refs.List{}, err
	}
	p.Protocol = p.server.protocol
	return p.Protocol.Refs(ctx, of)
}

// unexpected reports whether an error may come from speaking to a server as it was.
// A server that is busy or down is not asked twice.
func unexpected(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return !status.busy()
	}
	var remote *remoteError
	return errors.As(err, &remote) || errors.Is(err, errNotGit) || errors.Is(err, pack.ErrCutOff)
}

// only returns the commit that tip leads to out of a whole repository.
func only(ctx context.Context, listed refs.List, full *pack.Pack, of refs.Tag) (*pack.Pack, error) {
	if !full.Has(of.Tip) {
		return nil, listed.NoCommit(of.Tip.String())
	}
	commit, err := pack.ReadCommit(full, of.Tip)
	if err != nil {
		return nil, err
	}
	var tags []plumbing.Hash
	for _, t := range listed.Tags {
		if t.Commit == commit.Hash {
			tags = append(tags, t.Tip)
		}
	}
	return pack.OfCommit(ctx, full, commit, tags)
}

// addCommits adds the commits of a pack to a history.
func addCommits(h refs.History, p *pack.Pack) error {
	for _, hash := range p.Commits {
		c, err := pack.ReadCommit(p, hash)
		if err != nil {
			return err
		}
		h.Add(c)
	}
	return nil
}

// hashes returns the tips of tags.
func hashes(of []refs.Tag) []plumbing.Hash {
	out := make([]plumbing.Hash, 0, len(of))
	for _, t := range of {
		out = append(out, t.Tip)
	}
	return out
}
