package pack

import (
	"io"
	"slices"
)

const chunkSize = 256 << 10

// Chunks is a growing piece of memory that, unlike a slice, is never copied and
// has no unused half: a pack may be most of what the process holds. Once written
// it may be read by many goroutines.
type Chunks struct {
	list [][]byte // all chunkSize long but the last
	size int64
}

// Write appends. It never fails.
func (c *Chunks) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if c.size%chunkSize == 0 {
			c.list = append(c.list, make([]byte, 0, chunkSize))
		}
		last := &c.list[len(c.list)-1]
		part := min(len(p), chunkSize-len(*last))
		*last = append(*last, p[:part]...)
		p = p[part:]
		c.size += int64(part)
	}
	return n, nil
}

// Trim gives back what the last piece has no use for: small packs are many.
func (c *Chunks) Trim() {
	if n := len(c.list); n > 0 && c.size%chunkSize != 0 {
		c.list[n-1] = slices.Clip(slices.Clone(c.list[n-1]))
	}
}

// ReadAt is io.ReaderAt's.
func (c *Chunks) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) && offset < c.size {
		part := copy(p[n:], c.list[offset/chunkSize][offset%chunkSize:])
		n += part
		offset += int64(part)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Reader returns a reader of its own over all of it.
func (c *Chunks) Reader() *io.SectionReader {
	return io.NewSectionReader(c, 0, c.size)
}
