package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
)

// wanted is what shall be at a path: a directory, a file, a symlink, or a
// submodule, which is an empty directory as after git clone.
type wanted struct {
	mode filemode.FileMode
	hash plumbing.Hash // of a file's content or a symlink's target; a submodule's commit
	// read returns the content of a file, the target of a symlink.
	read func() (io.ReadCloser, error)
	// list returns what shall be in a directory, and nothing else shall.
	list func() (map[string]wanted, error)
}

func (w wanted) isDir() bool { return w.mode == filemode.Dir || w.mode == filemode.Submodule }

// wantedTree is a tree of a commit as something to write.
func wantedTree(from pack.Objects, tree plumbing.Hash) wanted {
	return wanted{mode: filemode.Dir, hash: tree, list: func() (map[string]wanted, error) {
		entries, err := pack.ReadTree(from, tree)
		if err != nil {
			return nil, err
		}
		list := make(map[string]wanted, len(entries))
		for _, e := range entries {
			switch e.Mode {
			case filemode.Dir:
				list[e.Name] = wantedTree(from, e.Hash)
			case filemode.Submodule:
				list[e.Name] = wanted{mode: e.Mode, hash: e.Hash, list: noFiles}
			default:
				list[e.Name] = wanted{mode: e.Mode, hash: e.Hash, read: func() (io.ReadCloser, error) {
					return readWanted(from, e.Mode, e.Hash)
				}}
			}
		}
		return list, nil
	}}
}

// readWanted opens a file, or the target of a symlink.
func readWanted(from pack.Objects, mode filemode.FileMode, hash plumbing.Hash) (io.ReadCloser, error) {
	if mode == filemode.Symlink {
		target, err := pack.ReadLink(from, hash)
		return io.NopCloser(strings.NewReader(target)), err
	}
	o, err := from.Object(hash)
	if err != nil {
		return nil, err
	}
	return pack.OpenBlob(o)
}

func noFiles() (map[string]wanted, error) { return nil, nil }

// wantedDir is a directory with what list says in it.
func wantedDir(list map[string]wanted) wanted {
	return wanted{mode: filemode.Dir, list: func() (map[string]wanted, error) { return list, nil }}
}

