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

// pick finds the manifests where there is no CMD: it chooses the directory and takes
// what is in it.
func (t *Transform) pick(ctx context.Context, repo tree) (Result, error) {
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
	found, err := t.manifests(ctx, repo, source.Dir, ignore)
	if source.Kind == KindYMLDir && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("YMLDIR %q: nothing is applied or pruned: %w", source.Dir, err)
	}
	if err != nil {
		return Result{}, err
	}
	source.Builder = found.builder
	return Result{Files: newFileSet(found.files), Source: source, Notes: found.notes}, nil
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
	files   map[string]content
	notes   []string
	builder string // as in Source
}

// manifests returns the manifests of a directory of a tree: what kustomize builds of
// it, if it is a kustomization, else its files. A single file is one itself.
func (t *Transform) manifests(ctx context.Context, from tree, name string, ignore ignorer) (manifests, error) {
	resolved, info, err := from.stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return manifests{}, fmt.Errorf("%s is not there: %w", name, fs.ErrNotExist)
	case err != nil:
		return manifests{}, fmt.Errorf("look for %s: %w", name, err)
	case info.Mode().IsRegular():
		return manifests{files: map[string]content{name: sourceFile{tree: from, resolved: resolved}}}, nil
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
		return manifests{files, notes, BuiltByKustomize}, err
	}
	finder := finder{tree: from, ignore: ignore, recursive: t.options.Recursive, limits: t.options.Limits}
	found, err := finder.find(ctx, dir)
	if err != nil {
		return manifests{}, err
	}
	if err := from.fetchFiles(ctx, found); err != nil {
		return manifests{}, err
	}
	files := make(map[string]content, len(found))
	for name, file := range found {
		files[name] = file
	}
	if len(files) == 0 {
		return manifests{files: files, notes: []string{t.nothingIn(dir)}}, nil
	}
	return manifests{files: files}, nil
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
