package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/internal/revision"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
	"github.com/kubesync/kubesync/repo/wire"
)

// Options say what to read and how to get at it.
type Options struct {
	URL     URL
	Version Version
	// LastRef is the Ref of the revision that was synced last, by any process. Where
	// that is branch master, the zero Version and tag:latest stay with master even if
	// it is gone.
	LastRef string

	// Credentials is asked at every poll of an http or https URL, so that rotated
	// ones work; false is none, an error ends the poll. They are sent to the
	// URL's own scheme, host and port only. A password in the URL goes before
	// them. nil is none.
	Credentials func() (Credentials, bool, error)
	// CAFile and CADir hold the certificate authorities for https, in the place
	// of the system's; both empty: the system's.
	CAFile, CADir string
	// SSHKeyFile and SSHKnownHostsFile are needed for ssh: a private key without
	// a passphrase, and the host keys that are trusted.
	SSHKeyFile, SSHKnownHostsFile string

	// Timeout bounds one Resolve, and each fetch of what files are needed of it; 0
	// is no bound but the context's.
	Timeout time.Duration
	// Limits bound what a revision may cost; the zero value is the defaults.
	Limits limits.Limits
	// UserAgent names the program to servers, "kubesync" if empty.
	UserAgent string
	// Meter counts the traffic with the server; nil counts nothing.
	Meter Meter
	Log   zerolog.Logger

	silence time.Duration // as of wire.Options, for tests
}

// Credentials are what a server asks for over http and https.
type Credentials = wire.Credentials

// Meter counts the traffic with a server.
type Meter = wire.Meter

// Repo is a git repository and the revision of it that was last resolved. It is
// for one goroutine at a time.
type Repo struct {
	options Options
	within  *semver.Constraints // of semver:RANGE

	current *snapshot // nil before the first success
	latest  latest
	// server is the way to the server, which the files that were handed out use too;
	// nil of a file URL.
	server *wire.Server
	// sent are the credentials of the last poll, to keep them out of messages.
	sent atomic.Pointer[Credentials]
	// masterSynced and saidDefault belong to the rule for the default branch.
	masterSynced bool
	saidDefault  string
}

// snapshot is a revision with its objects.
type snapshot struct {
	revision Revision
	// tip is what a server was last found to know the commit by.
	tip     refs.Tag
	commit  *object.Commit
	objects pack.Objects
	// descents are the answers that Descends gave of the commit, by ancestor.
	descents map[plumbing.Hash]descent
	// tags are those at the commit, nil until they are needed.
	tags map[string]refs.Tag
	// packed are the objects as a checkout needs them; nil until there is one.
	packed *pack.Pack
}

// latest is what tag:latest was chosen by, kept so that a poll that finds neither
// a new commit nor a new tag downloads nothing.
type latest struct {
	of     refs.History
	branch plumbing.Hash
}

// New prepares a Repo. Nothing is read yet; the error is one of configuration.
func New(o Options) (*Repo, error) {
	if o.URL == (URL{}) {
		return nil, errors.New("a repository needs a URL")
	}
	if o.Version.IsWorktree() && !o.URL.IsFile() {
		return nil, fmt.Errorf("%s: version mode worktree reads files on this machine's disk, so the URL must be file:///path", o.URL)
	}
	if o.UserAgent == "" {
		o.UserAgent = "kubesync"
	}
	r := &Repo{options: o, masterSynced: o.LastRef == plumbing.Master.String()}
	if !o.URL.IsFile() {
		r.server = wire.New(wire.Options{Limits: o.Limits, UserAgent: o.UserAgent, Meter: o.Meter, Silence: o.silence})
	}
	if o.Version.mode == modeSemver {
		within, err := semver.NewConstraint(o.Version.arg)
		if err != nil {
			return nil, fmt.Errorf("version mode %s: %w", o.Version, err)
		}
		r.within = within
	}
	return r, nil
}

// Resolve polls the repository and returns the revision that the version mode
// selects now. Objects are fetched only if that is another commit than before.
// After an error the last revision that was returned is still the current one,
// for Files and Checkout.
func (r *Repo) Resolve(ctx context.Context) (Revision, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	var err error
	if r.options.Version.IsWorktree() {
		err = r.resolveWorktree(ctx)
	} else {
		err = r.resolve(ctx)
	}
	if err != nil {
		return Revision{}, r.explain(ctx, err)
	}
	return r.current.revision, nil
}

// bounded bounds a context by the time that one fetch may take.
func (r *Repo) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.options.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.options.Timeout, errTimeout)
}

