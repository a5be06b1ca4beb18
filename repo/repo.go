package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/rs/zerolog"
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

	// Timeout bounds one Resolve; 0 is no bound but the context's.
	Timeout time.Duration
	// UserAgent names the program to servers, "kubesync" if empty.
	UserAgent string
	Log       zerolog.Logger
}

// Repo is a git repository and the revision of it that was last resolved. It is
// for one goroutine at a time.
type Repo struct {
	options Options
	within  *semver.Constraints // of semver:RANGE

	current *snapshot // nil before the first success
	latest  latest
	// sent are the credentials of the last poll, to keep them out of messages.
	sent *Credentials
	// masterSynced and saidDefault belong to the rule for the default branch.
	masterSynced bool
	saidDefault  string
}

// snapshot is a revision with its objects.
type snapshot struct {
	revision Revision
	commit   *object.Commit
	objects  objects
	// refs are what a checkout's .git shows: the tags at the commit and the
	// branch.
	refs map[plumbing.ReferenceName]plumbing.Hash
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
	r := &Repo{options: o, masterSynced: o.MasterSynced}
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
	if r.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.options.Timeout, errTimeout)
		defer cancel()
	}
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

// MasterSynced tells whether branch master was ever resolved as the default
// branch. Kept by the caller and given back as Options.MasterSynced, it keeps a
// restarted daemon from following another branch when master is deleted.
func (r *Repo) MasterSynced() bool { return r.masterSynced }

// Files returns the files of the current revision. The FS also implements
// fs.ReadDirFS, fs.ReadFileFS, fs.StatFS and fs.ReadLinkFS, and its fs.FileInfo
// interface{ Hash() string }. It follows symlinks inside the repository, can be
// read by many goroutines, and stays valid when the Repo moves on.
func (r *Repo) Files(_ context.Context, rev Revision) (fs.FS, error) {
	s, err := r.held(rev)
	if err != nil {
		return nil, err
	}
	return &files{from: s.objects, root: s.commit.TreeHash, when: s.revision.Committed}, nil
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
	if err := s.pack(ctx); err != nil {
		return fmt.Errorf("check out %s of %s: %w", rev.Short(), r.options.URL, err)
	}
	err = checkout(ctx, dir, dotGit{commit: s.commit, objects: s.packed, origin: r.options.URL, refs: s.refs})
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

// pack makes the pack for checkouts. What came from a server is one.
func (s *snapshot) pack(ctx context.Context) error {
	if s.packed != nil {
		return nil
	}
	if p, ok := s.objects.(*pack); ok {
		s.packed = p
		return nil
	}
	var tags []plumbing.Hash
	for _, tip := range s.refs {
		tags = append(tags, tip)
	}
	packed, err := packCommit(ctx, s.objects, s.commit, tags)
	if err == nil {
		s.packed = packed
	}
	return err
}

// resolve polls a server or a repository on disk.
func (r *Repo) resolve(ctx context.Context) error {
	from, err := r.open()
	if err != nil {
		return err
	}
	defer from.close()
	return r.resolveFrom(ctx, from)
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
	listed, err := from.refs(ctx)
	if err != nil {
		return err
	}
	sel, err := r.choose(ctx, from, listed)
	if err != nil {
		return err
	}
	if r.current == nil || r.current.commit.Hash != sel.commit {
		next, err := load(ctx, from, sel)
		if err != nil {
			return err
		}
		r.current = next
	}
	r.current.revision.Ref = sel.ref.String()
	r.current.refs = checkoutRefs(r.current, listed)
	if sel.ref == plumbing.Master && r.followsDefault() {
		r.masterSynced = true
	}
	return nil
}

// load gets a selected commit. It is not taken before all of it is there.
func load(ctx context.Context, from source, sel selection) (*snapshot, error) {
	objects, err := from.objects(ctx, sel)
	if err != nil {
		return nil, err
	}
	commit, err := readCommit(objects, sel.tip)
	if err != nil {
		return nil, err
	}
	if _, fetched := objects.(*pack); fetched {
		if err := whole(ctx, objects, commit); err != nil {
			return nil, err
		}
	}
	return &snapshot{revision: newRevision(commit, sel.ref.String()), commit: commit, objects: objects}, nil
}

// checkoutRefs are the refs that lead to a snapshot's commit.
func checkoutRefs(s *snapshot, listed refs) map[plumbing.ReferenceName]plumbing.Hash {
	out := map[plumbing.ReferenceName]plumbing.Hash{}
	for name, t := range listed.tags {
		if t.commit == s.commit.Hash && s.objects.has(t.tip) {
			out[plumbing.NewTagReferenceName(name)] = t.tip
		}
	}
	if branch, ok := strings.CutPrefix(s.revision.Ref, "refs/heads/"); ok {
		out[plumbing.NewRemoteReferenceName("origin", branch)] = s.commit.Hash
	}
	return out
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
	if name := sel.ref.Short(); name != master && name != r.saidDefault {
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
	objects, commit, err := readWorktree(ctx, r.options.URL.path)
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

// open chooses the source by the URL.
func (r *Repo) open() (source, error) {
	o := r.options
	switch o.URL.scheme {
	case "file":
		return openLocal(o.URL.path)
	case "ssh":
		return &server{agent: agent(o.UserAgent), wire: &sshWire{
			url: o.URL, keyFile: o.SSHKeyFile, knownHosts: o.SSHKnownHostsFile,
		}}, nil
	default:
		credentials, err := r.credentials()
		if err != nil {
			return nil, err
		}
		r.sent = credentials
		roots, err := readRoots(o.CAFile, o.CADir)
		if err != nil {
			return nil, err
		}
		return &server{agent: agent(o.UserAgent), wire: newHTTPWire(o.URL, o.UserAgent, credentials, roots)}, nil
	}
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
	if r.sent != nil {
		out = append(out, *r.sent)
	}
	return out
}
