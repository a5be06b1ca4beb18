package transform

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform/confine"
)

// Options is what is configured for one repository. The zero value of each field is its
// default.
type Options struct {
	// RepoName is the repository's name, unique in the daemon; CMD sees it as REPO_NAME.
	RepoName string
	// Command is CMD; empty for none. ParseCommand reports whether it is one.
	Command string
	// YMLDir is the directory or file in the repository that holds the manifests,
	// relative to its root; empty for none. ParseDir reports whether it is one.
	YMLDir string
	// Recursive takes manifests from directories at any depth, not of one level.
	Recursive bool
	// ConventionalDir takes them from kubernetes/, if the repository has it and
	// neither CMD nor YMLDir says otherwise.
	ConventionalDir bool
	// OnRevisionOnly runs CMD for new revisions and after failures only.
	OnRevisionOnly bool
	// Sandbox says what happens to a CMD that cannot be confined.
	Sandbox SandboxMode
	// Privileged is true for repositories of the system tier.
	Privileged bool

	// Environ is the daemon's environment, as NAME=value entries.
	Environ []string
	// EnvDeny names variables that are kept from CMD.
	EnvDeny []string
	// OwnVariables names kubesync's own variables, which are kept from CMD too.
	OwnVariables []string
	// Protected is asked before each run for the files and directories that a confined
	// CMD may not read, even if they lie in a directory that programs may usually read
	// (which then is withheld as a whole): credentials, above all. Where a pod finds
	// its ServiceAccount's token needs no mention. Nil stands for none.
	Protected func() []string

	// WorkDir is the directory that CMD's directories are made in; empty for the
	// system's directory for temporary files.
	WorkDir string
	// Timeout bounds one run of CMD and one build of a kustomization; 0 is no bound.
	Timeout time.Duration
	// Limits bound what CMD and kustomize may use; the zero value is the defaults.
	Limits limits.Limits
	Log    zerolog.Logger
}

// Input is one revision of the repository.
type Input struct {
	// Revision identifies the content: equal revisions have equal Files.
	Revision string
	// Files are the revision's files. Symbolic links in it appear as such: it
	// implements fs.ReadLinkFS if there may be any.
	Files fs.FS
	// Checkout makes a directory hold exactly the revision, with a .git, so that CMD can
	// work on it. The directory may be missing or hold whatever CMD's last run made of it:
	// nothing of that may survive, and no link in it be followed.
	Checkout func(ctx context.Context, dir string) error
	// Rerun says that the last sync failed, so that CMD has to run again also where
	// it otherwise runs for new revisions only.
	Rerun bool
}

// Result is what is to be applied.
type Result struct {
	// Files holds exactly the manifests: every regular file in it is one, whatever its
	// name. What comes from the repository has its path there; what CMD wrote has
	// OUTDIR/ before its path in OUTDIR; what kustomize built has the path of the file
	// that it was built from, with ---, a YAML document per object. The FileInfo has a
	// method Hash() string: of a file git's hash of the content, of a directory a hash of
	// all names and files below it, empty if it is not known.
	Files fs.FS
	// Source is where the manifests come from.
	Source Source
	// Notes are for the user to read, once per revision: Run does not repeat them.
	Notes []string
}

// Kinds of sources.
const (
	KindCommand      = "CMD"
	KindYMLDir       = "YMLDIR"
	KindConventional = "kubernetes/"
	KindRoot         = "root"
)

// BuiltByKustomize is the Builder of a kustomization's manifests.
const BuiltByKustomize = "kustomize"

// Source says by which rule the manifests were found, and in which directory of
// the repository ("." for its root; for CMD it is OUTDIR).
type Source struct {
	Kind    string
	Dir     string
	Builder string // what made manifests of the files: BuiltByKustomize, or empty for nothing
}

