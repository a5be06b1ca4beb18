package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/repo/pack"
)

// maxLinks is how many symlinks a path may lead over, Linux' own limit.
const maxLinks = 40

// files is a revision as an fs.FS. It implements fs.ReadDirFS, fs.ReadFileFS,
// fs.StatFS and fs.ReadLinkFS, and its fs.FileInfo implement
// interface{ Hash() string }: the git hash of the content in hexadecimal. Symlinks
// are followed, as os.DirFS does, but only to targets inside the repository. All
// methods may be called by many goroutines.
type files struct {
	from  pack.Objects
	root  plumbing.Hash // the tree
	when  time.Time     // modification time of everything: git keeps none
	trees *treeCache
}

// newFiles returns the files of a tree. ctx is for those that have to be fetched.
func newFiles(ctx context.Context, from pack.Objects, root plumbing.Hash, when time.Time) *files {
	f := &files{from: from, root: root, when: when, trees: new(treeCache)}
	return f.within(ctx)
}

// within returns the same files, for what is fetched while ctx lasts.
func (f *files) within(ctx context.Context) *files {
	out := *f
	switch from := f.from.(type) {
	case *store:
		out.from = lazy{from, ctx}
	case lazy:
		out.from = lazy{from.store, ctx}
	}
	return &out
}

// Fetch gets, in one request, what is not held of the content of files and symlinks
// and of the lists of directories. Names of nothing are skipped: reading
// them is an error.
func (f *files) Fetch(ctx context.Context, names ...string) error {
	lazily, ok := f.from.(lazy)
	if !ok {
		return nil
	}
	var hashes []plumbing.Hash
	for _, name := range names {
		e, err := f.within(ctx).find("fetch", name, false)
		switch {
		case isFetchError(err):
			return err
		case err == nil:
			hashes = append(hashes, e.hash)
		}
	}
	return lazily.need(ctx, hashes, false)
}

// FetchFiles gets, in one request, what is not held of the content of files, which
// a directory of this revision has described.
func (f *files) FetchFiles(ctx context.Context, infos ...fs.FileInfo) error {
	lazily, ok := f.from.(lazy)
	if !ok {
		return nil
	}
	hashes := make([]plumbing.Hash, 0, len(infos))
	for _, info := range infos {
		if known, ok := info.(fileInfo); ok {
			hashes = append(hashes, known.hash)
		}
	}
	return lazily.need(ctx, hashes, false)
}

// FetchBelow gets the lists of a directory and of all below it. The name of nothing
// is skipped.
func (f *files) FetchBelow(ctx context.Context, dir string) error {
	lazily, ok := f.from.(lazy)
	if !ok {
		return nil
	}
	e, err := f.within(ctx).find("fetch", dir, true)
	if isFetchError(err) {
		return err
	}
	if err != nil || e.mode != filemode.Dir {
		return nil
	}
	return lazily.lists(ctx, e.hash)
}

// Keep notes that a directory, which this revision has described, is used as it is: what
// was fetched below it, in the revision before too, is held as long as revisions have it
// and keep it. It reports whether one did before; if not, what is needed has to be fetched.
func (f *files) Keep(dir fs.FileInfo) bool {
	lazily, ok := f.from.(lazy)
	if !ok {
		return true
	}
	known, ok := dir.(fileInfo)
	return ok && lazily.keep(known.hash)
}

// isFetchError distinguishes an object that could not be fetched from a file that is not
// there.
func isFetchError(err error) bool {
	var fetch *explained
	return errors.As(err, &fetch)
}

// entry is a file found: a tree entry that knows its whole path.
type entry struct {
	path string // in the repository, symlinks resolved; "." for the root
	mode filemode.FileMode
	hash plumbing.Hash
}

