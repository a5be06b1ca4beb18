package repo

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// packCache bounds the objects that a pack keeps inflated for the deltas on top
// of them, in bytes.
const packCache = 4 * cache.MiByte

// errCutOff is a pack that did not arrive as it was sent.
var errCutOff = errors.New("the transfer broke off in the middle")

// pack is a set of objects in memory, compressed as git sends them. It never
// changes.
type pack struct {
	data  *chunks
	index *idxfile.MemoryIndex
	// commits are the hashes of the commits in it.
	commits []plumbing.Hash

	mu   sync.Mutex // the packfile seeks
	file *packfile.Packfile
}

// newPack indexes what a server sent, or writePack wrote, and verifies it: its
// checksum, and each object by inflating it.
func newPack(ctx context.Context, data *chunks) (*pack, error) {
	if err := verifyChecksum(data); err != nil {
		return nil, err
	}
	if err := verifyCount(data); err != nil {
		return nil, err
	}
	index, found := new(idxfile.Writer), new(commitFinder)
	parser, err := packfile.NewParser(packfile.NewScanner(&contextReader{data.reader(), ctx}), index, found)
	if err != nil {
		return nil, err
	}
	if _, err := parser.Parse(); err != nil {
		return nil, fmt.Errorf("damaged pack: %w", err)
	}
	p := &pack{data: data, commits: found.commits}
	if p.index, err = index.Index(); err != nil {
		return nil, err
	}
	p.file = packfile.NewPackfileWithCache(p.index, nil, packFile{data.reader()}, cache.NewObjectLRU(packCache), 0)
	return p, nil
}

func verifyChecksum(data *chunks) error {
	body := data.size - sha1.Size
	if body < 0 {
		return errCutOff
	}
	h := sha1.New()
	var trailer [sha1.Size]byte
	if _, err := io.Copy(h, io.NewSectionReader(data, 0, body)); err != nil {
		return err
	}
	if _, err := data.ReadAt(trailer[:], body); err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), trailer[:]) {
		return errCutOff
	}
	return nil
}

// verifyCount compares the number of objects that a pack says it has with its size:
// go-git makes room for them before it reads the first.
func verifyCount(data *chunks) error {
	const (
		start  = 12 // bytes of the pack's header
		object = 9  // and of the least object: its header, and nothing, deflated
	)
	var header [start]byte
	if _, err := data.ReadAt(header[:], 0); err != nil {
		return errCutOff
	}
	if count := int64(binary.BigEndian.Uint32(header[8:])); count > (data.size-start-sha1.Size)/object {
		return fmt.Errorf("damaged pack: it says that it has %d objects, and has not the size", count)
	}
	return nil
}

func (p *pack) object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.file.Get(hash)
}

func (p *pack) size(hash plumbing.Hash) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offset, err := p.index.FindOffset(hash)
	if err != nil {
		return 0, err
	}
	return p.file.GetSizeByOffset(offset)
}

func (p *pack) has(hash plumbing.Hash) bool {
	p.mu.Lock() // the index fills a table of its own on some look-ups
	defer p.mu.Unlock()
	found, err := p.index.Contains(hash)
	return err == nil && found
}

// len returns how many objects there are.
func (p *pack) len() int {
	count, err := p.index.Count()
	if err != nil {
		return 0 // a memory index always knows
	}
	return int(count)
}

// those returns the objects that are wanted.
func (p *pack) those(wanted func(plumbing.Hash) bool) []plumbing.Hash {
	entries, err := p.index.Entries()
	if err != nil {
		return nil // a memory index can always be read
	}
	var found []plumbing.Hash
	for {
		entry, err := entries.Next()
		if err != nil {
			return found
		}
		if wanted(entry.Hash) {
			found = append(found, entry.Hash)
		}
	}
}

// addCommits notes the commits of the pack in a history.
func (p *pack) addCommits(h history) error {
	for _, hash := range p.commits {
		c, err := readCommit(p, hash)
		if err != nil {
			return err
		}
		h.add(c)
	}
	return nil
}

// packCommit copies a commit with its files, and the tag objects that lead to
// it, into a pack of their own.
func packCommit(ctx context.Context, from objects, c *object.Commit, tags []plumbing.Hash) (*pack, error) {
	hashes := []plumbing.Hash{c.Hash}
	for _, tip := range tags {
		if tip != c.Hash {
			hashes = append(hashes, tip)
		}
	}
	err := walkTrees(ctx, from, c.TreeHash, func(hash plumbing.Hash) error {
		hashes = append(hashes, hash)
		return nil
	})
	if err != nil {
		return nil, err
	}
	data, err := writePack(ctx, from, hashes)
	if err != nil {
		return nil, err
	}
	return newPack(ctx, data)
}

// writePack writes objects as a pack, one after the other and without deltas
// (gitformat-pack(5)). go-git's encoder would do too, but holds all of them in
// memory at once.
func writePack(ctx context.Context, from objects, hashes []plumbing.Hash) (*chunks, error) {
	data, sum := new(chunks), sha1.New()
	out := io.MultiWriter(data, sum) // neither ever fails
	header := binary.BigEndian.AppendUint32([]byte("PACK"), packfile.VersionSupported)
	if _, err := out.Write(binary.BigEndian.AppendUint32(header, uint32(len(hashes)))); err != nil {
		return nil, err
	}
	deflate := zlib.NewWriter(out)
	for _, hash := range hashes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := from.object(hash)
		if err != nil {
			return nil, err
		}
		if _, err := out.Write(objectHeader(o.Type(), o.Size())); err != nil {
			return nil, err
		}
		deflate.Reset(out)
		if err := copyObject(deflate, o); err != nil {
			return nil, err
		}
	}
	_, err := data.Write(sum.Sum(nil))
	return data, err
}

func copyObject(to io.WriteCloser, o plumbing.EncodedObject) error {
	r, err := o.Reader()
	if err != nil {
		return err
	}
	_, err = io.Copy(to, r)
	return errors.Join(err, r.Close(), to.Close())
}

// objectHeader is an object's type and size before compression: four bits of
// the size beside the type, then seven a byte.
func objectHeader(t plumbing.ObjectType, size int64) []byte {
	b := byte(t)<<4 | byte(size&0x0f)
	size >>= 4
	var out []byte
	for size > 0 {
		out = append(out, b|0x80)
		b = byte(size & 0x7f)
		size >>= 7
	}
	return append(out, b)
}

// commitFinder is told by the parser of each object: first its type, then its
// hash.
type commitFinder struct {
	last    plumbing.ObjectType
	commits []plumbing.Hash
}

func (*commitFinder) OnHeader(uint32) error { return nil }

func (f *commitFinder) OnInflatedObjectHeader(t plumbing.ObjectType, _, _ int64) error {
	f.last = t
	return nil
}

func (f *commitFinder) OnInflatedObjectContent(hash plumbing.Hash, _ int64, _ uint32, _ []byte) error {
	if f.last == plumbing.CommitObject {
		f.commits = append(f.commits, hash)
	}
	return nil
}

func (*commitFinder) OnFooter(plumbing.Hash) error { return nil }

// contextReader makes the parser, which knows of no context, stop with it.
type contextReader struct {
	*io.SectionReader
	ctx context.Context
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.SectionReader.Read(p)
}

// packFile is a pack's data as the file that go-git wants to see.
type packFile struct{ *io.SectionReader }

func (packFile) Name() string              { return "pack" }
func (packFile) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (packFile) Truncate(int64) error      { return errors.ErrUnsupported }
func (packFile) Lock() error               { return nil }
func (packFile) Unlock() error             { return nil }
func (packFile) Close() error              { return nil }
