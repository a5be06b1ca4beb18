package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

// localCache bounds what is kept of objects read from disk, in bytes.
const localCache = 8 * cache.MiByte

// local is the source that a repository on this machine's disk is. It is read
// where it lies.
type local struct {
	dir, common string // as gitDirs returns them
	disk        *diskObjects
	listed      refs.List
}

// openLocal opens a bare repository, a clone, or a linked work tree.
func openLocal(path string, bounds limits.Limits) (*local, error) {
	dir, common, err := gitDirs(path)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(common); err != nil {
		return nil, fmt.Errorf("%s: %w", common, err)
	}
	disk, err := newDiskObjects(common, bounds)
	if err != nil {
		return nil, err
	}
	return &local{dir: dir, common: common, disk: disk}, nil
}

// gitDirs returns the directory that holds HEAD and the one that holds refs and
// objects: the same, but for a linked work tree.
func gitDirs(path string) (dir, common string, err error) {
	if _, err := os.Stat(path); err != nil {
		return "", "", err
	}
	dir = filepath.Join(path, ".git")
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		dir = path
	case err != nil:
		return "", "", err
	case !info.IsDir():
		// A linked work tree or a submodule: the file says where.
		target, err := readPointer(dir, "gitdir: ", path)
		if err != nil {
			return "", "", err
		}
		dir = target
	}
	switch _, err := os.Stat(filepath.Join(dir, "HEAD")); {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("%s is no git repository; only version mode worktree does without", path)
	case err != nil:
		return "", "", err
	}
	common, err = readPointer(filepath.Join(dir, "commondir"), "", dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, dir, nil
	}
	return dir, common, err
}

// readPointer reads the path that a file of one line holds, relative to base.
func readPointer(file, prefix, base string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(content)), prefix)
	if !ok || target == "" {
		return "", fmt.Errorf("%s does not hold the path it should", file)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(base, target)
	}
	return target, nil
}

// readConfig reads the configuration of a repository, empty where there is none.
func readConfig(common string) (*config.Config, error) {
	settings := config.New()
	file, err := os.Open(filepath.Join(common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return settings, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := config.NewDecoder(file).Decode(settings); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return settings, nil
}

// checkFormat refuses what would be misread: go-git knows SHA-1 object names and
// refs in files only, and looks for neither. Git reads more than this decoder does:
// what it cannot read is taken for the usual format.
func checkFormat(common string) error {
	settings, err := readConfig(common)
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	if err != nil {
		return nil
	}
	extensions := settings.Section("extensions")
	if format := extensions.Option("objectformat"); format != "" && !strings.EqualFold(format, "sha1") {
		return fmt.Errorf("its objects are named by %s; only sha1 is known here", format)
	}
	if format := extensions.Option("refstorage"); format != "" && !strings.EqualFold(format, "files") {
		return fmt.Errorf("its refs are stored as %s; only files are known here (git refs migrate --ref-format=files changes that)", format)
	}
	return nil
}

// History implements source.
func (l *local) History(ctx context.Context, tips []refs.Tag, older refs.History) (refs.History, error) {
	shallow, err := l.shallow()
	if err != nil {
		return refs.History{}, err
	}
	got := refs.NewHistory(tips)
	todo := slices.Clone(got.Tips)
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return refs.History{}, err
		}
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := got.Commits[hash]; seen {
			continue
		}
		if known, ok := older.Commits[hash]; ok {
			got.Commits[hash] = known
		} else if c, err := pack.ReadCommit(l.disk, hash); err == nil {
			got.Add(c)
		} else if slices.Contains(got.Tips, hash) {
			continue // a tag may point at anything
		} else {
			return refs.History{}, err
		}
		if !shallow[hash] {
			todo = append(todo, got.Commits[hash].Parents...)
		}
	}
	return got.Completed(refs.History{}, shallow)
}

// shallow returns the commits behind which the repository is cut off.
func (l *local) shallow() (map[plumbing.Hash]bool, error) {
	path := filepath.Join(l.common, "shallow")
	content, err := readSmall(path, l.disk.limits.Of(limits.Refs)+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := l.disk.limits.Check(limits.Refs, "the list of commits behind which it is cut off is too long", int64(len(content))); err != nil {
		return nil, err
	}
	out := map[plumbing.Hash]bool{}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); !plumbing.IsHash(line) {
			return nil, fmt.Errorf("%s: %w", path, damaged(line))
		}
		out[plumbing.NewHash(line)] = true
	}
	return out, nil
}

