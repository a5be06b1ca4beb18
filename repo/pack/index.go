package pack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubesync/kubesync/internal/limits"
)

// New indexes what a server sent, or Write wrote, and verifies it: its
// checksum, and each object by putting it together.
func New(ctx context.Context, data *Chunks, bounds limits.Limits) (*Pack, error) {
	checksum, err := verifyChecksum(data)
	if err != nil {
		return nil, err
	}
	count, err := verifyCount(data, bounds)
	if err != nil {
		return nil, err
	}
	p := &Pack{data: data, Checksum: checksum, limits: bounds, objects: make([]packed, 0, count)}
	x := indexer{
		Pack:      p,
		scanner:   packfile.NewScanner(&contextReader{data.Reader(), ctx}),
		awaited:   map[plumbing.Hash][]int32{},
		remaining: bounds.Of(limits.Inflated),
	}
	// While deltas are put together one after the other, a base of any size is kept.
	p.scanner, p.contents = x.scanner, cache.NewBufferLRU(cache.FileSize(bounds.Of(limits.Delta)))
	if err := x.index(count); err != nil {
		return nil, err
	}
	p.scanner, p.contents = packfile.NewScanner(data.Reader()), cache.NewBufferLRU(packCache)
	return p, nil
}

func verifyChecksum(data *Chunks) (plumbing.Hash, error) {
	var trailer plumbing.Hash
	body := data.size - sha1.Size
	if body < 0 {
		return trailer, ErrCutOff
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(data, 0, body)); err != nil {
		return trailer, err
	}
	if _, err := data.ReadAt(trailer[:], body); err != nil {
		return trailer, err
	}
	if !bytes.Equal(h.Sum(nil), trailer[:]) {
		return trailer, ErrChecksum
	}
	return trailer, nil
}

// verifyCount compares the number of objects that a pack says it has with its size:
// room is made for them before the first is read.
func verifyCount(data *Chunks, bounds limits.Limits) (int, error) {
	const (
		start  = 12 // bytes of the pack's header
		object = 9  // and of the least object: its header, and nothing, deflated
	)
	var header [start]byte
	if _, err := data.ReadAt(header[:], 0); err != nil {
		return 0, ErrCutOff
	}
	count := int64(binary.BigEndian.Uint32(header[8:]))
	if count > (data.size-start-sha1.Size)/object {
		return 0, errDamaged(fmt.Sprintf("it says that it has %d objects, and has not the size", count))
	}
	return int(count), bounds.Check(limits.Objects, tooMuch, count)
}

// tooMuch is what is wrong with a pack that is over a limit.
const tooMuch = "the pack holds too much"

// indexer finds out what is in a pack.
type indexer struct {
	*Pack
	scanner *packfile.Scanner
	// awaited are the deltas whose base was not seen yet, by its hash.
	awaited map[plumbing.Hash][]int32
	// depths are how many objects each is put together from; nil without deltas.
	depths []int32
	// remaining is how much may still be inflated, in bytes: a small pack can hold
	// more than can be read.
	remaining int64
}

// index reads all objects, then puts together those that are deltas.
func (x *indexer) index(count int) error {
	if _, _, err := x.scanner.Header(); err != nil {
		return fmt.Errorf("damaged pack: %w", err)
	}
	for range count {
		if err := x.read(); err != nil {
			return err
		}
	}
	if end, err := x.scanner.SeekFromStart(0); err != nil || end != x.data.size-sha1.Size {
		return errDamaged("something follows the last object")
	}
	if err := x.resolve(); err != nil {
		return err
	}
	x.byHash = make([]int32, len(x.objects))
	for i := range x.byHash {
		x.byHash[i] = int32(i)
	}
	slices.SortFunc(x.byHash, func(a, b int32) int {
		return bytes.Compare(x.objects[a].hash[:], x.objects[b].hash[:])
	})
	for _, o := range x.objects {
		if o.kind == plumbing.CommitObject {
			x.Commits = append(x.Commits, o.hash)
		}
	}
	return nil
}

// spend counts what is inflated.
func (x *indexer) spend(bytes int64) error {
	if x.remaining -= bytes; x.remaining < 0 {
		return x.limits.Exceeded(limits.Inflated, tooMuch, 0)
	}
	return nil
}

// read reads the next object.
func (x *indexer) read() error {
	h, err := x.scanner.NextObjectHeader()
	if err != nil {
		return fmt.Errorf("damaged pack: %w", err)
	}
	if err := x.spend(h.Length); err != nil {
		return err
	}
	switch h.Type {
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		return x.readDelta(h)
	case plumbing.BlobObject:
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.TagObject:
		if err := x.limits.Check(limits.Delta, "a "+h.Type.String()+" is too large", h.Length); err != nil {
			return err
		}
	default:
		return errDamaged(fmt.Sprintf("an object is of the unknown type %d", h.Type))
	}
	hasher := plumbing.NewHasher(h.Type, h.Length)
	crc, err := x.next(h, hasher)
	if err != nil {
		return err
	}
	x.objects = append(x.objects, packed{offset: h.Offset, size: h.Length, hash: hasher.Sum(), crc: crc, base: noBase, kind: h.Type})
	return nil
}

