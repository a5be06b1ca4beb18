package transform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform/confine"
)

// defaultPath is where programs are looked for if the daemon's environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// program is what CMD's first word names: a file of the repository by its path
// there, or an absolute path outside it.
type program struct {
	inRepo   string
	absolute string
}

// unmade stands for the workspace until there is one: looking CMD up must not write
// anything, as it may turn out that there is nothing to run. No such path can exist.
const unmade = "/dev/null/kubesync"

// findProgram looks up CMD's first word. The program is nil if there is none to run;
// note then says so, unless there is no CMD at all.
func (t *Transform) findProgram(repo tree) (found *program, note string, err error) {
	if len(t.command.words) == 0 {
		return nil, "", nil
	}
	env := t.env.with(directories(unmade))
	first := command{text: t.command.text, words: t.command.words[:1]}
	words, err := first.expand(env.list(), listIn(repo, ".", unmade+"/"+confine.InDir))
	if err != nil {
		return nil, "", err
	}
	found, err = lookUp(words[0], repo, env.searchPath())
	if err != nil {
		return nil, "", fmt.Errorf("CMD %q: %w", t.command.text, err)
	}
	if found == nil {
		note = fmt.Sprintf("CMD %q: %s exists neither in this revision nor elsewhere, so no transform runs", t.command.text, words[0])
	}
	return found, note, nil
}

// searchPath returns the value of PATH.
func (e environment) searchPath() string {
	if value, ok := e["PATH"]; ok {
		return value
	}
	return defaultPath
}

// directories returns the variables that name for CMD its directories.
func directories(base string) environment {
	return environment{
		"INDIR":  base + "/" + confine.InDir,
		"OUTDIR": base + "/" + confine.OutDir,
		"TMPDIR": base + "/" + confine.TmpDir,
		"PWD":    base + "/" + confine.InDir,
	}
}

// lookUp finds the program that a word names; nil if there is none. A word with a slash is
// a path, relative to the repository's root or absolute; another one is a file there,
// else one on PATH. Only absolute directories on PATH count.
func lookUp(word string, repo tree, searchPath string) (*program, error) {
	name, inRepo := strings.CutPrefix(path.Clean(word), unmade+"/"+confine.InDir+"/")
	if !inRepo && !path.IsAbs(word) {
		name, inRepo = path.Clean(word), true
	}
	if !inRepo {
		return outside(word), nil
	}
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%s is outside the repository", word)
	}
	_, info, err := repo.stat(name)
	switch {
	case err == nil && !info.IsDir(), isLinkError(err):
		// Where a link leads when it is executed is the sandbox's business.
		return &program{inRepo: name}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look for %s: %w", name, err)
	case strings.Contains(word, "/"):
		return nil, nil
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found := outside(filepath.Join(dir, word)); found != nil {
			return found, nil
		}
	}
	return nil, nil
}

// outside returns the program at an absolute path, nil if there is no file.
func outside(name string) *program {
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return nil
	}
	return &program{absolute: name}
}

// listIn returns a function that reads directories for CMD's file name patterns: those
// of the tree below dir, which is what the path root stands for. Others appear empty.
func listIn(from tree, dir, root string) func(string) ([]fs.DirEntry, error) {
	return func(name string) ([]fs.DirEntry, error) {
		name = path.Clean(name)
		if !below(name, root) {
			return nil, nil
		}
		resolved, err := from.resolve(path.Join(dir, strings.TrimPrefix(name, root)))
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return fs.ReadDir(from.fsys, resolved)
	}
}

// runCommand runs CMD on a revision and returns what it left in OUTDIR.
func (t *Transform) runCommand(ctx context.Context, in Input, exe program) (Result, error) {
	confined, warning, err := t.options.confinement(t.abi())
	if err != nil {
		return Result{}, err
	}
	where, err := t.prepare(ctx, in)
	if err != nil {
		return Result{}, err
	}
	todo, notes, err := t.program(in, exe, where, confined)
	if err != nil {
		return Result{}, err
	}
	out := confine.NewOutput(t.options.Log)
	bounded, cancel := t.bounded(ctx)
	defer cancel()
	err = where.Run(bounded, todo, t.options.Limits, out)
	if lost := where.Check(); errors.Is(lost, confine.ErrLost) {
		// Part of what it made may be gone with it, and must not be taken for all.
		err = errors.Join(err, fmt.Errorf("its directory %s was removed while it ran, perhaps by what tidies up temporary files; the next run makes a new one", where.Dir()))
	} else {
		err = errors.Join(err, lost)
	}
	if err != nil {
		// Whatever it left, of whatever size and depth, is no one else's business.
		err = errors.Join(err, where.Empty())
		return Result{}, fmt.Errorf("CMD %q failed, so nothing is applied or pruned: %w%s", t.command.text, err, confinementHint(confined, out.Lines(), notes))
	}
	if warning != "" {
		notes = append(notes, warning)
	}
	found, err := t.collect(ctx, where)
	if err != nil {
		err = errors.Join(err, where.Clean())
		return Result{}, fmt.Errorf("read what CMD %q left in OUTDIR: %w", t.command.text, err)
	}
	// INDIR stays: most of it need not be written again for the next run.
	if err := where.Clean(); err != nil {
		return Result{}, err
	}
	source := Source{Kind: KindCommand, Dir: confine.OutDir, Builder: found.builder}
	return Result{Files: found.files, Source: source, Notes: append(notes, found.notes...)}, nil
}

