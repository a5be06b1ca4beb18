package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// removeBatch is how many entries of a directory are looked at before some are removed.
const removeBatch = 1000

// removeAll removes a directory and what is in it, also below directories that
// their owner made read-only, as some programs' caches are. No one but us works in
// it when it is called.
//
// A program can nest directories deeper than a path or the open files of a process
// reach, which is what os.RemoveAll needs. So each directory inside is moved up to the
// first level before its turn comes.
func removeAll(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return os.Remove(dir)
	}
	r := remover{top: dir}
	err = r.each(dir, func(entry fs.DirEntry) error {
		name := filepath.Join(dir, entry.Name())
		if !entry.IsDir() {
			return os.Remove(name)
		}
		if err := r.each(name, func(below fs.DirEntry) error { return r.raise(name, below) }); err != nil {
			return err
		}
		return os.Remove(name)
	})
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// remover removes one directory.
type remover struct {
	top   string
	moved int
}

// each makes a directory ours to change and does something with each entry, which has
// to be gone after that, until there is none.
func (r *remover) each(dir string, do func(fs.DirEntry) error) error {
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	for {
		entries, err := readSome(dir)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			if err := do(entry); err != nil {
				return err
			}
		}
	}
}

// readSome returns the first entries of a directory.
func readSome(dir string) ([]fs.DirEntry, error) {
	open, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	entries, err := open.ReadDir(removeBatch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// raise removes a file, or moves a directory to the first level, where its turn comes.
func (r *remover) raise(dir string, entry fs.DirEntry) error {
	name := filepath.Join(dir, entry.Name())
	if !entry.IsDir() {
		return os.Remove(name)
	}
	if err := os.Chmod(name, 0o700); err != nil { // its entry .. changes
		return err
	}
	for {
		r.moved++
		err := os.Rename(name, filepath.Join(r.top, fmt.Sprintf("removed-%d", r.moved)))
		// A file, or a directory with something in it, has that name.
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}
