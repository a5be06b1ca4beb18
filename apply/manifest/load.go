package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/kubesync/kubesync/internal/limits"
)

// Loader reads manifests. It remembers what the files of its last Load held, so
// that a revision costs what changed in it. Several goroutines may use it.
type Loader struct {
	limits limits.Limits

	mu      sync.Mutex
	last    *directory // the root of the last Load; nil if there was none
	objects []Object   // of the last Load
}

// NewLoader returns a Loader that remembers nothing yet. The limits bound what
// manifests may cost; their zero value is the defaults.
func NewLoader(bounds limits.Limits) *Loader { return &Loader{limits: bounds} }

// Loaded is what manifest files hold, in path order and then file order.
type Loaded struct {
	// Objects, and the slice, are shared with the Loader's memory: read them, never change them.
	Objects []Object
	// Skipped says which documents are no Kubernetes object and were left out.
	Skipped []Problem
	unnamed int // documents that the last of Skipped stands for
}

// Load reads every file of files as YAML or JSON manifests, whatever its name.
// The error is of type Problems and reports everything that is wrong in any file;
// what could be read is returned beside it, so that Check can find the rest.
//
// A file whose fs.FileInfo has a method Hash() string, giving a hash of the
// content, is not even opened if the last Load saw the same content. A directory that
// has one, of the names in it and what they stand for, is not looked into if the last
// Load saw the same one there.
func (l *Loader) Load(files fs.FS) (Loaded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run := newLoading(files, l)
	if root := run.root(l.last); root != nil {
		run.add(".", root)
		l.last, l.objects = root, run.loaded.Objects
	}
	return run.loaded, run.problems.asError()
}

// skip notes documents that are left out. Of many only the first are named.
func (l *Loaded) skip(skipped []Problem) {
	for _, p := range skipped {
		if l.unnamed > 0 || len(l.Skipped) == maxSkipped {
			l.unnamed++
			l.Skipped = l.Skipped[:maxSkipped]
			p = Problem{Text: fmt.Sprintf("%d more documents are no Kubernetes objects, and skipped", l.unnamed)}
		}
		l.Skipped = append(l.Skipped, p)
	}
}

// unreadable words a failure to read a file, whose path fs errors repeat.
func unreadable(path string, err error) Problem {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Path == path {
		err = pathErr.Err
	}
	return Problem{Origin: Origin{File: path}, Text: fmt.Sprintf("cannot be read: %v", err), Err: err}
}

// inFile returns copies of problems that name the file they were found in.
func inFile(path string, problems []Problem) Problems {
	named := make(Problems, len(problems))
	for i, p := range problems {
		p.Origin.File = path
		named[i] = p
	}
	return named
}

// asError returns the problems sorted by place, or nil if there are none.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Origin.File, b.Origin.File), cmp.Compare(a.Origin.Line, b.Origin.Line))
	})
	p = slices.CompactFunc(p, func(a, b Problem) bool { return a.String() == b.String() })
	if more := len(p) - maxProblems; more > 0 {
		p = append(p[:maxProblems:maxProblems], Problem{Text: fmt.Sprintf("at least %d more problems, which are reported when these are solved", more)})
	}
	return p
}

// JoinProblems makes one report of several: what Load found and what Check
// found. An error of another type becomes a problem without a place. It returns
// nil if all errors are nil.
func JoinProblems(errs ...error) error {
	var all Problems
	for _, err := range errs {
		var problems Problems
		switch {
		case err == nil:
		case errors.As(err, &problems):
			all = append(all, problems...)
		default:
			all = append(all, Problem{Text: err.Error(), Err: err})
		}
	}
	return all.asError()
}
