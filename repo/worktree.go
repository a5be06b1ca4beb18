package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"
)

// worktreeObjects are the objects that git would make of a directory's files.
// Directories are held in memory; of a file there is the hash and where it lies.
// Everything is taken but directories and files named .git and what is neither a
// file, a directory nor a symlink. It does not change once it is read.
type worktreeObjects struct {
	limits limits.Limits
	held   map[plumbing.Hash]*plumbing.MemoryObject
	files  map[plumbing.Hash]fileOnDisk
	// newest is when the last modified file was modified.
	newest time.Time
}

type fileOnDisk struct {
	path    string
	symlink bool
	size    int64
}

// readWorktree reads a directory. The commit it returns stands for the files; its
// tree's hash distinguishes one state from another.
func readWorktree(ctx context.Context, dir string, bounds limits.Limits) (*worktreeObjects, *object.Commit, error) {
	w := &worktreeObjects{limits: bounds, held: map[plumbing.Hash]*plumbing.MemoryObject{}, files: map[plumbing.Hash]fileOnDisk{}}
	tree, err := w.addDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	who := object.Signature{Name: "kubesync", Email: "kubesync@localhost", When: w.newest.UTC().Truncate(time.Second)}
	commit := &object.Commit{
		Author:    who,
		Committer: who,
		Message:   fmt.Sprintf("The files of %s as they lie on disk\n", dir),
		TreeHash:  tree,
	}
	if commit.Hash, err = w.hold(commit); err != nil {
		return nil, nil, err
	}
	return w, commit, nil
}

// addDir adds what a directory holds and returns its tree.
func (w *worktreeObjects) addDir(ctx context.Context, dir string) (plumbing.Hash, error) {
	if err := ctx.Err(); err != nil {
		return plumbing.ZeroHash, err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	tree := new(object.Tree)
	for _, e := range found {
		entry, err := w.add(ctx, filepath.Join(dir, e.Name()), e)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since the directory was read
		}
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if entry != nil {
			entry.Name = e.Name()
			tree.Entries = append(tree.Entries, *entry)
		}
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	return w.hold(tree)
}

// add adds one directory entry; nil for what is left out. git knows no empty
// directories.
func (w *worktreeObjects) add(ctx context.Context, path string, e fs.DirEntry) (*object.TreeEntry, error) {
	switch {
	case e.Name() == ".git":
		return nil, nil
	case e.IsDir():
		hash, err := w.addDir(ctx, path)
		if err != nil || hash == emptyTree {
			return nil, err
		}
		return &object.TreeEntry{Mode: filemode.Dir, Hash: hash}, nil
	case e.Type() != 0 && e.Type() != fs.ModeSymlink:
		return nil, nil
	}
	info, err := e.Info()
	if err != nil {
		return nil, err
	}
	file := fileOnDisk{path: path, symlink: e.Type() == fs.ModeSymlink}
	content, err := file.read()
	if err != nil {
		return nil, err
	}
	file.size = int64(len(content))
	hash := plumbing.ComputeHash(plumbing.BlobObject, content)
	w.files[hash] = file
	if info.ModTime().After(w.newest) {
		w.newest = info.ModTime()
	}
	mode := filemode.Regular
	switch {
	case file.symlink:
		mode = filemode.Symlink
	case info.Mode()&0o100 != 0:
		mode = filemode.Executable
	}
	return &object.TreeEntry{Mode: mode, Hash: hash}, nil
}

// emptyTree is the hash of a directory with nothing in it.
var emptyTree = plumbing.ComputeHash(plumbing.TreeObject, nil)

// hold keeps a tree or commit.
func (w *worktreeObjects) hold(o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := new(plumbing.MemoryObject)
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	hash := encoded.Hash() // it remembers, hence no write later when it is shared
	w.held[hash] = encoded
	return hash, nil
}

// read reads the content as git would store it: of a symlink its target.
func (f fileOnDisk) read() ([]byte, error) {
	if f.symlink {
		target, err := os.Readlink(f.path)
		return []byte(target), err
	}
	return os.ReadFile(f.path)
}

func (w *worktreeObjects) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	if o, ok := w.held[hash]; ok {
		return o, nil
	}
	file, ok := w.files[hash]
	if !ok {
		return nil, plumbing.ErrObjectNotFound
	}
	content, err := file.read()
	if err != nil { // which is not wrapped: the revision has the file, whatever became of it
		return nil, fmt.Errorf("%s changed while it was being used (%s); the next poll takes it as it is then", file.path, err.Error())
	}
	o := new(plumbing.MemoryObject)
	o.SetType(plumbing.BlobObject)
	if _, err := o.Write(content); err != nil {
		return nil, err
	}
	if o.Hash() != hash {
		return nil, fmt.Errorf("%s changed while it was being used; the next poll takes it as it is then", file.path)
	}
	return o, nil
}

// Limits implements pack.Objects.
func (w *worktreeObjects) Limits() limits.Limits { return w.limits }

func (w *worktreeObjects) Size(hash plumbing.Hash) (int64, error) {
	if o, ok := w.held[hash]; ok {
		return o.Size(), nil
	}
	if file, ok := w.files[hash]; ok {
		return file.size, nil
	}
	return 0, plumbing.ErrObjectNotFound
}

func (w *worktreeObjects) Has(hash plumbing.Hash) bool {
	_, err := w.Size(hash)
	return err == nil
}
