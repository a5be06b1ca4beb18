package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// objects is where the objects of a revision are read from. All methods may be
// called by many goroutines.
type objects interface {
	// object returns an object, which can be read at any later time.
	// plumbing.ErrObjectNotFound if there is no such object.
	object(plumbing.Hash) (plumbing.EncodedObject, error)
	// size returns how many bytes an object has, without reading it if possible.
	size(plumbing.Hash) (int64, error)
	// has tells whether an object is there.
	has(plumbing.Hash) bool
}

// readCommit reads a commit, or the commit that a tag object leads to.
func readCommit(from objects, hash plumbing.Hash) (*object.Commit, error) {
	for {
		o, err := from.object(hash)
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

// readTree reads one directory. A name that could lead out of it, or into a
// .git, is an error: trees come from whoever may push, and files are written by
// what they say.
func readTree(from objects, hash plumbing.Hash) ([]object.TreeEntry, error) {
	o, err := from.object(hash)
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", hash, err)
	}
	tree := new(object.Tree)
	if err := tree.Decode(o); err != nil {
		return nil, fmt.Errorf("read tree %s: %w", hash, err)
	}
	seen := make(map[string]bool, len(tree.Entries))
	for _, e := range tree.Entries {
		if err := checkName(e.Name); err != nil {
			return nil, fmt.Errorf("tree %s: %w", hash, err)
		}
		if seen[e.Name] {
			return nil, fmt.Errorf("tree %s: it holds %q twice", hash, e.Name)
		}
		seen[e.Name] = true
	}
	return tree.Entries, nil
}

func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"), strings.EqualFold(name, ".git"):
		return fmt.Errorf("a file is named %q, which no honest repository has", name)
	}
	return nil
}

// readBlob reads a file's content.
func readBlob(from objects, hash plumbing.Hash) (_ []byte, err error) {
	o, err := from.object(hash)
	if err != nil {
		return nil, err
	}
	if o.Type() != plumbing.BlobObject {
		return nil, fmt.Errorf("%s is a %s, not a file", hash, o.Type())
	}
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	content := make([]byte, o.Size())
	_, err = io.ReadFull(r, content)
	return content, err
}

// errIncomplete is a revision that not all was sent of.
var errIncomplete = errors.New("incomplete: objects are missing")

// walkTrees calls visit for each object below a tree, and the tree itself, once
// each, trees before what they hold. Submodules are no objects of this
// repository.
func walkTrees(ctx context.Context, from objects, root plumbing.Hash, visit func(plumbing.Hash) error) error {
	seen := map[plumbing.Hash]bool{}
	var walk func(hash plumbing.Hash, tree bool) error
	walk = func(hash plumbing.Hash, tree bool) error {
		if seen[hash] {
			return nil
		}
		seen[hash] = true
		if err := visit(hash); err != nil || !tree {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := readTree(from, hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Mode == filemode.Submodule {
				continue
			}
			if err := walk(e.Hash, e.Mode == filemode.Dir); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, true)
}

// whole checks that a commit's files are all there. What a server sent is only
// taken if they are.
func whole(ctx context.Context, from objects, c *object.Commit) error {
	return walkTrees(ctx, from, c.TreeHash, func(hash plumbing.Hash) error {
		if !from.has(hash) {
			return fmt.Errorf("%w: %s of commit %s", errIncomplete, hash, c.Hash)
		}
		return nil
	})
}
