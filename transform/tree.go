package transform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform/confine"
)

// maxLinks is how many symbolic links one path may lead through; Linux stops at
// the same number.
const maxLinks = 40

// tree is a file system whose symbolic links are resolved here, so that none of
// them can lead out of it. The file system itself is only ever asked about
// paths without links.
type tree struct {
	fsys fs.FS
	// what the tree is called in messages, for example "the repository".
	what string
	// within reports whether a resolved name may be used; nil means all may.
	within func(name string) bool
	// limits bound what is read of it.
	limits limits.Limits
	// local gives the name of an absolute link target in the tree, if it lies in
	// it; nil means that none does.
	local func(target string) (string, bool)
}

// repoTree is the tree of a revision's files.
func repoTree(files fs.FS, bounds limits.Limits) tree {
	return tree{fsys: files, what: "the repository", limits: bounds}
}

// outputTree returns OUTDIR, and INDIR for the links that lead there, as a tree with
// these two names at its root. The caller closes the os.Root when it has read all it wants.
func outputTree(where *confine.Workspace, bounds limits.Limits) (tree, *os.Root, error) {
	root, err := os.OpenRoot(where.Dir())
	if err != nil {
		return tree{}, nil, err
	}
	return tree{
		fsys:   root.FS(),
		what:   "OUTDIR and INDIR",
		limits: bounds,
		within: func(name string) bool { return below(name, confine.OutDir) || below(name, confine.InDir) },
		local: func(target string) (string, bool) {
			name, ok := strings.CutPrefix(target, where.Dir()+"/")
			return name, ok
		},
	}, root, nil
}

// below reports whether name is dir or inside it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// linkError is a symbolic link that cannot be followed.
type linkError struct {
	link, target, why string
}

func (e *linkError) Error() string {
	return fmt.Sprintf("symbolic link %s points to %s: %s", e.link, e.target, e.why)
}

// resolve follows all symbolic links in name, and returns the name of what they
// lead to. The error is a linkError if a link leads out of the tree or in a
// circle, and wraps fs.ErrNotExist if there is nothing at the end.
func (t tree) resolve(name string) (string, error) {
	var last linkError // the link that was followed last
	done, rest := ".", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", t.escape(name, last)
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := fs.Lstat(t.fsys, next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := fs.ReadLink(t.fsys, next)
		if err != nil {
			return "", err
		}
		last = linkError{link: next, target: target}
		if links++; links > maxLinks {
			last.why = "the links go in a circle"
			return "", &last
		}
		if path.IsAbs(target) {
			local, ok := t.enter(target)
			if !ok {
				return "", t.escape(name, last)
			}
			done, target = ".", local
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if t.within != nil && !t.within(done) {
		return "", t.escape(name, last)
	}
	return done, nil
}

// enter maps an absolute link target into the tree.
func (t tree) enter(target string) (string, bool) {
	if t.local == nil {
		return "", false
	}
	return t.local(path.Clean(target))
}

// escape is the error for a name that leads out of the tree.
func (t tree) escape(name string, last linkError) error {
	if last.link == "" {
		return fmt.Errorf("%s is outside %s", name, t.what)
	}
	last.why = "only targets inside " + t.what + " are followed"
	return &last
}

// stat returns the resolved name and the info of what name leads to.
func (t tree) stat(name string) (string, fs.FileInfo, error) {
	resolved, err := t.resolve(name)
	if err != nil {
		return "", nil, err
	}
	info, err := fs.Lstat(t.fsys, resolved)
	if err != nil {
		return "", nil, err
	}
	return resolved, info, nil
}

// readFile returns the content of a regular file, given by its resolved name.
func (t tree) readFile(resolved string) ([]byte, error) {
	info, err := fs.Lstat(t.fsys, resolved)
	if err != nil {
		return nil, err
	}
	// Opening a named pipe would wait for a user to write to it.
	if !info.Mode().IsRegular() {
		return nil, notRegular(resolved, info.Mode())
	}
	if err := t.limits.Check(limits.File, resolved+" is too large", info.Size()); err != nil {
		return nil, err
	}
	return fs.ReadFile(t.fsys, resolved)
}

func notRegular(name string, mode fs.FileMode) error {
	if mode.IsDir() {
		return fmt.Errorf("%s is a directory, not a file", name)
	}
	return fmt.Errorf("%s is neither a file nor a directory (%s)", name, mode.Type())
}

// isLinkError reports a link that leads nowhere good from other failures.
func isLinkError(err error) bool {
	var link *linkError
	return errors.As(err, &link)
}
