package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo/limits"
)

// Options say what to read and how to get at it.
type Options struct {
	URL     URL
	Version Version
	// MasterSynced says that branch master was synced before, in this process or
	// another. Then the zero Version and tag:latest stay with master even if it
	// is gone. See Repo.MasterSynced.
	MasterSynced bool

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
	// Meter hears of the traffic with the server; nil for nobody.
	Meter Meter
	Log   zerolog.Logger
}

// Repo is a git repository and the revision of it that was last resolved. It is
// for one goroutine at a time.
type Repo struct {
	options Options
	within  *semver.Constraints // of semver:RANGE

	current *snapshot // nil before the first success
	latest  latest
	// descents is what was found out of the current commit's ancestors.
	descents descents
	// line is the way to the server, which the files that were handed out use too.
	line line
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
	tip     tag
	commit  *object.Commit
	objects objects
	// tags are those at the commit, nil until somebody asks.
	tags map[string]tag
	// packed are the objects as a checkout needs them; nil until there is one.
	packed *pack
}

// latest is what tag:latest was chosen by, kept so that a poll that finds neither
// a new commit nor a new tag downloads nothing.
type latest struct {
	of     history
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
	if o.Meter == nil {
		o.Meter = unmetered{}
	}
	r := &Repo{options: o, masterSynced: o.MasterSynced, line: newLine(o.Limits)}
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

// MasterSynced tells whether branch master was ever resolved as the default
// branch. Kept by the caller and given back as Options.MasterSynced, it keeps a
// restarted daemon from following another branch when master is deleted.
func (r *Repo) MasterSynced() bool { return r.masterSynced }

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
	if s.tags == nil && r.line.server != nil {
		err := r.reach(ctx, func(ctx context.Context, from speaker) error {
			listed, err := from.refs(ctx, scope{tags: true})
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
		tags = append(tags, t.tip)
	}
	var err error
	switch o := s.objects.(type) {
	case *pack:
		s.packed = o
	case *store:
		s.packed, err = o.complete(ctx, s.commit, tags)
	default:
		s.packed, err = packCommit(ctx, o, s.commit, heldOf(o, tags))
	}
	return err
}

// note remembers which tags are at the commit, if a listing can tell.
func (s *snapshot) note(listed refs) {
	if !listed.of.listsTags() {
		return
	}
	s.tags = map[string]tag{}
	for name, t := range listed.tags {
		if t.commit == s.commit.Hash {
			s.tags[name] = t
		}
	}
}

// checkoutRefs are the refs that lead to the commit, for a checkout's .git.
func (s *snapshot) checkoutRefs() map[plumbing.ReferenceName]plumbing.Hash {
	out := map[plumbing.ReferenceName]plumbing.Hash{}
	for name, t := range s.tags {
		if s.packed.has(t.tip) {
			out[plumbing.NewTagReferenceName(name)] = t.tip
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
	done, err := r.line.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	from, err := r.dial()
	if err != nil {
		return err
	}
	r.line.use(from)
	err = r.resolveFrom(ctx, from)
	r.line.heed(err)
	return err
}

// reach is a store's way to the server.
func (r *Repo) reach(ctx context.Context, do func(context.Context, speaker) error) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	err := r.lend(ctx, do)
	if err != nil {
		return r.explain(ctx, err)
	}
	return nil
}

func (r *Repo) lend(ctx context.Context, do func(context.Context, speaker) error) error {
	done, err := r.line.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	from := r.line.server
	if from.speaker == nil { // the last poll did not get far
		if err := from.hello(ctx); err != nil {
			r.line.heed(err)
			return err
		}
	}
	err = do(ctx, from.speaker)
	if ctx.Err() == nil && (errors.Is(err, errCutOff) || errors.Is(err, io.EOF)) {
		// The connection may have ended while it was idle.
		from.close()
		err = do(ctx, from.speaker)
	}
	r.line.heed(err)
	return err
}

// resolveFrom polls a source. A ref that moves between the listing and the fetch
// is looked up once more.
func (r *Repo) resolveFrom(ctx context.Context, from source) error {
	err := r.poll(ctx, from)
	if errors.Is(err, errMoved) {
		err = r.poll(ctx, from)
	}
	return err
}

func (r *Repo) poll(ctx context.Context, from source) error {
	listed, sel, err := r.look(ctx, from)
	if err != nil {
		return err
	}
	if r.current != nil && r.current.commit.Hash == sel.commit {
		r.settle(ctx)
	} else {
		next, err := r.load(ctx, from, sel)
		if err != nil {
			return err
		}
		r.current = next
	}
	r.current.revision.Ref, r.current.tip = sel.ref.String(), sel.tag
	r.current.note(listed)
	if sel.ref == plumbing.Master && r.followsDefault() {
		r.masterSynced = true
	}
	return nil
}

// look lists what the version mode needs, and chooses. If that selects nothing,
// everything is listed, to say what there is.
func (r *Repo) look(ctx context.Context, from source) (refs, selection, error) {
	listed, err := from.refs(ctx, r.scope())
	if err != nil {
		return refs{}, selection{}, err
	}
	sel, err := r.choose(ctx, from, listed)
	var nothing *nothingError
	if !errors.As(err, &nothing) || listed.of.all {
		return listed, sel, err
	}
	if listed, err = from.refs(ctx, scope{all: true}); err != nil {
		return refs{}, selection{}, err
	}
	sel, err = r.choose(ctx, from, listed)
	return listed, sel, err
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
	objects, err := from.objects(ctx, sel)
	if err != nil {
		return nil, err
	}
	commit, err := readCommit(objects, sel.tip)
	if err != nil {
		return nil, err
	}
	switch o := objects.(type) {
	case *pack:
		if err := whole(ctx, o, commit); err != nil {
			return nil, err
		}
	case *store:
		o.reach = r.reach
		if r.current != nil {
			if older, ok := r.current.objects.(*store); ok {
				o.follow(ctx, older)
			}
		}
	}
	return &snapshot{revision: newRevision(commit, sel.ref.String()), tip: sel.tag, commit: commit, objects: objects}, nil
}

// followsDefault tells whether the version mode depends on the default branch.
func (r *Repo) followsDefault() bool {
	return r.options.Version.mode == modeDefault || r.options.Version.mode == modeLatest
}

// choose finds the commit that the version mode selects.
func (r *Repo) choose(ctx context.Context, from source, listed refs) (selection, error) {
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
func (r *Repo) chooseDefault(listed refs) (selection, error) {
	sel, err := chooseDefault(listed, r.masterSynced)
	if err != nil {
		return selection{}, err
	}
	if name := short(sel.ref); name != master && name != r.saidDefault {
		r.saidDefault = name
		r.options.Log.Info().Stringer("url", r.options.URL).Str("branch", name).
			Msg("the repository has no branch master, so the branch that its HEAD points at is followed")
	}
	return sel, nil
}

// chooseCommit needs no history for a full hash, and none for one that is already
// found: a commit never becomes another.
func (r *Repo) chooseCommit(ctx context.Context, from source, listed refs, digits string) (selection, error) {
	if r.current != nil {
		hash := r.current.commit.Hash
		return selection{tag: tag{hash, hash}}, nil
	}
	if hash := plumbing.NewHash(digits); plumbing.IsHash(digits) {
		return selection{tag: tag{hash, hash}}, nil
	}
	of, err := from.history(ctx, listed.tips(), history{})
	if err != nil {
		return selection{}, err
	}
	return chooseCommit(listed, of, digits)
}

// chooseLatest needs the history of the default branch, which is fetched when
// that branch has moved, and then only what is new.
func (r *Repo) chooseLatest(ctx context.Context, from source, listed refs) (selection, error) {
	head, err := r.chooseDefault(listed)
	if err != nil {
		return selection{}, err
	}
	if head.ref == plumbing.Master {
		r.masterSynced = true
	}
	if len(listed.tags) > 0 && r.latest.branch != head.commit {
		of, err := from.history(ctx, []tag{head.tag}, r.latest.of)
		if err != nil {
			return selection{}, err
		}
		if _, ok := of.commits[head.commit]; !ok {
			return selection{}, fmt.Errorf("%w: commit %s of %s", errIncomplete, head.commit, head.ref)
		}
		r.latest = latest{of: of, branch: head.commit}
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
	rev.ID = worktreePrefix + commit.TreeHash.String()
	r.current = &snapshot{revision: rev, commit: commit, objects: objects}
	return nil
}

// dial prepares to speak to the server; nothing is sent yet.
func (r *Repo) dial() (*server, error) {
	o := r.options
	out := &server{agent: agent(o.UserAgent), limits: o.Limits, habits: &r.line.habits}
	to := dialer{o.Meter, &r.line.silence}
	if o.URL.scheme == "ssh" {
		out.wire = &sshWire{url: o.URL, keyFile: o.SSHKeyFile, knownHosts: o.SSHKnownHostsFile, dialer: to}
		return out, nil
	}
	credentials, err := r.credentials()
	if err != nil {
		return nil, err
	}
	r.sent.Store(credentials)
	roots, err := Roots(o.CAFile, o.CADir)
	if err != nil {
		return nil, err
	}
	out.wire = newHTTPWire(o.URL, o.UserAgent, credentials, roots, out.habits, to)
	return out, nil
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
