package transform

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// fileSet is a read-only file system that holds exactly the given files, and the
// directories above them. It implements fs.ReadFileFS, fs.ReadDirFS and fs.StatFS.
type fileSet struct {
	root *folder
	from tree // that files are read from which are not held; its zero value if all are
}

// folder is a directory of a fileSet. No one changes it: revisions share those that are the
// same in both, so nothing in it refers to a revision.
type folder struct {
	nodes []node // sorted by name
	// hash is one of the names in it, and of what they stand for; "" if not all of that
	// has a hash.
	hash string
}

// node is what a name in a directory stands for.
type node struct {
	name   string
	folder *folder // nil of a file
	file   file
}

// file is a file of a fileSet: one of a tree, which is read from there whenever it is asked
// for, or one that CMD or kustomize made, held in memory.
type file struct {
	// hash is what git knows, or would know, the content by, in hex; "" if that is not
	// known.
	hash     string
	resolved string // its name in the tree; "" of one that is held
	data     []byte
}

// newFolder makes a directory.
func newFolder(nodes []node) *folder {
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.name, b.name) })
	return &folder{nodes: nodes, hash: hashNodes(nodes)}
}

// hashNodes hashes what is in a directory. No name has a NUL.
func hashNodes(nodes []node) string {
	var text []byte
	for _, n := range nodes {
		kind, hash := "file", n.file.hash
		if n.folder != nil {
			kind, hash = "directory", n.folder.hash
		}
		if hash == "" {
			return ""
		}
		for _, part := range []string{kind, n.name, hash} {
			text = append(append(text, part...), 0)
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// under returns the root of a file system that holds nothing but a node, at a path.
func under(name string, n node) *folder {
	for name != "." {
		n.name = path.Base(name)
		n = node{folder: newFolder([]node{n})}
		name = path.Dir(name)
	}
	return n.folder
}

// newFileSet makes a file system of files that are held, by their paths. A path that is
// also the directory of another one is not supported.
func newFileSet(files map[string][]byte) *fileSet {
	type draft struct {
		nodes []node
		below map[string]*draft
	}
	root := new(draft)
	for name, data := range files {
		at := root
		dir, base := path.Split(name)
		for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
			if part == "" {
				continue
			}
			if at.below == nil {
				at.below = map[string]*draft{}
			}
			if at.below[part] == nil {
				at.below[part] = new(draft)
			}
			at = at.below[part]
		}
		hash := plumbing.ComputeHash(plumbing.BlobObject, data).String()
		at.nodes = append(at.nodes, node{name: base, file: file{hash: hash, data: data}})
	}
	var fold func(*draft) *folder
	fold = func(d *draft) *folder {
		for name, below := range d.below {
			d.nodes = append(d.nodes, node{name: name, folder: fold(below)})
		}
		return newFolder(d.nodes)
	}
	return &fileSet{root: fold(root)}
}

// made reports whether all files are held in memory.
func (s *fileSet) made() bool { return s.from.fsys == nil }

// node returns what a name stands for.
func (s *fileSet) node(op, name string) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := node{name: ".", folder: s.root}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		var found bool
		if at, found = at.folder.node(part); !found {
			return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return at, nil
}

// node returns what a name in a directory stands for. In what is none there is nothing.
func (f *folder) node(name string) (node, bool) {
	if f == nil {
		return node{}, false
	}
	i, found := slices.BinarySearchFunc(f.nodes, name, func(n node, name string) int { return cmp.Compare(n.name, name) })
	if !found {
		return node{}, false
	}
	return f.nodes[i], true
}

// Open implements fs.FS.
func (s *fileSet) Open(name string) (fs.File, error) {
	info, err := s.stat("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		entries, err := s.ReadDir(name)
		return &openDir{info: info, entries: entries}, err
	}
	data, err := s.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info, Reader: bytes.NewReader(data)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (s *fileSet) ReadFile(name string) ([]byte, error) {
	n, err := s.node("read", name)
	if err == nil && n.folder != nil {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	if n.file.resolved == "" {
		return slices.Clone(n.file.data), nil
	}
	data, err := s.from.readFile(n.file.resolved)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// Stat implements fs.StatFS. The FileInfo has a method Hash() string.
func (s *fileSet) Stat(name string) (fs.FileInfo, error) { return s.stat("stat", name) }

func (s *fileSet) stat(op, name string) (fs.FileInfo, error) {
	n, err := s.node(op, name)
	if err != nil {
		return nil, err
	}
	info, err := s.info(n)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return info, nil
}

// info describes what a name stands for.
func (s *fileSet) info(n node) (fs.FileInfo, error) {
	switch {
	case n.folder != nil:
		return fileInfo{name: n.name, mode: fs.ModeDir | 0o555, sized: bytesSize(0), hash: n.folder.hash}, nil
	case n.file.resolved == "":
		return fileInfo{name: n.name, mode: 0o444, sized: bytesSize(len(n.file.data)), hash: n.file.hash}, nil
	case n.file.hash != "":
		return fileInfo{name: n.name, mode: 0o444, sized: sizeOf{s.from, n.file.resolved}, hash: n.file.hash}, nil
	}
	info, err := fs.Lstat(s.from.fsys, n.file.resolved)
	if err != nil {
		return nil, err
	}
	return fileInfo{name: n.name, mode: 0o444, sized: info, hash: hashOf(info)}, nil
}

// sized knows the size of a file in bytes. It is asked for last: git does not know it of
// content that is not there yet.
type sized interface{ Size() int64 }

// bytesSize is the size of something that is held.
type bytesSize int64

func (s bytesSize) Size() int64 { return int64(s) }

// sizeOf is that of a file of a tree; -1 if that cannot be had.
type sizeOf struct {
	tree
	resolved string
}

func (s sizeOf) Size() int64 {
	info, err := fs.Lstat(s.fsys, s.resolved)
	if err != nil {
		return -1
	}
	return info.Size()
}

// ReadDir implements fs.ReadDirFS.
func (s *fileSet) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := s.node("readdir", name)
	if err == nil && n.folder == nil {
		err = &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, len(n.folder.nodes))
	for i := range entries {
		entries[i] = dirEntry{s, &n.folder.nodes[i]}
	}
	return entries, nil
}

// dirEntry asks for the details of a file only when they are wanted: for files
// in git they may have to be fetched.
type dirEntry struct {
	set *fileSet
	*node
}

func (e dirEntry) Name() string { return e.name }
func (e dirEntry) IsDir() bool  { return e.folder != nil }
func (e dirEntry) Type() fs.FileMode {
	if e.IsDir() {
		return fs.ModeDir
	}
	return 0
}
func (e dirEntry) Info() (fs.FileInfo, error) { return e.set.info(*e.node) }
func (e dirEntry) String() string             { return fs.FormatDirEntry(e) }

// fileInfo describes a file or directory of a fileSet. Everything in it is a
// function of the content, so there is no modification time.
type fileInfo struct {
	name string
	mode fs.FileMode
	sized
	hash string
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) String() string     { return fs.FormatFileInfo(i) }

// Hash returns the hash git knows a file's content by, in hex, and of a directory one of
// all that is in it; "" if it is not known.
func (i fileInfo) Hash() string { return i.hash }

type openFile struct {
	info fs.FileInfo
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: fs.ErrInvalid}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	entries := d.entries[:n]
	d.entries = d.entries[n:]
	return entries, nil
}

// hashed is a file or directory, or what describes one, that is known by a hash of what is
// in it.
type hashed interface{ Hash() string }

// hashOf returns the hash that something is known by, "" if it has none.
func hashOf(info fs.FileInfo) string {
	if known, ok := info.(hashed); ok {
		return known.Hash()
	}
	return ""
}

// knownByHash returns what describes a file or directory, nil if that has no hash.
func knownByHash(info fs.FileInfo, err error) fs.FileInfo {
	if err != nil || hashOf(info) == "" {
		return nil // reading what fails here will fail too, and be reported
	}
	return info
}