// Transform makes manifests of one repository's revisions.
type Transform struct {
	options Options
	command command
	ymlDir  string      // "" for none
	env     environment // what CMD sees, but for its directories and the revision
	abi     func() int  // the kernel's version of Landlock

	// mu is held while something runs: the workspace is there only once.
	mu        sync.Mutex
	workspace *confine.Workspace // nil until CMD first runs
	// last is the result for lastRevision, nil if there is none or it cannot be
	// used again.
	last         *Result
	lastRevision string
	// searched is what a search found in the last revision, if there was one.
	searched searched
	// noted holds the notes that were returned for notedRevision.
	noted         []string
	notedRevision string
}

// New checks the options. Nothing is written to disk until CMD runs.
func New(options Options) (*Transform, error) {
	cmd, err := parseCommand(options.Command)
	if err != nil {
		return nil, fmt.Errorf("CMD: %w", err)
	}
	dir, err := ParseDir(options.YMLDir)
	if err != nil {
		return nil, fmt.Errorf("YMLDIR: %w", err)
	}
	return &Transform{
		options: options,
		command: cmd,
		ymlDir:  dir,
		env:     cleanEnvironment(options.Environ, options.OwnVariables, options.EnvDeny),
		abi:     confine.LandlockABI,
	}, nil
}

// Run makes the manifests of a revision. They can be read as long as in.Files can;
// what CMD made, as long as anybody wants to. After an error nothing of the revision
// may be applied, and nothing pruned.
func (t *Transform) Run(ctx context.Context, in Input) (Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	repo := repoTree(in.Files, t.options.Limits)
	exe, note, err := t.findProgram(repo)
	if err != nil {
		return Result{}, err
	}
	if last := t.reuse(in, exe != nil); last != nil {
		return *last, nil
	}
	t.last = nil
	var result Result
	if exe != nil {
		result, err = t.runCommand(ctx, in, *exe)
	} else {
		result, err = t.pick(ctx, repo)
	}
	if err != nil {
		return Result{}, err
	}
	t.keep(in.Revision, result)
	if note != "" {
		result.Notes = append([]string{note}, result.Notes...)
	}
	result.Notes = t.untold(in.Revision, result.Notes)
	return result, nil
}

// reuse returns the last result if running again could give no other one. Without
// CMD the revision determines it; CMD's output may depend on more, which is why
// CMD runs at every interval unless the user says that this is not so.
func (t *Transform) reuse(in Input, hasProgram bool) *Result {
	if t.last == nil || t.lastRevision != in.Revision {
		return nil
	}
	if hasProgram != (t.last.Source.Kind == KindCommand) || hasProgram && in.Rerun {
		return nil
	}
	return t.last
}

// keep keeps a result for reuse, if it is one that costs something to make, and
// that does not need the revision's files any more.
func (t *Transform) keep(revision string, result Result) {
	if result.Source.Kind == KindCommand && !t.options.OnRevisionOnly {
		return
	}
	if files, ok := result.Files.(*fileSet); ok && files.made() {
		t.last, t.lastRevision = &Result{Files: files, Source: result.Source}, revision
	}
}

// untold returns the notes that were not yet returned for this revision.
func (t *Transform) untold(revision string, notes []string) []string {
	if t.notedRevision != revision {
		t.notedRevision, t.noted = revision, nil
	}
	fresh := slices.DeleteFunc(notes, func(note string) bool { return slices.Contains(t.noted, note) })
	t.noted = append(t.noted, fresh...)
	return fresh
}

// Close waits for a run to end and removes CMD's directories. Results can still be
// read.
func (t *Transform) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.workspace == nil {
		return nil
	}
	err := t.workspace.Close()
	t.workspace = nil
	return err
}

// bounded bounds a context by the time that one run may take.
func (t *Transform) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.options.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.options.Timeout, timeoutError{t.options.Timeout})
}

// timeoutError says that the time for one run is up.
type timeoutError struct{ limit time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("it took longer than TIMEOUT, %s", e.limit)
}

// Unwrap makes it a context.DeadlineExceeded.
func (e timeoutError) Unwrap() error { return context.DeadlineExceeded }
