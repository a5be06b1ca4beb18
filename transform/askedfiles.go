package transform

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// virtualRoot is where kustomize sees the tree. It is not /, so that a path with
// too many .. in it does not end up in the tree again.
const virtualRoot = "/repository"

// askedFiles is the file system that kustomize works on: it asks for each file, can
// not be written to, and has nothing outside virtualRoot.
type askedFiles struct {
	ask  func(do action, name string) (answer, error)
	what string // what the tree is called
	root string // the path of the kustomization that is built
	// keepOrigins is set when that kustomization itself asks for annotations that
	// name an object's origin.
	keepOrigins bool
	// refused says what kustomize was not given although it asked for it. It tends to try
	// something else then, so its own error would be about that.
	refused []string
}

// refuse notes and returns an error for something that is not done.
func (f *askedFiles) refuse(format string, args ...any) error {
	return f.note(fmt.Sprintf(format, args...) + ": a kustomization may use files of " + f.what + " only")
}

func (f *askedFiles) note(text string) error {
	if !slices.Contains(f.refused, text) {
		f.refused = append(f.refused, text)
	}
	return errors.New(text)
}

// lookUp asks about a path as kustomize writes it.
func (f *askedFiles) lookUp(do action, name string) (answer, error) {
	name = path.Clean("/" + name)
	if !below(name, virtualRoot) {
		// Where a document may stand instead of a path, it is tried as a path first.
		if strings.Contains(name, "\n") {
			return answer{}, &fs.PathError{Op: "open", Path: "document", Err: fs.ErrNotExist}
		}
		return answer{}, f.refuse("%s is outside %s", name, f.what)
	}
	inside := strings.TrimPrefix(strings.TrimPrefix(name, virtualRoot), "/")
	reply, err := f.ask(do, path.Join(".", inside))
	switch {
	case err != nil:
		return answer{}, err
	case reply.Missing:
		return answer{}, &fs.PathError{Op: "open", Path: inside, Err: fs.ErrNotExist}
	case reply.Failure != "":
		return answer{}, f.note(reply.Failure)
	}
	return reply, nil
}

// CleanedAbs implements filesys.FileSystem.
func (f *askedFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	reply, err := f.lookUp(doStat, name)
	if err != nil {
		return "", "", err
	}
	resolved := path.Join(virtualRoot, reply.Path)
	if reply.IsDir {
		return filesys.ConfirmedDir(resolved), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(resolved)), path.Base(resolved), nil
}

// ReadFile implements filesys.FileSystem. All kustomizations come by here, so
// this is where they are checked, and where the one that is built is asked for
// origins.
func (f *askedFiles) ReadFile(name string) ([]byte, error) {
	reply, err := f.lookUp(doStat, name)
	if err != nil {
		return nil, err
	}
	if reply.IsDir {
		// kustomize tries this with every directory that it is given.
		return nil, fmt.Errorf("%s is a directory", reply.Path)
	}
	if reply, err = f.lookUp(doRead, name); err != nil {
		return nil, err
	}
	if !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
		return reply.Data, nil
	}
	for _, problem := range foreign(path.Dir(reply.Path), reply.Data) {
		err = f.refuse("%s: %s", reply.Path, problem)
	}
	if err != nil {
		return nil, err
	}
	if path.Clean(name) == f.root {
		reply.Data, f.keepOrigins = withOrigins(reply.Data)
	}
	return reply.Data, nil
}

// IsDir implements filesys.FileSystem.
func (f *askedFiles) IsDir(name string) bool {
	reply, err := f.lookUp(doStat, name)
	return err == nil && reply.IsDir
}

// Exists implements filesys.FileSystem.
func (f *askedFiles) Exists(name string) bool {
	_, err := f.lookUp(doStat, name)
	return err == nil
}

// ReadDir implements filesys.FileSystem.
func (f *askedFiles) ReadDir(name string) ([]string, error) {
	reply, err := f.lookUp(doList, name)
	return reply.Names, err
}

// errUnused is returned by what kustomize does not need to build something.
var errUnused = errors.New("not possible in a file system that can only be read")

// Open implements filesys.FileSystem.
func (*askedFiles) Open(string) (filesys.File, error) { return nil, errUnused }

// Glob implements filesys.FileSystem.
func (*askedFiles) Glob(string) ([]string, error) { return nil, errUnused }

// Walk implements filesys.FileSystem.
func (*askedFiles) Walk(string, filepath.WalkFunc) error { return errUnused }

// Create implements filesys.FileSystem.
func (*askedFiles) Create(string) (filesys.File, error) { return nil, errUnused }

// Mkdir implements filesys.FileSystem.
func (*askedFiles) Mkdir(string) error { return errUnused }

// MkdirAll implements filesys.FileSystem.
func (*askedFiles) MkdirAll(string) error { return errUnused }

// RemoveAll implements filesys.FileSystem.
func (*askedFiles) RemoveAll(string) error { return errUnused }

// WriteFile implements filesys.FileSystem.
func (*askedFiles) WriteFile(string, []byte) error { return errUnused }