// next inflates what follows a header.
func (x *indexer) next(h *packfile.ObjectHeader, to io.Writer) (crc uint32, err error) {
	n, crc, err := x.scanner.NextObject(to)
	if err != nil {
		return 0, fmt.Errorf("damaged pack: %w", err)
	}
	if n != h.Length {
		return 0, errDamaged("an object is shorter than it says")
	}
	return crc, nil
}

// readDelta reads an object that is made of another one, as far as that can be done
// without that.
func (x *indexer) readDelta(h *packfile.ObjectHeader) error {
	start := new(prefix)
	crc, err := x.next(h, start)
	if err != nil {
		return err
	}
	_, size, _, err := deltaSizes(start.bytes())
	if err != nil {
		return err
	}
	const what = "an object that is made of others is too large"
	if err := cmp.Or(x.limits.Check(limits.Delta, what, h.Length), x.limits.Check(limits.Delta, what, size)); err != nil {
		return err
	}
	place := int32(len(x.objects))
	o := packed{offset: h.Offset, size: size, crc: crc, base: noBase, kind: h.Type}
	if h.Type == plumbing.REFDeltaObject {
		x.awaited[h.Reference] = append(x.awaited[h.Reference], place)
	} else {
		base, found := slices.BinarySearchFunc(x.objects, h.OffsetReference, func(o packed, offset int64) int { return cmp.Compare(o.offset, offset) })
		if !found {
			return errDamaged("an object is made of one that is not there")
		}
		o.base = int32(base)
	}
	x.objects = append(x.objects, o)
	return nil
}

// prefix keeps the first bytes that are written, enough for the sizes of a delta.
type prefix struct {
	kept [2 * binary.MaxVarintLen64]byte
	n    int
}

// Write implements io.Writer.
func (p *prefix) Write(data []byte) (int, error) {
	p.n += copy(p.kept[p.n:], data)
	return len(data), nil
}

func (p *prefix) bytes() []byte { return p.kept[:p.n] }

// isDelta reports an object that was not put together yet.
func (o packed) isDelta() bool { return o.kind.IsDelta() }

// resolve puts the deltas together: those on top of an object follow it at once, while
// it is at hand.
func (x *indexer) resolve() error {
	next := x.byBase()
	if next == nil {
		return nil
	}
	x.depths = make([]int32, len(x.objects))
	var todo []int32
	for i, o := range x.objects {
		if !o.isDelta() {
			todo = append(todo, int32(i))
		}
	}
	done := len(todo)
	slices.Reverse(todo)
	for len(todo) > 0 {
		base := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, delta := range next(base) {
			if err := x.put(delta, base); err != nil {
				return err
			}
			todo = append(todo, delta)
			done++
		}
	}
	if done < len(x.objects) {
		return errDamaged("an object is made of one that is not there")
	}
	return nil
}

// byBase returns a function that returns the deltas on top of an object that is put
// together; nil if there are no deltas.
func (x *indexer) byBase() func(base int32) []int32 {
	var deltas []int32
	for i, o := range x.objects {
		if o.isDelta() && o.base != noBase {
			deltas = append(deltas, int32(i))
		}
	}
	if len(deltas) == 0 && len(x.awaited) == 0 {
		return nil
	}
	slices.SortStableFunc(deltas, func(a, b int32) int { return cmp.Compare(x.objects[a].base, x.objects[b].base) })
	return func(base int32) []int32 {
		from, _ := slices.BinarySearchFunc(deltas, base, func(delta, base int32) int { return cmp.Compare(x.objects[delta].base, base) })
		to := from
		for to < len(deltas) && x.objects[deltas[to]].base == base {
			to++
		}
		hash := x.objects[base].hash
		awaited := x.awaited[hash]
		delete(x.awaited, hash) // the same object may be there twice
		return append(slices.Clip(deltas[from:to]), awaited...)
	}
}

// put puts a delta on top of its base together.
func (x *indexer) put(place, base int32) error {
	o := &x.objects[place]
	o.base = base
	x.depths[place] = x.depths[base] + 1
	if err := x.limits.Check(limits.Chain, "an object is made of too many others", int64(x.depths[place])); err != nil {
		return err
	}
	if err := x.limits.Check(limits.Delta, "an object that others are made of is too large", x.objects[base].size); err != nil {
		return err
	}
	if err := x.spend(x.cost(place)); err != nil {
		return err
	}
	content, err := x.content(place)
	if err != nil {
		return err
	}
	x.contents.Put(o.offset, content)
	o.kind = x.objects[base].kind
	o.hash = plumbing.ComputeHash(o.kind, content)
	return nil
}

// cost is how much is inflated to put an object together, in bytes.
func (x *indexer) cost(place int32) int64 {
	cost := int64(0)
	for {
		o := x.objects[place]
		cost += o.size
		if o.base == noBase {
			return cost
		}
		place = o.base
		if _, held := x.contents.Get(x.objects[place].offset); held {
			return cost
		}
	}
}

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