// Files returns the files of the current revision. The FS also implements
// fs.ReadDirFS, fs.ReadFileFS, fs.StatFS and fs.ReadLinkFS, and its fs.FileInfo
// interface{ Hash() string }. It follows symlinks inside the repository, can be
// read by many goroutines, and stays valid when the Repo moves on.
//
// Files of a server may be fetched only when they are read, each in a request of
// its own and only while ctx lasts. Who knows what will be read says so before:
//
//	interface {
//		// Fetch gets, in one request, what is not held of the content of these
//		// files and symlinks and of the lists of these directories. Names of
//		// nothing are skipped.
//		Fetch(ctx context.Context, names ...string) error
//		// FetchBelow gets the lists of a directory and of all below it.
//		FetchBelow(ctx context.Context, dir string) error
//		// Keep holds on to what was fetched below a directory that is not read again,
//		// and reports whether the revision before did, so that nothing is missing.
//		Keep(dir fs.FileInfo) bool
//	}
//
// What ReadDir and fs.WalkDir do needs lists only. A FileInfo's Size is that of the
// content, which it fetches where it is not held; it is -1 if that fails.
func (r *Repo) Files(ctx context.Context, rev Revision) (fs.FS, error) {
	s, err := r.held(rev)
	if err != nil {
		return nil, err
	}
	return newFiles(ctx, s.objects, s.commit.TreeHash, s.revision.Committed), nil
}

// Checkout makes dir hold exactly the current revision: its files, and a .git as
// after git clone --depth 1 with HEAD detached at the commit and no credentials
// in it. Whatever else is in dir is removed, and what was changed restored, so it
// can be called again on a directory that a script, or a crash, left in any
// state. Nothing outside dir is touched. In worktree mode HEAD is a commit made
// up for the files.
func (r *Repo) Checkout(ctx context.Context, rev Revision, dir string) error {
	s, err := r.held(rev)
	if err != nil {
		return err
	}
	if err := r.pack(ctx, s); err != nil {
		return fmt.Errorf("check out %s of %s: %w", rev.Short(), r.options.URL, err)
	}
	err = checkout(ctx, dir, dotGit{commit: s.commit, objects: s.packed, origin: r.options.URL, refs: s.checkoutRefs()})
	if err != nil {
		return fmt.Errorf("check out %s of %s to %s: %w", rev.Short(), r.options.URL, dir, err)
	}
	return nil
}

func (r *Repo) held(rev Revision) (*snapshot, error) {
	if r.current == nil || r.current.revision.ID != rev.ID {
		return nil, fmt.Errorf("%s: revision %s is not the current one, only that is kept", r.options.URL, rev.Short())
	}
	return r.current, nil
}