// Open implements fs.FS.
func (f *files) Open(name string) (fs.File, error) {
	e, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	info := f.info(path.Base(name), e)
	if info.IsDir() {
		list, err := f.list(e)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &openDir{info: info, path: name, rest: list}, nil
	}
	content, err := pack.ReadBlob(f.from, e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{Reader: bytes.NewReader(content), info: info}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *files) ReadFile(name string) ([]byte, error) {
	e, err := f.find("read", name, true)
	if err != nil {
		return nil, err
	}
	if e.mode == filemode.Dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is a directory")}
	}
	content, err := pack.ReadBlob(f.from, e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := f.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	list, err := f.list(e)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return list, nil
}

// Stat implements fs.StatFS. It follows symlinks.
func (f *files) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat implements fs.ReadLinkFS. It does not follow a symlink.
func (f *files) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *files) stat(op, name string, follow bool) (fs.FileInfo, error) {
	e, err := f.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	return f.info(path.Base(name), e), nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *files) ReadLink(name string) (string, error) {
	e, err := f.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if e.mode != filemode.Symlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	target, err := pack.ReadLink(f.from, e.hash)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

// find walks down to name. Symlinks on the way are followed, name itself only if
// follow says so. A submodule is found, what is in it is not, and nothing but
// stat is done with it.
func (f *files) find(op, name string, follow bool) (entry, error) {
	fail := func(err error) (entry, error) {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	w := walk{files: f, at: []entry{{path: ".", mode: filemode.Dir, hash: f.root}}, rest: strings.Split(name, "/")}
	for len(w.rest) > 0 {
		if err := w.step(follow); err != nil {
			return fail(err)
		}
	}
	e := w.at[len(w.at)-1]
	if e.mode == filemode.Submodule && op != "stat" && op != "lstat" {
		return fail(errSubmodule(e))
	}
	return e, nil
}

// walk is a way through the trees.
type walk struct {
	*files
	at    []entry  // from the root to where it is
	rest  []string // names still to go
	links int      // symlinks followed
}

// step takes the next name.
func (w *walk) step(follow bool) error {
	name := w.rest[0]
	w.rest = w.rest[1:]
	here := w.at[len(w.at)-1]
	switch name {
	case "", ".":
		return nil
	case "..":
		if len(w.at) == 1 {
			return errOutside
		}
		w.at = w.at[:len(w.at)-1]
		return nil
	}
	switch here.mode {
	case filemode.Dir:
	case filemode.Submodule:
		return errSubmodule(here)
	default:
		return fs.ErrNotExist // below a file there is nothing
	}
	if err := pack.CheckDepth(w.from, int64(len(w.at)-1)); err != nil {
		return err
	}
	next, err := w.child(here, name)
	if err != nil {
		return err
	}
	if next.mode == filemode.Symlink && (follow || len(w.rest) > 0) {
		return w.followLink(next)
	}
	w.at = append(w.at, next)
	return nil
}

var errOutside = errors.New("it leads over a symlink to outside the repository")

func (w *walk) followLink(link entry) error {
	w.links++
	if w.links > maxLinks {
		return errors.New("too many symlinks, they may lead in a circle")
	}
	target, err := pack.ReadLink(w.from, link.hash)
	if err != nil {
		return err
	}
	if path.IsAbs(target) {
		return errOutside
	}
	w.rest = append(strings.Split(target, "/"), w.rest...)
	return nil
}

func errSubmodule(e entry) error {
	return fmt.Errorf("%s is a submodule (at commit %s), and submodules are not followed", e.path, e.hash)
}

// child returns a directory's entry of that name.
func (f *files) child(dir entry, name string) (entry, error) {
	t, err := f.tree(dir.hash)
	if err != nil {
		return entry{}, err
	}
	i, ok := t.byName[name]
	if !ok {
		return entry{}, fs.ErrNotExist
	}
	return dir.child(t.entries[i]), nil
}

func (e entry) child(of object.TreeEntry) entry {
	return entry{path: path.Join(e.path, of.Name), mode: of.Mode, hash: of.Hash}
}

// list returns what a directory holds, sorted by name.
func (f *files) list(dir entry) ([]fs.DirEntry, error) {
	if dir.mode != filemode.Dir {
		return nil, errors.New("not a directory")
	}
	t, err := f.tree(dir.hash)
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, 0, len(t.entries))
	for _, e := range t.entries {
		list = append(list, dirEntry{f, e.Name, dir.child(e)})
	}
	// git sorts directories as if their name ended in a slash.
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// info describes an entry under the name it was asked for by.
func (f *files) info(name string, e entry) fs.FileInfo {
	return fileInfo{name: name, when: f.when, from: f.from, entry: e}
}

// fsMode translates git's modes. A submodule is a directory with ModeIrregular,
// by which a walk can recognize it.
func fsMode(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Submodule:
		return fs.ModeDir | fs.ModeIrregular | 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Executable:
		return 0o755
	default:
		return 0o644
	}
}

// fileInfo implements fs.FileInfo.
type fileInfo struct {
	name string
	when time.Time
	from pack.Objects
	entry
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Mode() fs.FileMode  { return fsMode(i.mode) }
func (i fileInfo) ModTime() time.Time { return i.when }
func (i fileInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i fileInfo) Sys() any           { return nil }

// Size returns the size of a file's content, 0 of a directory. It is found out when
// it is asked for, as it takes the content, and -1 where that cannot be had.
func (i fileInfo) Size() int64 {
	if i.IsDir() {
		return 0
	}
	size, err := i.from.Size(i.hash)
	if err != nil {
		return -1
	}
	return size
}

// Hash returns the git hash of the content in hexadecimal: of a file its blob's,
// of a symlink that of its target's name, of a directory its tree's, of a
// submodule the commit it is at.
func (i fileInfo) Hash() string { return i.hash.String() }

// dirEntry implements fs.DirEntry.
type dirEntry struct {
	files *files
	name  string
	entry entry
}

func (d dirEntry) Name() string               { return d.name }
func (d dirEntry) IsDir() bool                { return d.Type().IsDir() }
func (d dirEntry) Type() fs.FileMode          { return fsMode(d.entry.mode).Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.files.info(d.name, d.entry), nil }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// openFile implements fs.File, and io.Seeker and io.ReaderAt.
type openFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (o *openFile) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openFile) Close() error               { return nil }

// openDir implements fs.ReadDirFile.
type openDir struct {
	info fs.FileInfo
	path string
	rest []fs.DirEntry
}

func (o *openDir) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *openDir) Close() error               { return nil }

func (o *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.path, Err: errors.New("is a directory")}
}

func (o *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(o.rest)
	} else if len(o.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.rest))
	list := o.rest[:n]
	o.rest = o.rest[n:]
	return list, nil
}