// prepare makes OUTDIR and TMPDIR anew and has the revision restored in INDIR. A
// workspace that was removed since the last run is replaced by a new one.
func (t *Transform) prepare(ctx context.Context, in Input) (*confine.Workspace, error) {
	if t.workspace != nil {
		err := t.workspace.Check()
		if errors.Is(err, confine.ErrLost) {
			t.options.Log.Warn().Str("directory", t.workspace.Dir()).
				Msg("CMD's directory, or the lock in it, was removed, perhaps by what tidies up temporary files; it is made again")
			err = t.workspace.Close()
			t.workspace = nil
		}
		if err != nil {
			return nil, err
		}
	}
	if t.workspace == nil {
		where, err := confine.Open(t.options.WorkDir, t.options.RepoName)
		if err != nil {
			return nil, err
		}
		t.workspace = where
	}
	if err := t.workspace.Prepare(); err != nil {
		return nil, err
	}
	if err := in.Checkout(ctx, t.workspace.Path(confine.InDir)); err != nil {
		return nil, fmt.Errorf("check out revision %s for CMD: %w", in.Revision, err)
	}
	return t.workspace, nil
}

// program says how CMD is started. The notes say what it may not read although other
// programs may.
func (t *Transform) program(in Input, exe program, where *confine.Workspace, confined bool) (confine.Program, []string, error) {
	env := t.env.with(directories(where.Dir())).with(environment{"REVISION": in.Revision, "REPO_NAME": t.options.RepoName})
	todo := confine.Program{Path: exe.absolute}
	if exe.inRepo != "" {
		todo.Path = path.Join(where.Path(confine.InDir), exe.inRepo)
	}
	var notes []string
	if confined {
		var protected []string
		if t.options.Protected != nil {
			protected = t.options.Protected()
		}
		may, withheld := where.Reach(exe.absolute, env.searchPath(), protected)
		todo.Reach = &may
		for _, dir := range withheld {
			notes = append(notes, fmt.Sprintf("CMD may not read %s, because a secret of kubesync is in it", dir))
		}
		// Programs that cannot read their settings at home give up; without any they go on.
		if home := env["HOME"]; home == "" || !may.Readable(home) {
			env["HOME"] = env["TMPDIR"]
		}
	}
	todo.Env = env.list()
	words, err := t.command.expand(todo.Env, listIn(repoTree(in.Files, t.options.Limits), ".", where.Path(confine.InDir)))
	if err != nil {
		return confine.Program{}, nil, err
	}
	todo.Args = words
	return todo, notes, nil
}

// confinementHint explains a likely reason of a failure. withheld are the notes about
// what CMD may not read.
func confinementHint(confined bool, lines, withheld []string) string {
	hint := ""
	if confined && strings.Contains(strings.Join(lines, "\n"), "ermission denied") {
		hint = "\n(CMD is confined: it reads the repository and the system's programs and libraries, and writes below INDIR, OUTDIR and TMPDIR only; mktemp and HOME use TMPDIR)"
	}
	for _, note := range withheld {
		hint += "\n(" + note + ")"
	}
	return hint
}

// collect reads the manifests in OUTDIR into memory.
func (t *Transform) collect(ctx context.Context, where *confine.Workspace) (manifests, error) {
	from, root, err := outputTree(where, t.options.Limits)
	if err != nil {
		return manifests{}, err
	}
	defer root.Close()
	found, err := t.manifests(ctx, from, confine.OutDir, ignorer{}, nil)
	if err != nil {
		return manifests{}, err
	}
	size, made := int64(0), map[string][]byte{}
	err = fs.WalkDir(found.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		size += info.Size()
		if err := t.options.Limits.Check(limits.Manifests, "the manifests in it", size); err != nil {
			return err
		}
		made[name], err = fs.ReadFile(found.files, name)
		return err
	})
	found.files, found.search = newFileSet(made), nil
	return found, err
}