// pack makes the pack for checkouts. What came from a server as one is one.
func (r *Repo) pack(ctx context.Context, s *snapshot) error {
	if s.packed != nil {
		return nil
	}
	if s.tags == nil && r.server != nil {
		err := r.reach(ctx, func(ctx context.Context, from wire.Protocol) error {
			listed, err := from.Refs(ctx, refs.Scope{Tags: true})
			if err == nil {
				s.note(listed)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	var tags []plumbing.Hash
	for _, t := range s.tags {
		tags = append(tags, t.Tip)
	}
	var err error
	switch o := s.objects.(type) {
	case *pack.Pack:
		s.packed = o
	case *store:
		s.packed, err = o.complete(ctx, s.commit, tags)
	default:
		s.packed, err = pack.OfCommit(ctx, o, s.commit, tags)
	}
	return err
}

// note remembers which tags are at the commit, if a listing shows it.
func (s *snapshot) note(listed refs.List) {
	if !listed.Scope.ListsTags() {
		return
	}
	s.tags = map[string]refs.Tag{}
	for name, t := range listed.Tags {
		if t.Commit == s.commit.Hash {
			s.tags[name] = t
		}
	}
}

// checkoutRefs are the refs that lead to the commit, for a checkout's .git.
func (s *snapshot) checkoutRefs() map[plumbing.ReferenceName]plumbing.Hash {
	out := map[plumbing.ReferenceName]plumbing.Hash{}
	for name, t := range s.tags {
		if s.packed.Has(t.Tip) {
			out[plumbing.NewTagReferenceName(name)] = t.Tip
		}
	}
	if branch, ok := strings.CutPrefix(s.revision.Ref, "refs/heads/"); ok {
		out[plumbing.NewRemoteReferenceName("origin", branch)] = s.commit.Hash
	}
	return out
}

// resolve polls a server or a repository on disk.
func (r *Repo) resolve(ctx context.Context) error {
	if r.options.URL.IsFile() {
		from, err := openLocal(r.options.URL.path, r.options.Limits)
		if err != nil {
			return err
		}
		return r.resolveFrom(ctx, from)
	}
	to, err := r.target()
	if err != nil {
		return err
	}
	return r.server.Poll(ctx, to, func(ctx context.Context, from wire.Protocol) error {
		return r.resolveFrom(ctx, remote{from, r})
	})
}

// reach is a store's way to the server.
func (r *Repo) reach(ctx context.Context, do func(context.Context, wire.Protocol) error) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	if err := r.server.Use(ctx, do); err != nil {
		return r.explain(ctx, err)
	}
	return nil
}

// source is where a repository is read from during one poll.
type source interface {
	// Refs lists the branches, tags and HEAD that are in scope, in one request. It
	// may list more.
	Refs(context.Context, refs.Scope) (refs.List, error)
	// History returns the past of tips, without the content of commits. Of
	// older, a history got before, nothing is asked for again.
	History(_ context.Context, tips []refs.Tag, older refs.History) (refs.History, error)
	// read returns the objects of one commit: itself, its files, and the tag
	// objects that were found on the way. It may have more; a store has only the
	// commit, and fetches its files when they are needed.
	read(context.Context, refs.Tag) (pack.Objects, error)
}

// remote is the source that a server is.
type remote struct {
	wire.Protocol
	repo *Repo
}

// read implements source.
func (s remote) read(ctx context.Context, of refs.Tag) (pack.Objects, error) {
	p, whole, err := s.Commit(ctx, of)
	switch {
	case err != nil:
		return nil, err
	case whole:
		return p, nil
	}
	return &store{tip: of, limits: s.repo.options.Limits, reach: s.repo.reach, packs: []*pack.Pack{p}}, nil
}

// resolveFrom polls a source. A ref that moves between the listing and the fetch
// is looked up once more.
func (r *Repo) resolveFrom(ctx context.Context, from source) error {
	err := r.poll(ctx, from)
	if errors.Is(err, wire.ErrMoved) {
		err = r.poll(ctx, from)
	}
	return err
}

func (r *Repo) poll(ctx context.Context, from source) error {
	listed, sel, err := r.look(ctx, from)
	if err != nil {
		return err
	}
	if r.current != nil && r.current.commit.Hash == sel.Commit {
		r.settle(ctx)
	} else {
		next, err := r.load(ctx, from, sel)
		if err != nil {
			return err
		}
		r.current = next
	}
	r.current.revision.Ref, r.current.tip = sel.ref.String(), sel.Tag
	r.current.note(listed)
	if sel.ref == plumbing.Master && r.followsDefault() {
		r.masterSynced = true
	}
	return nil
}

// look lists what the version mode needs, and chooses. If that selects nothing,
// everything is listed, to say what there is.
func (r *Repo) look(ctx context.Context, from source) (refs.List, selection, error) {
	listed, err := from.Refs(ctx, r.scope())
	if err != nil {
		return refs.List{}, selection{}, err
	}
	sel, err := r.choose(ctx, from, listed)
	var nothing *refs.NothingError
	if !errors.As(err, &nothing) || listed.Scope.All {
		return listed, sel, err
	}
	if listed, err = from.Refs(ctx, refs.Scope{All: true}); err != nil {
		return refs.List{}, selection{}, err
	}
	sel, err = r.choose(ctx, from, listed)
	return listed, sel, err
}

// scope returns what the version mode chooses from.
func (r *Repo) scope() refs.Scope {
	switch v := r.options.Version; v.mode {
	case modeBranch:
		return refs.Scope{Branch: v.arg}
	case modeTag:
		return refs.Scope{Tag: v.arg}
	case modeSemver:
		return refs.Scope{Tags: true}
	case modeCommit:
		known := r.current != nil || plumbing.IsHash(v.arg)
		return refs.Scope{None: known, All: !known}
	case modeLatest:
		return refs.Scope{Branch: master, Head: !r.masterSynced, Tags: true}
	default:
		return refs.Scope{Branch: master, Head: !r.masterSynced}
	}
}

// settle lets go of what the revision before had: this one was used at least once.
func (r *Repo) settle(ctx context.Context) {
	if s, ok := r.current.objects.(*store); ok {
		s.settle(ctx)
	}
}

// load gets a selected commit. It is not taken before all of it is there, or, of a
// store, all that is to be there at first.
func (r *Repo) load(ctx context.Context, from source, sel selection) (*snapshot, error) {
	objects, err := from.read(ctx, sel.Tag)
	if err != nil {
		return nil, err
	}
	commit, err := pack.ReadCommit(objects, sel.Tip)
	if err != nil {
		return nil, err
	}
	switch o := objects.(type) {
	case *pack.Pack:
		if err := pack.CheckWhole(ctx, o, commit); err != nil {
			return nil, err
		}
	case *store:
		if r.current != nil {
			if older, ok := r.current.objects.(*store); ok {
				o.follow(ctx, older)
			}
		}
	}
	return &snapshot{revision: newRevision(commit, sel.ref.String()), tip: sel.Tag, commit: commit, objects: objects, descents: map[plumbing.Hash]descent{}}, nil
}

// followsDefault reports whether the version mode depends on the default branch.
func (r *Repo) followsDefault() bool {
	return r.options.Version.mode == modeDefault || r.options.Version.mode == modeLatest
}

// choose finds the commit that the version mode selects.
func (r *Repo) choose(ctx context.Context, from source, listed refs.List) (selection, error) {
	switch v := r.options.Version; v.mode {
	case modeBranch:
		return chooseBranch(listed, v.arg)
	case modeTag:
		return chooseTag(listed, v.arg)
	case modeSemver:
		return chooseSemver(listed, r.within)
	case modeCommit:
		return r.chooseCommit(ctx, from, listed, v.arg)
	case modeLatest:
		return r.chooseLatest(ctx, from, listed)
	default:
		return r.chooseDefault(listed)
	}
}

// chooseDefault follows the default branch, and says once if it is not master.
func (r *Repo) chooseDefault(listed refs.List) (selection, error) {
	sel, err := chooseDefault(listed, r.masterSynced)
	if err != nil {
		return selection{}, err
	}
	if name := refs.Short(sel.ref); name != master && name != r.saidDefault {
		r.saidDefault = name
		r.options.Log.Info().Stringer("url", r.options.URL).Str("branch", name).
			Msg("the repository has no branch master, so the branch that its HEAD points at is followed")
	}
	return sel, nil
}

// chooseCommit needs no history for a full hash, and none for one that is already
// found: a commit never becomes another.
func (r *Repo) chooseCommit(ctx context.Context, from source, listed refs.List, digits string) (selection, error) {
	if r.current != nil {
		hash := r.current.commit.Hash
		return selection{Tag: refs.Light(hash)}, nil
	}
	if hash := plumbing.NewHash(digits); plumbing.IsHash(digits) {
		return selection{Tag: refs.Light(hash)}, nil
	}
	of, err := from.History(ctx, listed.Tips(), refs.History{})
	if err != nil {
		return selection{}, err
	}
	return chooseCommit(listed, of, digits)
}

// chooseLatest needs the history of the default branch, which is fetched when
// that branch has moved, and then only what is new.
func (r *Repo) chooseLatest(ctx context.Context, from source, listed refs.List) (selection, error) {
	head, err := r.chooseDefault(listed)
	if err != nil {
		return selection{}, err
	}
	if head.ref == plumbing.Master {
		r.masterSynced = true
	}
	if len(listed.Tags) > 0 && r.latest.branch != head.Commit {
		of, err := from.History(ctx, []refs.Tag{head.Tag}, r.latest.of)
		if err != nil {
			return selection{}, err
		}
		if _, ok := of.Commits[head.Commit]; !ok {
			return selection{}, fmt.Errorf("%w: commit %s of %s", pack.ErrIncomplete, head.Commit, head.ref)
		}
		r.latest = latest{of: of, branch: head.Commit}
	}
	return chooseLatest(listed, r.latest.of)
}

// resolveWorktree reads the files on disk. Files that are as they were are the
// same revision.
func (r *Repo) resolveWorktree(ctx context.Context) error {
	objects, commit, err := readWorktree(ctx, r.options.URL.path, r.options.Limits)
	if err != nil {
		return err
	}
	if r.current != nil && r.current.commit.TreeHash == commit.TreeHash {
		return nil
	}
	rev := newRevision(commit, "")
	rev.ID = revision.WorktreePrefix + commit.TreeHash.String()
	r.current = &snapshot{revision: rev, commit: commit, objects: objects}
	return nil
}

// target is where the server is, with what opens it now.
func (r *Repo) target() (wire.Target, error) {
	o := r.options
	at, err := o.URL.onServer()
	if err != nil {
		return wire.Target{}, err
	}
	out := wire.Target{URL: at, SSHKeyFile: o.SSHKeyFile, SSHKnownHostsFile: o.SSHKnownHostsFile}
	if at.Scheme == "ssh" {
		return out, nil
	}
	if out.Credentials, err = r.credentials(); err != nil {
		return wire.Target{}, err
	}
	r.sent.Store(out.Credentials)
	out.Roots, err = Roots(o.CAFile, o.CADir)
	return out, err
}

// credentials returns what is to be sent now, nil for nothing. As in git the
// URL's password comes first; a user alone in the URL only where there is nothing
// else.
func (r *Repo) credentials() (*Credentials, error) {
	own, inURL := r.options.URL.Credentials()
	if own.Password == "" && r.options.Credentials != nil {
		given, ok, err := r.options.Credentials()
		if err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		if ok {
			return &given, nil
		}
	}
	if inURL {
		return &own, nil
	}
	return nil, nil
}

// secrets are the credentials that no message may hold.
func (r *Repo) secrets() []Credentials {
	var out []Credentials
	if own, ok := r.options.URL.Credentials(); ok {
		out = append(out, own)
	}
	if sent := r.sent.Load(); sent != nil {
		out = append(out, *sent)
	}
	return out
}
