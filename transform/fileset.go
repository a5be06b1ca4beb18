package transform

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// fileSet is a read-only file system that holds exactly the given files, and the
// directories above them. It implements fs.ReadFileFS, fs.ReadDirFS and fs.StatFS.
type fileSet struct {
	files map[string]content
	// dirs holds the names of what is in each directory, sorted.
	dirs map[string][]string
}

// content is where the bytes of one file come from.
type content interface {
	read() ([]byte, error)
	// describe returns what knows the size in bytes, and the hash git would know the
	// content by, in hex; the hash is empty if the source knows none. The size is
	// asked for last: git does not know it of content that is not there yet.
	describe() (sized, string, error)
}

type sized interface{ Size() int64 }

// bytesSize is the size of something that is held.
type bytesSize int64

func (s bytesSize) Size() int64 { return int64(s) }

// newFileSet makes a file system of files keyed by their paths. A path that is
// also the directory of another one is not supported.
func newFileSet(files map[string]content) *fileSet {
	set := &fileSet{files: files, dirs: map[string][]string{".": nil}}
	for name := range files {
		for known := false; !known; {
			dir := path.Dir(name)
			_, known = set.dirs[dir]
			set.dirs[dir] = append(set.dirs[dir], path.Base(name))
			name = dir
		}
	}
	for _, names := range set.dirs {
		slices.Sort(names)
	}
	return set
}

// made reports whether all files are held in memory.
func (s *fileSet) made() bool {
	for _, file := range s.files {
		if _, ok := file.(madeFile); !ok {
			return false
		}
	}
	return true
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
	file, ok := s.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: s.missing(name)}
	}
	data, err := file.read()
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// Stat implements fs.StatFS. The FileInfo of a file has a method Hash() string.
func (s *fileSet) Stat(name string) (fs.FileInfo, error) { return s.stat("stat", name) }

func (s *fileSet) stat(op, name string) (fs.FileInfo, error) {
	if _, ok := s.dirs[name]; ok {
		return fileInfo{name: path.Base(name), mode: fs.ModeDir | 0o555, sized: bytesSize(0)}, nil
	}
	file, ok := s.files[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: s.missing(name)}
	}
	size, hash, err := file.describe()
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return fileInfo{name: path.Base(name), mode: 0o444, sized: size, hash: hash}, nil
}

// missing is the error for a name that is no file.
func (s *fileSet) missing(name string) error {
	if !fs.ValidPath(name) || s.dirs[name] != nil {
		return fs.ErrInvalid
	}
	return fs.ErrNotExist
}

// ReadDir implements fs.ReadDirFS.
func (s *fileSet) ReadDir(name string) ([]fs.DirEntry, error) {
	names, ok := s.dirs[name]
	if !ok {
		err := s.missing(name)
		if _, isFile := s.files[name]; isFile {
			err = fs.ErrInvalid
		}
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, len(names))
	for i, base := range names {
		entries[i] = dirEntry{set: s, name: path.Join(name, base)}
	}
	return entries, nil
}

// dirEntry asks for the details of a file only when they are wanted: for files
// in git they may have to be fetched.
type dirEntry struct {
	set  *fileSet
	name string
}

func (e dirEntry) Name() string { return path.Base(e.name) }
func (e dirEntry) IsDir() bool  { return e.Type().IsDir() }
func (e dirEntry) Type() fs.FileMode {
	if _, ok := e.set.dirs[e.name]; ok {
		return fs.ModeDir
	}
	return 0
}
func (e dirEntry) Info() (fs.FileInfo, error) { return e.set.Stat(e.name) }
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

// Hash returns the hash git knows the content by, in hex, or "" if it is not known.
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

// sourceFile is a file of a revision, read from there whenever it is asked for.
type sourceFile struct {
	tree     tree
	resolved string
	// info is what the directory says of a file that is known by its hash, and so
	// does not change; nil for others.
	info fs.FileInfo
}

// hashed is a file, or what describes one, that is known by git's hash of its content.
type hashed interface{ Hash() string }

// knownByHash returns what describes a file, nil if that has no hash.
func knownByHash(info fs.FileInfo, err error) fs.FileInfo {
	if err != nil {
		return nil // reading it will fail too, and be reported
	}
	if known, ok := info.(hashed); !ok || known.Hash() == "" {
		return nil
	}
	return info
}

func (f sourceFile) read() ([]byte, error) { return f.tree.readFile(f.resolved) }

func (f sourceFile) describe() (sized, string, error) {
	info := f.info
	if info == nil {
		var err error
		if info, err = fs.Lstat(f.tree.fsys, f.resolved); err != nil {
			return nil, "", err
		}
	}
	hash := ""
	if known, ok := info.(hashed); ok {
		hash = known.Hash()
	}
	return info, hash, nil
}

// madeFile is a file that CMD or kustomize made, held in memory.
type madeFile struct {
	data []byte
	hash string
}

func newMadeFile(data []byte) madeFile {
	return madeFile{data: data, hash: plumbing.ComputeHash(plumbing.BlobObject, data).String()}
}

func (f madeFile) read() ([]byte, error)            { return slices.Clone(f.data), nil }
func (f madeFile) describe() (sized, string, error) { return bytesSize(len(f.data)), f.hash, nil }
