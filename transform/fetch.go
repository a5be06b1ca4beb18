package transform

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// fetcher is implemented by a revision's files where they may have to be fetched to be
// read. Each file would be a request of its own if no one said beforehand which are
// needed.
type fetcher interface {
	// Fetch gets the content of files and links, and the lists of directories.
	// Names of nothing are skipped.
	Fetch(ctx context.Context, names ...string) error
	// FetchFiles gets the content of files that a directory of the revision described.
	FetchFiles(ctx context.Context, files ...fs.FileInfo) error
	// FetchBelow gets the lists of a directory and of all directories below it.
	FetchBelow(ctx context.Context, dir string) error
	// Keep holds on to what was fetched below a directory, which the revision has
	// described. It reports whether the revision before did, so that nothing is missing.
	Keep(dir fs.FileInfo) bool
}

// fetch gets what will be read of a tree.
func (t tree) fetch(ctx context.Context, names ...string) error {
	from, ok := t.fsys.(fetcher)
	if !ok || len(names) == 0 {
		return nil
	}
	if err := from.Fetch(ctx, names...); err != nil {
		return fmt.Errorf("fetch %d files of %s: %w", len(names), t.what, err)
	}
	return nil
}

// fetchFiles gets files of a tree that a directory described.
func (t tree) fetchFiles(ctx context.Context, files []fs.FileInfo) error {
	from, ok := t.fsys.(fetcher)
	if !ok || len(files) == 0 {
		return nil
	}
	if err := from.FetchFiles(ctx, files...); err != nil {
		return fmt.Errorf("fetch %d files of %s: %w", len(files), t.what, err)
	}
	return nil
}

// keep holds on to what was fetched below a directory, and reports whether nothing that
// the revision before had of it is missing.
func (t tree) keep(dir fs.FileInfo) bool {
	from, ok := t.fsys.(fetcher)
	return !ok || from.Keep(dir)
}

// fetchBelow gets the lists of all directories below one.
func (t tree) fetchBelow(ctx context.Context, dir string) error {
	from, ok := t.fsys.(fetcher)
	if !ok {
		return nil
	}
	if err := from.FetchBelow(ctx, dir); err != nil {
		return fmt.Errorf("fetch the directories below %s: %w", dir, err)
	}
	return nil
}

// fetchKustomization gets what a kustomization refers to, and what that refers to. What
// is wrong with any of it is left to kustomize; what is not found this way is fetched
// when it is read.
func (t tree) fetchKustomization(ctx context.Context, name string) error {
	if _, ok := t.fsys.(fetcher); !ok {
		return nil
	}
	seen := map[string]bool{name: true}
	for next := []string{name}; len(next) > 0; {
		if err := t.fetch(ctx, next...); err != nil {
			return err
		}
		var uses []string
		for _, name := range next {
			for _, use := range t.uses(name) {
				if !seen[use] {
					seen[use] = true
					uses = append(uses, use)
				}
			}
		}
		if err := t.fetch(ctx, uses...); err != nil {
			return err
		}
		next = t.kustomizations(uses)
	}
	return nil
}

// uses returns what a kustomization refers to in the tree.
func (t tree) uses(name string) []string {
	text, err := t.readFile(name)
	if err != nil {
		return nil
	}
	var k types.Kustomization
	if err := k.Unmarshal(text); err != nil {
		return nil
	}
	var names []string
	for _, use := range references(k) {
		inside := path.Join(path.Dir(name), use.to)
		if use.to != "" && !isDocument(use.to) && !isRemote(use.to) && !path.IsAbs(use.to) && fs.ValidPath(inside) {
			names = append(names, inside)
		}
	}
	return names
}

// kustomizations returns the kustomizations in those of some paths that are
// directories.
func (t tree) kustomizations(names []string) []string {
	var found []string
	for _, name := range names {
		resolved, info, err := t.stat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		for _, base := range konfig.RecognizedKustomizationFileNames() {
			if _, err := fs.Lstat(t.fsys, path.Join(resolved, base)); err == nil {
				found = append(found, path.Join(resolved, base))
			}
		}
	}
	return found
}
