package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The directories of a workspace. The names show in the paths of CMD's manifests.
const (
	InDir  = "INDIR"
	OutDir = "OUTDIR"
	TmpDir = "TMPDIR"
)

// lockFile is the file in a workspace by which it belongs to a process.
const lockFile = "lock"

// maxWorkspaces is how many processes may work on repositories of one name side
// by side under one base directory.
const maxWorkspaces = 1000

// Workspace is the directory that CMD's INDIR, OUTDIR and TMPDIR are in. It belongs
// to one repository of one process: a lock says so, which dies with the process, so
// what a crashed run left behind is taken over and cleaned.
type Workspace struct {
	dir  string // absolute, without symbolic links
	lock *os.File
}

// Open finds or makes the workspace of a repository under base.
func Open(base, repo string) (*Workspace, error) {
	base, err := findBase(base)
	if err != nil {
		return nil, fmt.Errorf("find a place for CMD's work tree: %w", err)
	}
	name := "kubesync-" + fileName(repo)
	for n := 1; n <= maxWorkspaces; n++ {
		dir := filepath.Join(base, name)
		if n > 1 {
			dir = fmt.Sprintf("%s.%d", dir, n)
		}
		lock, err := lockDirectory(dir)
		if errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("make a directory for CMD's work tree: %w (TMPDIR says where; with a read-only root file system it has to be a volume)", err)
		}
		w := &Workspace{dir: dir, lock: lock}
		if err := w.Empty(); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		return w, nil
	}
	return nil, fmt.Errorf("all of %s to %s.%d are in use by other processes", filepath.Join(base, name), name, maxWorkspaces)
}

// findBase returns the directory that workspaces are made in, without symbolic links. It
// is not made: it is the user's, and may be a volume that is not mounted.
func findBase(given string) (string, error) {
	base, called := given, "the directory "+given
	if base == "" {
		base = os.TempDir()
		called = "TMPDIR (" + base + ")"
		if os.Getenv("TMPDIR") == "" {
			called = base + ", which is used because TMPDIR is not set,"
		}
	}
	const advice = "make it, mount a volume there, or set TMPDIR to a directory that kubesync may write to"
	absolute, err := filepath.Abs(base)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s does not exist: %s (%w)", called, advice, err)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(absolute)
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be used: %w; set TMPDIR to a directory that kubesync may write to", called, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory: set TMPDIR to one that kubesync may write to", called)
	}
	return absolute, nil
}

// fileName makes a repository's name safe to be part of a file name.
func fileName(repo string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, repo)
	return safe[:min(len(safe), 100)]
}

// errTaken means that a directory is another owner's.
var errTaken = errors.New("in use")

// lockDirectory makes dir, if it is not there, and takes its lock. In a directory that
// everybody may write to, such as /tmp, others can have put something of that name
// there: what is not a directory of our own user counts as taken.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken // until just now
	}
	if err != nil {
		return nil, err
	}
	if !isOwnDirectory(info) {
		return nil, errTaken
	}
	name := filepath.Join(dir, lockFile)
	lock, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		// Its owner may just be removing it.
		return nil, errors.Join(errTaken, err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errTaken, err, lock.Close())
	}
	// The lock is worth nothing if its owner removed the file between our opening
	// and locking it.
	ours, err := lock.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(name); err == nil && os.SameFile(ours, there) {
			return lock, nil
		}
	}
	return nil, errors.Join(errTaken, err, lock.Close())
}

// isOwnDirectory distinguishes a directory of our own user from a symbolic link and what others
// have made.
func isOwnDirectory(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return info.IsDir() && ok && int(owner.Uid) == os.Geteuid()
}

// ErrLost means that a workspace was removed, and what is in its place, if anything, is
// not ours.
var ErrLost = errors.New("CMD's directory was removed")

// Check looks whether the workspace is still the one that was locked, and makes it ours
// to use. Those who tidy up temporary files remove it as a whole, or the lock alone,
// which makes it free for others to take. It is ErrLost then.
func (w *Workspace) Check() error {
	info, err := os.Lstat(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	if !isOwnDirectory(info) {
		return ErrLost
	}
	// Another repository's CMD runs as the same user: Landlock lets it change the mode.
	if err := os.Chmod(w.dir, 0o700); err != nil {
		return fmt.Errorf("make CMD's directories private: %w", err)
	}
	there, err := os.Lstat(w.Path(lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	if ours, err := w.lock.Stat(); err != nil || !os.SameFile(ours, there) {
		return errors.Join(ErrLost, err)
	}
	return nil
}

// Dir returns its absolute path, without symbolic links.
func (w *Workspace) Dir() string { return w.dir }

// Path returns the absolute path of one of the workspace's directories.
func (w *Workspace) Path(name string) string { return filepath.Join(w.dir, name) }

// Clean removes what the last run left, but for INDIR. What is in the place of a
// workspace that was lost stays as it is.
func (w *Workspace) Clean() error {
	if err := w.Check(); errors.Is(err, ErrLost) {
		return nil
	} else if err != nil {
		return err
	}
	for _, name := range []string{OutDir, TmpDir} {
		if err := removeAll(w.Path(name)); err != nil {
			return fmt.Errorf("remove the last run's %s: %w", name, err)
		}
	}
	return nil
}

// Empty removes all that the last run left.
func (w *Workspace) Empty() error {
	if err := w.Check(); errors.Is(err, ErrLost) {
		return nil
	} else if err != nil {
		return err
	}
	if err := removeAll(w.Path(InDir)); err != nil {
		return errors.Join(fmt.Errorf("remove the last run's %s: %w", InDir, err), w.Clean())
	}
	return w.Clean()
}

// Prepare makes OUTDIR and TMPDIR anew.
func (w *Workspace) Prepare() error {
	if err := w.Clean(); err != nil {
		return err
	}
	for _, name := range []string{OutDir, TmpDir} {
		if err := os.Mkdir(w.Path(name), 0o700); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
	}
	return nil
}

// Close removes the workspace and gives up its lock. The lock's file goes last: as soon as
// it is gone the directory may be another owner's, who then keeps it. What is in the place
// of a workspace that was lost stays as it is.
func (w *Workspace) Close() error {
	err := w.Check()
	if errors.Is(err, ErrLost) {
		return w.lock.Close()
	}
	if err == nil {
		err = w.Empty()
	}
	if err == nil {
		err = os.Remove(w.lock.Name())
	}
	if err == nil {
		if err = os.Remove(w.dir); errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errors.Join(err, w.lock.Close())
}
