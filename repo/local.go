package repo

import (
	"bufio"
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

	"github.com/kubesync/kubesync/repo/limits"
)

// localCache bounds what is kept of objects read from disk, in bytes.
const localCache = 8 * cache.MiByte

// local is the source that a repository on this machine's disk is. It is read
// where it lies.
type local struct {
	dir, common string // as gitDirs returns them
	disk        *diskObjects
	listed      refs
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
	disk, err := newDiskObjects(filepath.Join(common, "objects"), bounds)
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

// checkFormat refuses what would be misread: go-git knows SHA-1 object names and
// refs in files only, and looks for neither.
func checkFormat(common string) error {
	file, err := os.Open(filepath.Join(common, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	settings := config.New()
	if err := config.NewDecoder(file).Decode(settings); err != nil {
		return nil // git reads more than this decoder does, and nothing else in it matters here
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

// history implements source.
func (l *local) history(ctx context.Context, tips []tag, older history) (history, error) {
	shallow, err := l.shallow()
	if err != nil {
		return history{}, err
	}
	got := newHistory(tips)
	todo := slices.Clone(got.tips)
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return history{}, err
		}
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, seen := got.commits[hash]; seen {
			continue
		}
		if known, ok := older.commits[hash]; ok {
			got.commits[hash] = known
		} else if c, err := readCommit(l.disk, hash); err == nil {
			got.add(c)
		} else if slices.Contains(got.tips, hash) {
			continue // a tag may point at anything
		} else {
			return history{}, err
		}
		if !shallow[hash] {
			todo = append(todo, got.commits[hash].parents...)
		}
	}
	return got.completed(history{}, shallow)
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

// objects implements source.
func (l *local) objects(_ context.Context, sel selection) (objects, error) {
	if !l.disk.has(sel.tip) {
		return nil, l.listed.noCommit(sel.selected().String())
	}
	return l.disk, nil
}

// diskObjects are the objects of a repository on disk, and of those it borrows
// from (objects/info/alternates, which git clone --shared and --reference
// write; go-git follows them only half).
type diskObjects struct {
	limits limits.Limits

	mu     sync.Mutex
	stores []*filesystem.ObjectStorage
}

func newDiskObjects(dir string, bounds limits.Limits) (*diskObjects, error) {
	d := &diskObjects{limits: bounds}
	seen := map[string]bool{}
	todo := []string{dir}
	for len(todo) > 0 {
		dir := filepath.Clean(todo[0])
		todo = todo[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		files := readOnly{osfs.New(filepath.Dir(dir))}
		if filepath.Base(dir) != "objects" {
			return nil, fmt.Errorf("it borrows objects from %s, which is no repository's objects directory", dir)
		}
		d.stores = append(d.stores, filesystem.NewObjectStorageWithOptions(dotgit.New(files), cache.NewObjectLRU(localCache), filesystem.Options{LargeObjectThreshold: streamed}))
		alternates, err := readAlternates(dir)
		if err != nil {
			return nil, err
		}
		todo = append(todo, alternates...)
	}
	return d, nil
}

func readAlternates(dir string) ([]string, error) {
	file, err := os.Open(filepath.Join(dir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var out []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		out = append(out, line)
	}
	return out, lines.Err()
}

func (d *diskObjects) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return first(d, func(s *filesystem.ObjectStorage) (plumbing.EncodedObject, error) {
		o, err := s.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return nil, err
		}
		if o.Type() == plumbing.BlobObject && o.Size() >= streamed {
			return o, nil
		}
		return inMemory(o, hash)
	})
}

// inMemory reads an object that go-git would read from its pack only later, when
// nobody holds the lock and git may have packed anew. go-git does not look whether the
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

// bounds implements objects.
func (d *diskObjects) bounds() limits.Limits { return d.limits }

func (d *diskObjects) size(hash plumbing.Hash) (int64, error) {
	return first(d, func(s *filesystem.ObjectStorage) (int64, error) {
		return s.EncodedObjectSize(hash)
	})
}

func (d *diskObjects) has(hash plumbing.Hash) bool {
	_, err := first(d, func(s *filesystem.ObjectStorage) (bool, error) {
		return true, s.HasEncodedObject(hash)
	})
	return err == nil
}

// first asks one store after the other. If none has the object, or a pack went
// away, git may have packed them anew since they were opened: it looks again,
// once.
func first[T any](d *diskObjects, ask func(*filesystem.ObjectStorage) (T, error)) (T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for again := false; ; again = true {
		for _, s := range d.stores {
			got, err := ask(s)
			missing := errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, dotgit.ErrPackfileNotFound)
			if !missing {
				return got, err
			}
			if again {
				continue
			}
			s.Reindex()
		}
		if again {
			var none T
			return none, plumbing.ErrObjectNotFound
		}
	}
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
