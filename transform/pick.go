package transform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
)

// conventionalDir is where manifests are looked for unless something else is said.
const conventionalDir = "kubernetes"

// ParseDir checks a YMLDIR and returns it cleaned: a path inside the repository,
// relative to its root. Empty stays empty.
func ParseDir(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	clean := path.Clean(text)
	if !fs.ValidPath(clean) || strings.ContainsRune(clean, 0) {
		return "", fmt.Errorf("%q is not a path inside the repository, relative to its root", text)
	}
	return clean, nil
}

// searched is what the last revision was found to hold, and by which rules.
type searched struct {
	ignore string // the text of .kubesyncignore
	dir    string
	found  *search // nil if nothing was searched
}

// pick finds the manifests where there is no CMD: it chooses the directory and takes
// what is in it.
func (t *Transform) pick(ctx context.Context, repo tree) (Result, error) {
	last := t.searched
	t.searched = searched{} // after a failure it is not known what was fetched
	source, err := t.choose(repo)
	if err != nil {
		return Result{}, err
	}
	if err := repo.fetch(ctx, ignoreFile, source.Dir); err != nil {
		return Result{}, err
	}
	ignore, err := readIgnore(repo)
	if err != nil {
		return Result{}, err
	}
	if last.ignore != ignore.text || last.dir != source.Dir {
		last.found = nil
	}
	found, err := t.manifests(ctx, repo, source.Dir, ignore, last.found)
	if source.Kind == KindYMLDir && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("YMLDIR %q: nothing is applied or pruned: %w", source.Dir, err)
	}
	if err != nil {
		return Result{}, err
	}
	t.searched = searched{ignore.text, source.Dir, found.search}
	source.Builder = found.builder
	return Result{Files: found.files, Source: source, Notes: found.notes}, nil
}

// choose says which directory, or single file, of the repository counts.
func (t *Transform) choose(repo tree) (Source, error) {
	if t.ymlDir != "" {
		return Source{Kind: KindYMLDir, Dir: t.ymlDir}, nil
	}
	if t.options.ConventionalDir {
		_, info, err := repo.stat(conventionalDir)
		if err == nil && info.IsDir() {
			return Source{Kind: KindConventional, Dir: conventionalDir}, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Source{}, fmt.Errorf("look for %s/ in the repository: %w", conventionalDir, err)
		}
	}
	return Source{Kind: KindRoot, Dir: "."}, nil
}

// manifests are those of a directory, and what made them of its files.
type manifests struct {
	files   *fileSet
	search  *search // that found them, nil if none did
	notes   []string
	builder string // as in Source
}

// manifests returns the manifests of a directory of a tree: what kustomize builds of
// it, if it is a kustomization, else its files. A single file is one itself. before is
// what a search for them found in the revision before, nil if that is not known.
func (t *Transform) manifests(ctx context.Context, from tree, name string, ignore ignorer, before *search) (manifests, error) {
	resolved, info, err := from.stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return manifests{}, fmt.Errorf("%s is not there: %w", name, fs.ErrNotExist)
	case err != nil:
		return manifests{}, fmt.Errorf("look for %s: %w", name, err)
	case info.Mode().IsRegular():
		single := node{file: file{hash: hashOf(info), resolved: resolved}}
		return manifests{files: &fileSet{under(name, single), from}}, nil
	case !info.IsDir():
		return manifests{}, notRegular(name, info.Mode())
	}
	dir := directory{name, resolved}
	file, err := findKustomization(from, dir, ignore)
	if err != nil {
		return manifests{}, err
	}
	if file != "" {
		files, notes, err := t.kustomize(ctx, from, resolved, file)
		return manifests{files: newFileSet(files), notes: notes, builder: BuiltByKustomize}, err
	}
	finder := finder{tree: from, ignore: ignore, recursive: t.options.Recursive, limits: t.options.Limits}
	search, err := finder.find(ctx, dir, knownByHash(info, nil), before)
	if err != nil {
		return manifests{}, err
	}
	if len(search.found.nodes) == 0 {
		return manifests{files: &fileSet{search.found, from}, search: search, notes: []string{t.nothingIn(dir)}}, nil
	}
	return manifests{files: &fileSet{under(name, node{folder: search.found}), from}, search: search}, nil
}

// nothingIn says that a directory holds no manifests.
func (t *Transform) nothingIn(dir directory) string {
	depth := ", which is looked at one level deep"
	if t.options.Recursive {
		depth = ""
	}
	return fmt.Sprintf("there are no .yaml, .yml or .json files in %s%s", dir.name, depth)
}

// findKustomization returns the name of the file that makes a directory a
// kustomization, "" if it is none.
func findKustomization(from tree, dir directory, ignore ignorer) (string, error) {
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		_, err := fs.Lstat(from.fsys, path.Join(dir.resolved, base))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("look for %s in %s: %w", base, dir.name, err)
		case !ignore.ignores(path.Join(dir.name, base), false):
			return base, nil
		}
	}
	return "", nil
}
