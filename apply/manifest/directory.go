package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kubesync/kubesync/internal/limits"
)

// directory is what was loaded of a directory. Once that is done no one changes it: the
// next Load takes it over if the directory is the same.
type directory struct {
	hash    string // "" if it is known by none, or not all of it could be read
	entries []entry
	cost    cost // of the files in it and below, as are the next two
	objects int
	silent  bool // nothing was skipped, and nothing is wrong
}

// entry is what stands under a name in a directory.
type entry struct {
	name string

	dir   *directory // nil of a file
	first int        // of its objects, counted from the first one of the directory it is in

	key  string      // that the file's content is known by; "" until it was read
	file *parsedFile // nil if it was not read
}

// in returns what stands under a name; nil if nothing does.
func (d *directory) in(name string) *entry {
	if d == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(d.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !found {
		return nil
	}
	return &d.entries[i]
}

// cost is what manifests come to.
type cost struct{ size, documents int64 }

// plus adds costs.
func (c cost) plus(other cost) cost {
	return cost{c.size + other.size, c.documents + other.documents}
}

// minus takes back what was added.
func (c cost) minus(other cost) cost {
	return cost{c.size - other.size, c.documents - other.documents}
}

// check returns an error that reports the limit that the manifests of a revision exceed.
func (c cost) check(bounds limits.Limits) error {
	return cmp.Or(
		bounds.Check(limits.Manifests, "there are too many manifests", c.size),
		bounds.Check(limits.Documents, "there are too many documents", c.documents),
	)
}

// loading is one Load. It first looks for what is the same as in the last one, and then
// reads the rest, since a file may have come from anywhere.
type loading struct {
	files  fs.FS
	limits limits.Limits
	last   []Object // of the last Load

	// same are the directories that are taken over, and which of the last objects is the
	// first one of each.
	same map[*directory]int
	// gone are the files of the last Load that are not at their place any more, and read
	// those that were read in this one, by what their content is known by.
	gone, read map[string]*parsedFile

	loaded   Loaded
	total    cost
	problems Problems
}

func newLoading(files fs.FS, by *Loader) *loading {
	const more = 64 // objects, which a commit may well add
	return &loading{
		files: files, limits: by.limits, last: by.objects,
		same: map[*directory]int{}, gone: map[string]*parsedFile{}, read: map[string]*parsedFile{},
		loaded: Loaded{Objects: make([]Object, 0, len(by.objects)+more)},
	}
}

// root looks at everything; nil if there is nothing to look at.
func (l *loading) root(last *directory) *directory {
	info, err := fs.Stat(l.files, ".")
	if err != nil {
		l.problems = append(l.problems, unreadable(".", err))
		return nil
	}
	// The root itself is never taken over, so that there is always a place for the rest.
	return l.list(".", knownHash(info), last, 0)
}

// look returns what a directory holds: what the last Load found there, if it is the same.
// first is the place among the last objects of the first one that was there.
func (l *loading) look(name, hash string, last *directory, first int) *directory {
	if last != nil && hash != "" && last.hash == hash {
		l.same[last] = first
		return last
	}
	return l.list(name, hash, last, first)
}

// list looks into a directory. What is in it is read later.
func (l *loading) list(name, hash string, last *directory, first int) *directory {
	dir := &directory{hash: hash, silent: true}
	found, err := fs.ReadDir(l.files, name)
	if err != nil {
		l.unreadable(dir, name, err)
		return dir
	}
	dir.entries = make([]entry, 0, len(found))
	for _, f := range found {
		info, err := f.Info()
		at, before := path.Join(name, f.Name()), last.in(f.Name())
		switch {
		case f.IsDir():
			e := entry{name: f.Name()}
			if before != nil && before.dir != nil {
				e.dir = l.look(at, knownHash(info), before.dir, first+before.first)
			} else {
				e.dir = l.look(at, knownHash(info), nil, 0)
			}
			dir.entries = append(dir.entries, e)
		case err != nil:
			l.unreadable(dir, at, err)
		default:
			e := entry{name: f.Name(), key: knownHash(info)}
			if before != nil && e.key != "" && e.key == before.key {
				e.file = before.file
			}
			dir.entries = append(dir.entries, e)
		}
	}
	if last != nil {
		l.leave(last, dir)
	}
	return dir
}

// leave notes the files of a directory that are not in the one in its place; nil if there
// is none.
func (l *loading) leave(last, now *directory) {
	for _, e := range last.entries {
		stays := now.in(e.name)
		switch {
		case e.dir != nil && (stays == nil || stays.dir == nil):
			l.leave(e.dir, nil)
		case e.file != nil && (stays == nil || stays.file != e.file):
			l.gone[e.key] = e.file
		}
	}
}

// add adds what a directory holds that was looked into. It reports whether the limits allow
// all of it; what comes after is not remembered.
func (l *loading) add(name string, dir *directory) bool {
	first, before := len(l.loaded.Objects), l.total
	for i := range dir.entries {
		e := &dir.entries[i]
		e.first = len(l.loaded.Objects) - first
		at := path.Join(name, e.name)
		place, same := l.same[e.dir]
		switch {
		case same:
			if !l.repeat(at, e.dir, place) {
				return dir.cut(i)
			}
		case e.dir != nil:
			if !l.add(at, e.dir) {
				return dir.cut(i + 1)
			}
		default:
			if err := l.parse(at, e); err != nil {
				l.unreadable(dir, at, err)
				continue
			}
			if !l.addFile(at, e.file) {
				return dir.cut(i + 1)
			}
		}
		dir.include(e)
	}
	dir.objects, dir.cost = len(l.loaded.Objects)-first, l.total.minus(before)
	return true
}

// cut leaves only the first entries of a directory, as the rest was not read.
func (d *directory) cut(entries int) bool {
	d.entries, d.hash = d.entries[:entries], ""
	return false
}

// include notes what is to be known of a directory because of an entry.
func (d *directory) include(e *entry) {
	if e.dir == nil {
		d.silent = d.silent && len(e.file.skipped)+len(e.file.problems) == 0
		return
	}
	d.silent = d.silent && e.dir.silent
	if e.dir.hash == "" {
		d.hash = ""
	}
}

// repeat adds what a directory holds that is taken over. first is the place of its first
// object among the last ones. It reports whether the limits allow all of it.
func (l *loading) repeat(name string, dir *directory, first int) bool {
	if total := l.total.plus(dir.cost); dir.silent && total.check(l.limits) == nil {
		l.total = total
		l.loaded.Objects = append(l.loaded.Objects, l.last[first:first+dir.objects]...)
		return true
	}
	for _, e := range dir.entries {
		at := path.Join(name, e.name)
		if e.dir != nil && !l.repeat(at, e.dir, first+e.first) || e.dir == nil && !l.addFile(at, e.file) {
			return false
		}
	}
	return true
}

// addFile adds what a file holds, and reports whether the limits allow it.
func (l *loading) addFile(path string, file *parsedFile) bool {
	l.total = l.total.plus(cost{file.size, int64(file.documents)})
	if err := l.total.check(l.limits); err != nil {
		l.problems = append(l.problems, Problem{Origin: Origin{File: path}, Text: err.Error(), Err: err})
		return false
	}
	for _, o := range file.objects {
		o.Origin.File = path
		l.loaded.Objects = append(l.loaded.Objects, o)
	}
	l.loaded.skip(inFile(path, file.skipped))
	l.problems = append(l.problems, inFile(path, file.problems)...)
	return true
}

// parse finds out what a file holds, from memory if its content is known.
func (l *loading) parse(path string, e *entry) error {
	if e.file == nil && e.key != "" {
		e.file = cmp.Or(l.read[e.key], l.gone[e.key])
	}
	if e.file == nil {
		data, err := fs.ReadFile(l.files, path)
		if err != nil {
			return err
		}
		if err := l.limits.Check(limits.File, "it is too large", int64(len(data))); err != nil {
			return err
		}
		if e.key == "" {
			sum := sha256.Sum256(data)
			e.key = "content:" + hex.EncodeToString(sum[:])
			e.file = cmp.Or(l.read[e.key], l.gone[e.key])
		}
		if e.file == nil {
			e.file = parseFile(data, l.limits)
		}
		l.read[e.key] = e.file
	}
	return nil
}

// unreadable notes what could not be read of a directory, which is tried again.
func (l *loading) unreadable(dir *directory, path string, err error) {
	l.problems = append(l.problems, unreadable(path, err))
	dir.hash, dir.silent = "", false
}

// knownHash returns the hash that the file system itself knows something by, or "".
func knownHash(info fs.FileInfo) string {
	if hashed, ok := info.(interface{ Hash() string }); ok {
		return hashed.Hash()
	}
	return ""
}
