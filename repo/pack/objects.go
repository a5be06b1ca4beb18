package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"
)

// Objects is where the objects of a revision are read from. All methods may be
// called by many goroutines.
type Objects interface {
	// Object returns an object, which can be read at any later time.
	// plumbing.ErrObjectNotFound if there is no such object.
	Object(plumbing.Hash) (plumbing.EncodedObject, error)
	// Size returns how many bytes an object has, without reading it if possible.
	Size(plumbing.Hash) (int64, error)
	// Has reports whether an object is there.
	Has(plumbing.Hash) bool
	// Limits returns what an object may cost.
	Limits() limits.Limits
}

// readWhole reads an object of a kind that is bounded by a limit. It is not touched if
// it is larger than that.
func readWhole(from Objects, hash plumbing.Hash, limit limits.Limit, what string) (plumbing.EncodedObject, error) {
	size, err := from.Size(hash)
	if err != nil {
		return nil, err
	}
	if err := from.Limits().Check(limit, what, size); err != nil {
		return nil, err
	}
	return from.Object(hash)
}

// ReadCommit reads a commit, or the commit that a tag object leads to.
func ReadCommit(from Objects, hash plumbing.Hash) (*object.Commit, error) {
	for {
		o, err := readWhole(from, hash, limits.Commit, "it is too large")
		if err != nil {
			return nil, fmt.Errorf("read commit %s: %w", hash, err)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			c := new(object.Commit)
			if err := c.Decode(o); err != nil {
				return nil, fmt.Errorf("read commit %s: %w", hash, err)
			}
			return c, nil
		case plumbing.TagObject:
			t := new(object.Tag)
			if err := t.Decode(o); err != nil {
				return nil, fmt.Errorf("read tag %s: %w", hash, err)
			}
			hash = t.Target
		default:
			return nil, fmt.Errorf("%s is a %s, not a commit", hash, o.Type())
		}
	}
}

// ReadTree reads one directory. A name that could lead out of it, or into a
// .git, is an error: trees come from whoever may push, and files are written by
// what they say.
func ReadTree(from Objects, hash plumbing.Hash) ([]object.TreeEntry, error) {
	o, err := readWhole(from, hash, limits.Tree, "it has too many entries")
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", hash, err)
	}
	tree := new(object.Tree)
	if err := tree.Decode(o); err != nil {
		return nil, fmt.Errorf("read tree %s: %w", hash, err)
	}
	seen := make(map[string]bool, len(tree.Entries))
	for i, e := range tree.Entries {
		if err := checkName(e.Name); err != nil {
			return nil, fmt.Errorf("tree %s: %w", hash, err)
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("tree %s: it holds %q twice", hash, e.Name)
		}
		seen[e.Name] = true
		if tree.Entries[i].Mode, err = kindOf(e.Mode); err != nil {
			return nil, fmt.Errorf("tree %s: %q: %w", hash, e.Name, err)
		}
	}
	return tree.Entries, nil
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || isDotGit(name) {
		return fmt.Errorf("a file is named %q, which no honest repository has", name)
	}
	return nil
}

// isDotGit reports a name that is .git, or is to some file system: git refuses the same
// on all systems, as a directory may be mounted from anywhere.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return -1
		}
		return r
	}, name)
	// Windows cuts off what follows a colon, then dots and spaces at the end.
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// isIgnorable reports the characters that HFS+ leaves out where it compares names.
func isIgnorable(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff
}

// kindOf returns the mode that git takes one for: old ones had more bits. What git
// does not know is an error.
func kindOf(mode filemode.FileMode) (filemode.FileMode, error) {
	const kind, executable = 0o170000, 0o100
	switch known := mode & kind; known {
	case filemode.Dir, filemode.Symlink, filemode.Submodule:
		return known, nil
	case filemode.Regular & kind:
		if mode&executable != 0 {
			return filemode.Executable, nil
		}
		return filemode.Regular, nil
	}
	return 0, fmt.Errorf("it is neither a file, a directory, a symlink nor a submodule: its mode is %o", uint32(mode))
}

// maxTarget is the longest path that a symlink can hold, as on Linux.
const maxTarget = 4095

// ReadLink reads the target of a symlink.
func ReadLink(from Objects, hash plumbing.Hash) (string, error) {
	size, err := from.Size(hash)
	if err != nil {
		return "", err
	}
	if size > maxTarget {
		return "", fmt.Errorf("the target of a symlink has %d bytes, and no path has more than %d", size, maxTarget)
	}
	target, err := ReadBlob(from, hash)
	return string(target), err
}

// ReadBlob reads a file's content.
func ReadBlob(from Objects, hash plumbing.Hash) (_ []byte, err error) {
	o, err := readWhole(from, hash, limits.File, "it is too large")
	if err != nil {
		return nil, err
	}
	r, err := OpenBlob(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	content := make([]byte, o.Size())
	_, err = io.ReadFull(r, content)
	return content, err
}

// OpenBlob opens a file.
func OpenBlob(o plumbing.EncodedObject) (io.ReadCloser, error) {
	if o.Type() != plumbing.BlobObject {
		return nil, fmt.Errorf("%s is a %s, not a file", o.Hash(), o.Type())
	}
	return o.Reader()
}

// ErrIncomplete is a revision that not all was sent of.
var ErrIncomplete = errors.New("incomplete: objects are missing")

// WalkTrees calls visit for each object below a tree, and the tree itself, once
// each, trees before what they hold. Submodules are no objects of this
// repository.
func WalkTrees(ctx context.Context, from Objects, root plumbing.Hash, visit func(plumbing.Hash) error) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(hash plumbing.Hash, tree bool, depth int64) error
	walk = func(hash plumbing.Hash, tree bool, depth int64) error {
		if seen[hash] {
			return nil
		}
		seen[hash] = true
		if err := from.Limits().Check(limits.Objects, "there are too many files", int64(len(seen))); err != nil {
			return err
		}
		if err := visit(hash); err != nil || !tree {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := CheckDepth(from, depth); err != nil {
			return err
		}
		entries, err := ReadTree(from, hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Mode == filemode.Submodule {
				continue
			}
			if err := walk(e.Hash, e.Mode == filemode.Dir, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, true, 0)
}

// CheckDepth bounds how many directories a directory may be in.
func CheckDepth(from Objects, depth int64) error {
	return from.Limits().Check(limits.Depth, "the directories lie too deep in each other", depth)
}

// CheckWhole checks that a commit's files are all there. What a server sent is only
// taken if they are.
func CheckWhole(ctx context.Context, from Objects, c *object.Commit) error {
	return WalkTrees(ctx, from, c.TreeHash, func(hash plumbing.Hash) error {
		if !from.Has(hash) {
			return fmt.Errorf("%w: %s of commit %s", ErrIncomplete, hash, c.Hash)
		}
		return nil
	})
}