// read implements source.
func (l *local) read(_ context.Context, of refs.Tag) (pack.Objects, error) {
	if !l.disk.Has(of.Tip) {
		return nil, l.listed.NoCommit(cmp.Or(of.Commit, of.Tip).String())
	}
	return l.disk, nil
}

// diskObjects are the objects of a repository on disk.
type diskObjects struct {
	limits limits.Limits

	mu    sync.Mutex
	store *filesystem.ObjectStorage
}

// newDiskObjects opens the objects of a repository. One that borrows objects is refused:
// what it borrows may lie anywhere.
func newDiskObjects(common string, bounds limits.Limits) (*diskObjects, error) {
	if _, err := os.Stat(filepath.Join(common, "objects")); err != nil {
		return nil, err
	}
	if borrows := filepath.Join(common, "objects", "info", "alternates"); !absent(lstat(borrows)) {
		return nil, fmt.Errorf("it borrows objects from another repository (%s), which is not supported; "+
			"\"git repack -a -d\" there copies them, then remove that file", borrows)
	}
	store := filesystem.NewObjectStorageWithOptions(dotgit.New(readOnly{osfs.New(common)}), cache.NewObjectLRU(localCache),
		filesystem.Options{LargeObjectThreshold: pack.Streamed})
	return &diskObjects{limits: bounds, store: store}, nil
}

func lstat(path string) error {
	_, err := os.Lstat(path)
	return err
}

func (d *diskObjects) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return find(d, func(s *filesystem.ObjectStorage) (plumbing.EncodedObject, error) {
		o, err := s.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}
		if o.Type() == plumbing.BlobObject && o.Size() >= pack.Streamed {
			return o, nil
		}
		return inMemory(o, hash)
	})
}

// inMemory reads an object that go-git would read from its pack only later, when
// no one holds the lock and git may have packed anew. go-git does not look whether the
// content is what it is known by.
func inMemory(o plumbing.EncodedObject, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	out, held := o.(*plumbing.MemoryObject)
	if !held {
		out = new(plumbing.MemoryObject)
		out.SetType(o.Type())
		r, err := o.Reader()
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(out, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	if out.Hash() != hash {
		return nil, fmt.Errorf("object %s is damaged: git fsck finds out more", hash)
	}
	return out, nil
}

// Limits implements pack.Objects.
func (d *diskObjects) Limits() limits.Limits { return d.limits }

func (d *diskObjects) Size(hash plumbing.Hash) (int64, error) {
	return find(d, func(s *filesystem.ObjectStorage) (int64, error) {
		return s.EncodedObjectSize(hash)
	})
}

func (d *diskObjects) Has(hash plumbing.Hash) bool {
	_, err := find(d, func(s *filesystem.ObjectStorage) (bool, error) {
		return true, s.HasEncodedObject(hash)
	})
	return err == nil
}

// find looks for an object. If it is not there, git may have packed the objects anew
// since they were opened: it looks again, once.
func find[T any](d *diskObjects, ask func(*filesystem.ObjectStorage) (T, error)) (T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := func(err error) bool {
		return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, dotgit.ErrPackfileNotFound)
	}
	got, err := ask(d.store)
	if missing(err) {
		d.store.Reindex()
		got, err = ask(d.store)
	}
	if missing(err) {
		err = plumbing.ErrObjectNotFound
	}
	return got, err
}

// readOnly is a file system on which nothing can be written, so that no path
// through go-git writes to the user's repository.
type readOnly struct{ billy.Filesystem }

func (readOnly) Create(string) (billy.File, error)           { return nil, billy.ErrReadOnly }
func (readOnly) TempFile(string, string) (billy.File, error) { return nil, billy.ErrReadOnly }
func (readOnly) Rename(string, string) error                 { return billy.ErrReadOnly }
func (readOnly) Remove(string) error                         { return billy.ErrReadOnly }
func (readOnly) MkdirAll(string, os.FileMode) error          { return billy.ErrReadOnly }
func (readOnly) Symlink(string, string) error                { return billy.ErrReadOnly }

// OpenFile opens for reading only.
func (r readOnly) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	if flag != os.O_RDONLY {
		return nil, billy.ErrReadOnly
	}
	return r.Filesystem.OpenFile(name, flag, perm)
}

// Chroot keeps the rule.
func (r readOnly) Chroot(path string) (billy.Filesystem, error) {
	inner, err := r.Filesystem.Chroot(path)
	if err != nil {
		return nil, err
	}
	return readOnly{inner}, nil
}
