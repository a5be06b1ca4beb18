package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubesync/kubesync/internal/limits"
)

const (
	// packCache bounds the objects that a pack keeps inflated for the deltas on top
	// of them, in bytes.
	packCache = 4 * cache.MiByte
	// Streamed is the size from which on a file is inflated while it is read.
	Streamed = 1 << 20
)

// ErrCutOff is an answer that ends too early.
var ErrCutOff = errors.New("the transfer broke off in the middle")

// ErrChecksum is a pack that is another than the one that was sent. Asking again may
// help, as after one that was cut off.
var ErrChecksum = fmt.Errorf("damaged pack: its checksum is another: %w", ErrCutOff)

// Pack is a set of objects in memory, compressed as git sends them. It never
// changes. go-git's own reader of packs holds each object that it looks at in memory,
// several times over, before its size can be checked; this one does not.
type Pack struct {
	data     *Chunks
	Checksum plumbing.Hash
	limits   limits.Limits
	// objects are in the order of the pack; byHash are their places in it, sorted by
	// hash.
	objects []packed
	byHash  []int32
	// Commits are the hashes of the commits in it.
	Commits []plumbing.Hash

	mu       sync.Mutex // guards what follows
	scanner  *packfile.Scanner
	contents *cache.BufferLRU // by offset
}

// packed is an object of a pack.
type packed struct {
	offset int64 // of its header
	size   int64 // of its content
	hash   plumbing.Hash
	crc    uint32
	base   int32 // the place of the object that it is a delta on; noBase if it is none
	kind   plumbing.ObjectType
}

// noBase is the base of an object that is no delta.
const noBase = -1

// find returns the place of an object, or -1.
func (p *Pack) find(hash plumbing.Hash) int32 {
	at, found := slices.BinarySearchFunc(p.byHash, hash, func(place int32, hash plumbing.Hash) int {
		return bytes.Compare(p.objects[place].hash[:], hash[:])
	})
	if !found {
		return -1
	}
	return p.byHash[at]
}

// Reader reads the pack as git stores it.
func (p *Pack) Reader() *io.SectionReader { return p.data.Reader() }

// Limits implements Objects.
func (p *Pack) Limits() limits.Limits { return p.limits }

// Object implements Objects. A large file is inflated while it is read.
func (p *Pack) Object(hash plumbing.Hash) (plumbing.EncodedObject, error) {
	place := p.find(hash)
	if place < 0 {
		return nil, plumbing.ErrObjectNotFound
	}
	o := p.objects[place]
	out := &encoded{hash: hash, kind: o.kind, size: o.size}
	if o.base == noBase && o.size >= Streamed {
		out.open = func() (io.ReadCloser, error) { return p.stream(o) }
		return out, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	content, err := p.content(place)
	out.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return out, err
}

// encoded is a git object that can be read any number of times. What is not said here is
// that of an empty object in memory.
type encoded struct {
	plumbing.MemoryObject
	hash plumbing.Hash
	kind plumbing.ObjectType
	size int64
	open func() (io.ReadCloser, error)
}

// Hash implements plumbing.EncodedObject.
func (e *encoded) Hash() plumbing.Hash { return e.hash }

// Type implements plumbing.EncodedObject.
func (e *encoded) Type() plumbing.ObjectType { return e.kind }

// Size implements plumbing.EncodedObject.
func (e *encoded) Size() int64 { return e.size }

// Reader implements plumbing.EncodedObject.
func (e *encoded) Reader() (io.ReadCloser, error) { return e.open() }

// stream reads an object that is no delta.
func (p *Pack) stream(o packed) (io.ReadCloser, error) {
	scanner := packfile.NewScanner(p.data.Reader())
	if _, err := scanner.SeekObjectHeader(o.offset); err != nil {
		return nil, err
	}
	return scanner.ReadObject()
}

// content returns the content of an object, which no one may change. The caller holds
// mu.
func (p *Pack) content(place int32) ([]byte, error) {
	var above []int32
	at := place
	content, held := p.contents.Get(p.objects[at].offset)
	for !held && p.objects[at].base != noBase {
		above = append(above, at)
		at = p.objects[at].base
		content, held = p.contents.Get(p.objects[at].offset)
	}
	if !held {
		var err error
		if content, err = p.inflate(p.objects[at].offset); err != nil {
			return nil, err
		}
		if len(above) > 0 {
			p.contents.Put(p.objects[at].offset, content)
		}
	}
	for _, at := range slices.Backward(above) {
		o := p.objects[at]
		delta, err := p.inflate(o.offset)
		if err != nil {
			return nil, err
		}
		if content, err = patch(content, delta, o.size); err != nil {
			return nil, err
		}
		if at != place {
			p.contents.Put(o.offset, content)
		}
	}
	return content, nil
}

// inflate returns what a pack has at an offset: an object, or a delta. The caller
// holds mu.
func (p *Pack) inflate(offset int64) ([]byte, error) {
	h, err := p.scanner.SeekObjectHeader(offset)
	if err != nil {
		return nil, err
	}
	out := exactly{make([]byte, 0, h.Length)}
	if _, _, err := p.scanner.NextObject(&out); err != nil {
		return nil, err
	}
	if int64(len(out.bytes)) != h.Length {
		return nil, errDamaged("an object is shorter than it says")
	}
	return out.bytes, nil
}

// exactly is as much memory as will be written to it.
type exactly struct{ bytes []byte }

// Write implements io.Writer.
func (e *exactly) Write(p []byte) (int, error) {
	e.bytes = append(e.bytes, p...)
	return len(p), nil
}

func errDamaged(why string) error { return fmt.Errorf("damaged pack: %s", why) }

// Size implements Objects.
func (p *Pack) Size(hash plumbing.Hash) (int64, error) {
	place := p.find(hash)
	if place < 0 {
		return 0, plumbing.ErrObjectNotFound
	}
	return p.objects[place].size, nil
}

// Has implements Objects.
func (p *Pack) Has(hash plumbing.Hash) bool { return p.find(hash) >= 0 }

// Len returns how many objects there are.
func (p *Pack) Len() int { return len(p.objects) }

// Those returns the objects that are wanted.
func (p *Pack) Those(wanted func(plumbing.Hash) bool) []plumbing.Hash {
	var found []plumbing.Hash
	for _, place := range p.byHash {
		if hash := p.objects[place].hash; wanted(hash) {
			found = append(found, hash)
		}
	}
	return slices.Compact(found)
}

// Index returns the file that git keeps beside a pack.
func (p *Pack) Index() ([]byte, error) {
	w := new(idxfile.Writer)
	if err := w.OnHeader(uint32(len(p.objects))); err != nil {
		return nil, err
	}
	for _, o := range p.objects {
		w.Add(o.hash, uint64(o.offset), o.crc)
	}
	if err := w.OnFooter(p.Checksum); err != nil {
		return nil, err
	}
	known, err := w.Index()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = idxfile.NewEncoder(&out).Encode(known)
	return out.Bytes(), err
}
