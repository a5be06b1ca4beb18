package repo

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

const (
	// maxRefLinks is how many refs may be links to one another, as for git.
	maxRefLinks = 5
	// refOverhead is counted for each ref beside its name, in bytes: its hash, in
	// hexadecimal digits.
	refOverhead = 40
	// refsAtOnce is how many names are read of a directory at a time.
	refsAtOnce = 1000
	// tooManyRefs is what is wrong with a repository on disk that is over the limit.
	tooManyRefs = "it has too many branches and tags"
)

// diskRef is what the files of a repository say of one ref.
type diskRef struct {
	hash plumbing.Hash
	link plumbing.ReferenceName // the ref that it is a link to; "" for none
	// peeled is what a tag leads to; zero if only the object itself can say.
	peeled plumbing.Hash
}

// refFiles reads the refs of a repository on disk (gitrepository-layout(5)): each file
// once, however many refs are in it.
type refFiles struct {
	dir, common string // as gitDirs returns them
	limits      limits.Limits

	size int64 // of what was read
	all  map[plumbing.ReferenceName]diskRef
}

// read reads HEAD, the branches and the tags, and whatever else is packed with them.
// Refs that git packs meanwhile are in its file before their own files are gone, so
// that is read last.
func (f *refFiles) read(ctx context.Context) error {
	f.all = map[plumbing.ReferenceName]diskRef{}
	head, err := readRefFile(filepath.Join(f.dir, "HEAD"))
	if err != nil {
		return err
	}
	f.all[plumbing.HEAD] = head
	for _, dir := range []string{"refs/heads", "refs/tags"} {
		if err := f.walk(ctx, dir, 0); err != nil {
			return err
		}
	}
	return f.readPacked(ctx)
}

// spend counts what is read.
func (f *refFiles) spend(bytes int) error {
	f.size += int64(bytes)
	return f.limits.Check(limits.Refs, tooManyRefs, f.size)
}

