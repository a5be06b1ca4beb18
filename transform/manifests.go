package transform

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/kubesync/kubesync/internal/limits"
)

// finder looks for the manifests in a directory of a tree.
type finder struct {
	tree      tree
	ignore    ignorer
	recursive bool
	limits    limits.Limits
	seen      int // entries looked at so far
}

// directory is a directory on the way of a search: the path as the user knows
// it, and the one that is left when all links are resolved.
type directory struct {
	name, resolved string
}

// find returns the manifests below dir, keyed by their path.
func (f *finder) find(ctx context.Context, dir directory) (map[string]sourceFile, error) {
	found := map[string]sourceFile{}
	if f.recursive {
		if err := f.tree.fetchBelow(ctx, dir.resolved); err != nil {
			return nil, err
		}
	}
	if err := f.walk(ctx, dir, nil, found); err != nil {
		return nil, err
	}
	return found, nil
}

// walk adds the manifests of dir to found. above holds the directories that lead
// here, by their resolved names, to notice a link back to one of them.
func (f *finder) walk(ctx context.Context, dir directory, above []string, found map[string]sourceFile) error {
	entries, err := fs.ReadDir(f.tree.fsys, dir.resolved)
	if err != nil {
		return fmt.Errorf("read directory %s: %w%s", dir.name, err, f.advice())
	}
	f.seen += len(entries)
	if err := f.limits.Check(limits.Entries, dir.name, int64(f.seen)); err != nil {
		return fmt.Errorf("%w; or narrow it down with YMLDIR", err)
	}
	if err := f.tree.fetch(ctx, f.links(dir, entries)...); err != nil {
		return err
	}
	above = append(above, dir.resolved)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		child := directory{path.Join(dir.name, entry.Name()), path.Join(dir.resolved, entry.Name())}
		if !utf8.ValidString(entry.Name()) {
			if f.reads(child, entry.Type()) {
				return fmt.Errorf("the name of %q is not UTF-8: rename it%s", child.name, f.advice())
			}
			continue
		}
		mode, file := entry.Type(), sourceFile{tree: f.tree}
		if mode&fs.ModeSymlink != 0 {
			child, mode, file.info, err = f.follow(ctx, child)
			if err != nil {
				return err
			}
		} else if mode.IsRegular() {
			file.info = knownByHash(entry.Info())
		}
		file.resolved = child.resolved
		if err := f.add(ctx, child, mode, file, above, found); err != nil {
			return err
		}
	}
	return nil
}

// add puts a manifest into found, or what is below a directory.
func (f *finder) add(ctx context.Context, child directory, mode fs.FileMode, file sourceFile, above []string, found map[string]sourceFile) error {
	switch {
	case mode&fs.ModeSymlink != 0 || f.ignore.ignores(child.name, mode.IsDir()):
		return nil
	case mode.IsDir():
		if !f.recursive {
			return nil
		}
		for _, dir := range above {
			if dir == child.resolved {
				return fmt.Errorf("symbolic link %s leads back to the directory %s that it is in: the links go in a circle%s", child.name, dir, f.advice())
			}
		}
		return f.walk(ctx, child, above, found)
	case !isManifest(child.name):
		return nil
	case !mode.IsRegular():
		return notRegular(child.name, mode)
	}
	found[child.name] = file
	return nil
}

// reads reports whether an entry would be read: what is no manifest may have any name.
func (f *finder) reads(child directory, mode fs.FileMode) bool {
	if mode.IsDir() {
		return f.recursive && !f.ignore.ignores(child.name, true)
	}
	if mode&fs.ModeSymlink != 0 {
		return f.follows(child)
	}
	return isManifest(child.name) && !f.ignore.ignores(child.name, false)
}

// follow resolves a symbolic link. What it leads to comes back with its mode; the
// mode stays that of a link if it is none of our business: a link that is
// ignored, that cannot lead to a manifest, or to nothing and is not named like one.
func (f *finder) follow(ctx context.Context, link directory) (directory, fs.FileMode, fs.FileInfo, error) {
	if !f.follows(link) {
		return link, fs.ModeSymlink, nil, nil
	}
	wanted := isManifest(link.name)
	resolved, info, err := f.tree.stat(link.resolved)
	if errors.Is(err, fs.ErrNotExist) && !wanted {
		return link, fs.ModeSymlink, nil, nil
	}
	if err != nil {
		// A linkError names the link itself.
		if !isLinkError(err) {
			err = fmt.Errorf("follow symbolic link %s: %w", link.name, err)
		}
		return link, 0, nil, fmt.Errorf("%w%s", err, f.advice())
	}
	if info.IsDir() && f.recursive {
		err = f.tree.fetchBelow(ctx, resolved)
	}
	return directory{link.name, resolved}, info.Mode().Type(), knownByHash(info, nil), err
}

// follows reports whether it is of interest where a symbolic link leads.
func (f *finder) follows(link directory) bool {
	return (isManifest(link.name) || f.recursive) && !f.ignore.ignores(link.name, false)
}

// links returns the symbolic links in a directory that are followed.
func (f *finder) links(dir directory, entries []fs.DirEntry) []string {
	var names []string
	for _, entry := range entries {
		link := directory{path.Join(dir.name, entry.Name()), path.Join(dir.resolved, entry.Name())}
		if entry.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(entry.Name(), ".") && f.follows(link) {
			names = append(names, link.resolved)
		}
	}
	return names
}

// advice is what can be done about an entry that is in the way.
func (f *finder) advice() string {
	return fmt.Sprintf(" (if it is not meant to be applied, name it in %s)", ignoreFile)
}

// isManifest reports by its name whether a file is a manifest.
func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