// wantedFile is a file with that content.
func wantedFile(content []byte) wanted {
	return wanted{
		mode: filemode.Regular,
		hash: plumbing.ComputeHash(plumbing.BlobObject, content),
		read: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

// restorer makes a directory hold exactly what is wanted. What is as it shall be
// is left alone, by content and not by what times and sizes claim: a script
// changed what it liked there, and its last run may have been killed. All goes
// through an os.Root, so a symlink that was left behind leads nowhere.
type restorer struct {
	root   *os.Root
	limits limits.Limits
	// bytes are what was written so far, and leastRoom for each file and directory.
	bytes int64
	// entries collects what git's index is to know.
	entries []*index.Entry
}

// leastRoom is counted for each file and directory beside its content, in bytes, so that
// the size of a checkout bounds their number, too.
const leastRoom = 8 << 10

// openRoot opens the directory, which is made if need be. What is there and no
// directory is removed.
func openRoot(dir string) (*os.Root, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil && !info.IsDir():
		err = os.Remove(dir)
	case err == nil && info.Mode().Perm()&0o700 != 0o700:
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// dir makes the directory at name hold what is wanted and nothing else.
func (r *restorer) dir(ctx context.Context, name string, want wanted) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := want.list()
	if err != nil {
		return err
	}
	found, err := r.readDir(name)
	if err != nil {
		return err
	}
	for _, e := range found {
		if _, ok := list[e.Name()]; !ok {
			if err := r.remove(path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	for child, want := range list {
		if err := r.entry(ctx, path.Join(name, child), want); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) readDir(name string) ([]fs.DirEntry, error) {
	dir, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	found, err := dir.ReadDir(-1)
	return found, errors.Join(err, dir.Close())
}

// entry makes name be what is wanted.
func (r *restorer) entry(ctx context.Context, name string, want wanted) error {
	r.bytes += leastRoom
	if err := r.limits.Check(limits.Checkout, "there are too many files", r.bytes); err != nil {
		return err
	}
	info, err := r.root.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	exists := err == nil
	if exists && info.Mode().Type() != fsMode(want.mode).Type()&^fs.ModeIrregular {
		if err := r.remove(name); err != nil {
			return err
		}
		exists = false
	}
	if want.isDir() {
		return r.subdir(ctx, name, want, exists, info)
	}
	if exists {
		same, err := r.same(name, want)
		if err != nil {
			return err
		}
		if !same {
			// Not written over: the file may have another name somewhere else.
			if err := r.remove(name); err != nil {
				return err
			}
			exists = false
		}
	}
	if !exists {
		if err := r.write(name, want); err != nil {
			return err
		}
	}
	return r.finish(name, want)
}

func (r *restorer) subdir(ctx context.Context, name string, want wanted, exists bool, info fs.FileInfo) error {
	mode := fsMode(want.mode).Perm()
	switch {
	case !exists:
		if err := r.root.Mkdir(name, mode); err != nil {
			return err
		}
		fallthrough // the umask had its say
	case bits(info) != mode:
		if err := r.root.Chmod(name, mode); err != nil {
			return err
		}
	}
	if want.mode == filemode.Submodule {
		r.entries = append(r.entries, &index.Entry{Name: name, Hash: want.hash, Mode: want.mode})
	}
	return r.dir(ctx, name, want)
}

// bits are the permissions with setuid, setgid and sticky.
func bits(info fs.FileInfo) fs.FileMode {
	return info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// same reports whether a file or symlink has the content that is wanted. What
// cannot be read has not.
func (r *restorer) same(name string, want wanted) (bool, error) {
	if want.mode == filemode.Symlink {
		target, err := r.root.Readlink(name)
		return plumbing.ComputeHash(plumbing.BlobObject, []byte(target)) == want.hash, err
	}
	file, err := r.root.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	hasher := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	if _, err := io.Copy(hasher, file); err != nil {
		return false, err
	}
	return hasher.Sum() == want.hash, nil
}

func (r *restorer) write(name string, want wanted) error {
	content, err := want.read()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = content.Close() }()
	if want.mode == filemode.Symlink {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return r.root.Symlink(string(target), name)
	}
	file, err := r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fsMode(want.mode).Perm())
	if err != nil {
		return err
	}
	left := r.limits.Of(limits.Checkout) - r.bytes
	n, err := io.Copy(file, io.LimitReader(content, left+1))
	if n > left {
		err = r.limits.Exceeded(limits.Checkout, name+" does not fit", 0)
	}
	return errors.Join(err, file.Close())
}

// finish sets a file's permissions and notes it for the index.
func (r *restorer) finish(name string, want wanted) error {
	info, err := r.root.Lstat(name)
	if err != nil {
		return err
	}
	if mode := fsMode(want.mode).Perm(); want.mode != filemode.Symlink && bits(info) != mode {
		if err := r.root.Chmod(name, mode); err != nil {
			return err
		}
	}
	r.bytes += info.Size()
	r.entries = append(r.entries, &index.Entry{
		Name:       name,
		Hash:       want.hash,
		Mode:       want.mode,
		ModifiedAt: info.ModTime(),
		Size:       uint32(info.Size()), // git's index too has 32 bits for it
	})
	return nil
}

// remove removes a file, or a directory with all that is in it, also one that
// was made unwritable (Go's module cache is, for one).
func (r *restorer) remove(name string) error {
	err := r.root.RemoveAll(name)
	if err == nil {
		return nil
	}
	r.unlock(name)
	return r.root.RemoveAll(name)
}

// unlock makes directories writable. Whether it helped, the removal shows.
func (r *restorer) unlock(name string) {
	info, err := r.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	_ = r.root.Chmod(name, 0o700)
	found, _ := r.readDir(name)
	for _, e := range found {
		if e.IsDir() {
			r.unlock(path.Join(name, e.Name()))
		}
	}
}