// walk reads the refs below a directory that have files of their own.
func (f *refFiles) walk(ctx context.Context, dir string, depth int64) error {
	if err := f.limits.Check(limits.Depth, "the directories of its refs lie too deep in each other", depth); err != nil {
		return err
	}
	list, err := os.Open(filepath.Join(f.common, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // or not any more
	}
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	for {
		entries, err := list.ReadDir(refsAtOnce)
		for _, entry := range entries {
			if err := f.entry(ctx, dir+"/"+entry.Name(), entry, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry reads what is in a directory of refs. What git gives no ref for a name is
// something else.
func (f *refFiles) entry(ctx context.Context, name string, entry fs.DirEntry, depth int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.spend(len(name) + refOverhead); err != nil {
		return err
	}
	if entry.IsDir() {
		return f.walk(ctx, name, depth+1)
	}
	ref := plumbing.ReferenceName(name)
	if !refs.IsName(name) || ref.Validate() != nil {
		return nil
	}
	read, err := readRefFile(filepath.Join(f.common, name))
	if err == nil {
		f.all[ref] = read
	}
	if absent(err) {
		return nil
	}
	return err
}

// absent reports an error that says that there is no file: none, or a directory.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR)
}

// readRefFile reads the file of one ref.
func readRefFile(path string) (diskRef, error) {
	content, err := readSmall(path, refs.MaxName+int64(len(linkPrefix))+1)
	if err != nil {
		return diskRef{}, err
	}
	text := strings.TrimSpace(string(content))
	if link, ok := strings.CutPrefix(text, linkPrefix); ok && link != "" {
		return diskRef{link: plumbing.ReferenceName(strings.TrimSpace(link))}, nil
	}
	hash, ok := parseHash(text)
	if !ok {
		return diskRef{}, fmt.Errorf("%s is damaged: it holds neither a commit's hash nor the name of a ref (%q); git fsck finds out more", path, brief(text, refOverhead))
	}
	return diskRef{hash: hash}, nil
}

// parseHash reads a hash of 40 digits.
func parseHash(digits string) (hash plumbing.Hash, ok bool) {
	if len(digits) != hex.EncodedLen(len(hash)) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(digits))
	return hash, err == nil
}

// linkPrefix begins a file that says which ref it is a link to.
const linkPrefix = "ref:"

// readSmall reads the beginning of a file, and does not wait if it is a pipe.
func readSmall(path string, atMost int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, atMost))
	return content, errors.Join(err, file.Close())
}

// readPacked reads the file that has all other refs in it.
func (f *refFiles) readPacked(ctx context.Context) error {
	path := filepath.Join(f.common, "packed-refs")
	content, err := readSmall(path, f.limits.Of(limits.Refs)+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.spend(len(content)); err != nil {
		return err
	}
	packed := packedRefs{rest: string(content)}
	for {
		name, ref, err := packed.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, own := f.all[name]; !own { // a file of its own goes before
			f.all[name] = ref
		}
	}
}

// packedRefs reads the content of packed-refs, line by line.
type packedRefs struct {
	rest string
	// peeled says that each tag object is followed by what it leads to, so that a tag
	// without is none. Git writes that since 2008, others may not.
	peeled bool
}

// next returns a ref, io.EOF after the last.
func (p *packedRefs) next() (plumbing.ReferenceName, diskRef, error) {
	for {
		if p.rest == "" {
			return "", diskRef{}, io.EOF
		}
		line := p.line()
		if traits, ok := strings.CutPrefix(line, "# pack-refs with:"); ok {
			words := strings.Fields(traits)
			p.peeled = slices.Contains(words, "peeled") || slices.Contains(words, "fully-peeled")
		}
		if line == "" || line[0] == '#' {
			continue
		}
		digits, name, _ := strings.Cut(line, " ")
		hash, ok := parseHash(digits)
		if !ok || !refs.IsName(name) || name == "" {
			return "", diskRef{}, damaged(line)
		}
		ref := diskRef{hash: hash}
		if p.peeled {
			ref.peeled = ref.hash
		}
		if strings.HasPrefix(p.rest, "^") {
			line := p.line()
			if ref.peeled, ok = parseHash(line[1:]); !ok {
				return "", diskRef{}, damaged(line)
			}
		}
		return plumbing.ReferenceName(name), ref, nil
	}
}

// damaged is the error of a line that git does not write.
func damaged(line string) error {
	return fmt.Errorf("it is damaged at %q; git fsck finds out more", brief(line, maxSubject))
}

// line takes a line off.
func (p *packedRefs) line() string {
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	return strings.TrimSuffix(line, "\r")
}

// follow returns the ref at the end of links. It is false if they lead nowhere.
func (f *refFiles) follow(name plumbing.ReferenceName) (diskRef, bool, error) {
	for range maxRefLinks {
		ref, ok := f.all[name]
		if !ok && strings.HasPrefix(name.String(), "refs/") && name.Validate() == nil {
			// A branch of a remote, as a rule; of these only the packed ones were read.
			read, err := readRefFile(filepath.Join(f.common, name.String()))
			if err != nil && !absent(err) {
				return diskRef{}, false, err
			}
			ref, ok = read, err == nil
		}
		if !ok || ref.link == "" {
			return ref, ok, nil
		}
		name = ref.link
	}
	return diskRef{}, false, fmt.Errorf("it is a link to a link, more than %d times", maxRefLinks)
}

// Refs implements source.
func (l *local) Refs(ctx context.Context, _ refs.Scope) (refs.List, error) {
	files := refFiles{dir: l.dir, common: l.common, limits: l.disk.limits}
	if err := files.read(ctx); err != nil {
		return refs.List{}, err
	}
	out := refs.New(refs.Scope{All: true})
	tags := map[plumbing.Hash]refs.Tag{} // a release may have several
	for name, ref := range files.all {
		if err := ctx.Err(); err != nil {
			return refs.List{}, err
		}
		if !name.IsBranch() && !name.IsTag() && name != plumbing.HEAD {
			continue
		}
		end, ok, err := files.follow(name)
		if err != nil {
			return refs.List{}, fmt.Errorf("%s: %w", name, err)
		}
		if name == plumbing.HEAD && ref.link.IsBranch() {
			out.Head = strings.Clone(refs.Short(ref.link))
		}
		if !ok {
			continue // HEAD of a new repository, or a link that dangles
		}
		switch kept := strings.Clone(refs.Short(name)); { // else all of packed-refs would be kept
		case name == plumbing.HEAD:
			out.HeadCommit = end.hash
		case name.IsBranch():
			out.Branches[kept] = end.hash
		default:
			if _, known := tags[end.hash]; !known {
				tags[end.hash] = l.peel(end)
			}
			out.Tags[kept] = tags[end.hash]
		}
	}
	if _, ok := out.Branches[out.Head]; !ok {
		out.Head = "" // as a server does not list a branch that is yet to be born
	}
	l.listed = out
	return out, nil
}

// peel follows tag objects. A tag that leads nowhere is left as it is: it is an
// error for whoever chooses it.
func (l *local) peel(ref diskRef) refs.Tag {
	if !ref.peeled.IsZero() {
		return refs.Tag{Tip: ref.hash, Commit: ref.peeled}
	}
	if c, err := pack.ReadCommit(l.disk, ref.hash); err == nil {
		return refs.Tag{Tip: ref.hash, Commit: c.Hash}
	}
	return refs.Light(ref.hash)
}
