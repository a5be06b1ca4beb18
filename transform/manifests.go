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

	seen int // entries looked at so far
	// What is to be fetched of the manifests found: those that a directory described,
	// and the names of others.
	described []fs.FileInfo
	others    []string
}

// directory is a directory on the way of a search: the path as the user knows
// it, and the one that is left when all links are resolved.
type directory struct {
	name, resolved string
}

// search is what was found in a directory. No one changes it. The next revision takes it
// over for a directory that is the same, without looking into that again.
type search struct {
	resolved string
	// hash is what the directory is known by; "" if it has none, or if what was found
	// depends on more than what is in it, as a link in it is followed.
	hash  string
	seen  int // entries looked at, here and below
	found *folder
	below map[string]*search // of the directories in it, by name
}

// in returns what was found in a directory of a directory, nil if it was not there.
func (s *search) in(name string) *search {
	if s == nil {
		return nil
	}
	return s.below[name]
}

// find returns what is found below dir, which info describes. before is what was found
// there in the revision before, by the same rules; nil if that is not known.
func (f *finder) find(ctx context.Context, dir directory, info fs.FileInfo, before *search) (*search, error) {
	if f.recursive {
		if err := f.tree.fetchBelow(ctx, dir.resolved); err != nil {
			return nil, err
		}
	}
	found, err := f.search(ctx, dir, info, nil, before)
	if err != nil {
		return nil, err
	}
	if err := f.tree.fetchFiles(ctx, f.described); err != nil {
		return nil, err
	}
	return found, f.tree.fetch(ctx, f.others...)
}

// search looks through dir. above holds the directories that lead here, by their resolved
// names, to notice a link back to one of them.
func (f *finder) search(ctx context.Context, dir directory, info fs.FileInfo, above []string, before *search) (*search, error) {
	result := &search{resolved: dir.resolved, hash: hashOf(info)}
	// The tree is asked of each directory: what it keeps of this revision it has for the next.
	if result.hash != "" && f.tree.keep(info) && f.repeats(before, result) {
		f.seen += before.seen
		return before, nil
	}
	entries, err := fs.ReadDir(f.tree.fsys, dir.resolved)
	if err != nil {
		return nil, fmt.Errorf("read directory %s: %w%s", dir.name, err, f.advice())
	}
	first := f.seen
	f.seen += len(entries)
	if err := f.limits.Check(limits.Entries, dir.name, int64(f.seen)); err != nil {
		return nil, fmt.Errorf("%w; or narrow it down with YMLDIR", err)
	}
	links := f.links(dir, entries)
	if err := f.tree.fetch(ctx, links...); err != nil {
		return nil, err
	}
	if len(links) > 0 {
		result.hash = ""
	}
	above = append(above, dir.resolved)
	var nodes []node
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		child := directory{path.Join(dir.name, entry.Name()), path.Join(dir.resolved, entry.Name())}
		if !utf8.ValidString(entry.Name()) {
			if f.reads(child, entry.Type()) {
				return nil, fmt.Errorf("the name of %q is not UTF-8: rename it%s", child.name, f.advice())
			}
			continue
		}
		mode := entry.Type()
		var info fs.FileInfo // nil if it has no hash
		if mode&fs.ModeSymlink != 0 {
			if child, mode, info, err = f.follow(ctx, child); err != nil {
				return nil, err
			}
		} else {
			info = knownByHash(entry.Info())
		}
		switch {
		case !f.wants(child, mode):
		case mode.IsDir():
			below, err := f.descend(ctx, child, info, above, before.in(entry.Name()))
			if err != nil {
				return nil, err
			}
			result.add(entry.Name(), below)
			if len(below.found.nodes) > 0 {
				nodes = append(nodes, node{name: entry.Name(), folder: below.found})
			}
		case !mode.IsRegular():
			return nil, notRegular(child.name, mode)
		default:
			nodes = append(nodes, node{name: entry.Name(), file: f.take(child, info)})
		}
	}
	result.seen = f.seen - first
	result.found = newFolder(nodes)
	return result, nil
}

// repeats reports whether a search can only find what one before found. If it comes upon
// too many entries, that is to be said of the right directory.
func (f *finder) repeats(before, now *search) bool {
	return before != nil && before.hash == now.hash && before.resolved == now.resolved &&
		f.limits.Check(limits.Entries, "", int64(f.seen+before.seen)) == nil
}

// add notes what was found in a directory of a directory.
func (s *search) add(name string, below *search) {
	if s.below == nil {
		s.below = map[string]*search{}
	}
	s.below[name] = below
	if below.hash == "" {
		s.hash = ""
	}
}

// descend looks through a directory on the way.
func (f *finder) descend(ctx context.Context, dir directory, info fs.FileInfo, above []string, before *search) (*search, error) {
	for _, over := range above {
		if over == dir.resolved {
			return nil, fmt.Errorf("symbolic link %s leads back to the directory %s that it is in: the links go in a circle%s", dir.name, over, f.advice())
		}
	}
	return f.search(ctx, dir, info, above, before)
}

// take notes a manifest as one to be fetched. info describes it, nil if nothing does by hash.
func (f *finder) take(child directory, info fs.FileInfo) file {
	if info == nil {
		f.others = append(f.others, child.resolved)
	} else {
		f.described = append(f.described, info)
	}
	return file{resolved: child.resolved, hash: hashOf(info)}
}

// wants reports whether an entry, links resolved, is a manifest or a directory of some.
func (f *finder) wants(child directory, mode fs.FileMode) bool {
	if mode&fs.ModeSymlink != 0 || f.ignore.ignores(child.name, mode.IsDir()) {
		return false
	}
	if mode.IsDir() {
		return f.recursive
	}
	return isManifest(child.name)
}

// reads reports whether an entry would be read: what is no manifest may have any name.
func (f *finder) reads(child directory, mode fs.FileMode) bool {
	if mode&fs.ModeSymlink != 0 {
		return f.follows(child)
	}
	return f.wants(child, mode)
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
