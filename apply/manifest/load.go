package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

	mu     sync.Mutex
	parsed map[string]*parsedFile // by content; only the files of the last Load
}

// NewLoader returns a Loader that remembers nothing yet. The limits bound what
// manifests may cost; their zero value is the defaults.
func NewLoader(bounds limits.Limits) *Loader { return &Loader{limits: bounds} }

// Loaded is what manifest files hold, in path order and then file order.
type Loaded struct {
	// Objects are shared with the Loader's memory: read them, never change them.
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
// content, is not even opened if the last Load saw the same content.
func (l *Loader) Load(files fs.FS) (Loaded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	found, problems := findFiles(files)
	before := l.parsed
	l.parsed = make(map[string]*parsedFile, len(found))
	var loaded Loaded
	var total cost
	for _, at := range found {
		path := at.path
		file, err := l.read(files, at, before)
		if err != nil {
			problems = append(problems, unreadable(path, err))
			continue
		}
		if err := total.add(file, l.limits); err != nil {
			problems = append(problems, Problem{Origin: Origin{File: path}, Text: err.Error(), Err: err})
			break
		}
		for _, o := range file.objects {
			o.Origin.File = path
			loaded.Objects = append(loaded.Objects, o)
		}
		loaded.skip(inFile(path, file.skipped))
		problems = append(problems, inFile(path, file.problems)...)
	}
	return loaded, problems.asError()
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

// cost is what the manifests of a revision come to.
type cost struct{ size, documents int64 }

// add adds a file. The error reports the limit that this exceeds.
func (c *cost) add(file *parsedFile, bounds limits.Limits) error {
	c.size += file.size
	c.documents += int64(file.documents)
	return cmp.Or(
		bounds.Check(limits.Manifests, "there are too many manifests", c.size),
		bounds.Check(limits.Documents, "there are too many documents", c.documents),
	)
}

// read returns what one file holds, from memory if its content is known.
func (l *Loader) read(files fs.FS, at foundFile, before map[string]*parsedFile) (*parsedFile, error) {
	key := at.key
	if file := before[key]; key != "" && file != nil {
		l.parsed[key] = file
		return file, nil
	}
	data, err := fs.ReadFile(files, at.path)
	if err != nil {
		return nil, err
	}
	if err := l.limits.Check(limits.File, "it is too large", int64(len(data))); err != nil {
		return nil, err
	}
	if key == "" {
		sum := sha256.Sum256(data)
		key = "content:" + hex.EncodeToString(sum[:])
	}
	file := cmp.Or(l.parsed[key], before[key])
	if file == nil {
		file = parseFile(data, l.limits)
	}
	l.parsed[key] = file
	return file, nil
}

// foundFile is a file: its path, and what its content is known by, "" if by nothing.
type foundFile struct{ path, key string }

// findFiles lists the files in path order, and the directories and files that
// could not be looked at.
func findFiles(files fs.FS) ([]foundFile, Problems) {
	var found []foundFile
	var problems Problems
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				found = append(found, foundFile{path, knownHash(info)})
			}
		}
		if err != nil {
			problems = append(problems, unreadable(path, err))
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil {
		problems = append(problems, unreadable(".", err))
	}
	return found, problems
}

// knownHash returns the content hash that the file system itself knows, or "".
func knownHash(info fs.FileInfo) string {
	if hashed, ok := info.(interface{ Hash() string }); ok && hashed.Hash() != "" {
		return "hash:" + hashed.Hash()
	}
	return ""
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
