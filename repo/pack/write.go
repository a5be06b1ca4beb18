package pack

import (
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubesync/kubesync/internal/limits"
)

// OfCommit copies a commit with its files, and those tag objects that are there, into
// a pack of their own.
func OfCommit(ctx context.Context, from Objects, c *object.Commit, tags []plumbing.Hash) (*Pack, error) {
	hashes := []plumbing.Hash{c.Hash}
	for _, tip := range tags {
		if !slices.Contains(hashes, tip) && from.Has(tip) {
			hashes = append(hashes, tip)
		}
	}
	err := WalkTrees(ctx, from, c.TreeHash, func(hash plumbing.Hash) error {
		hashes = append(hashes, hash)
		return nil
	})
	if err != nil {
		return nil, err
	}
	data, err := Write(ctx, from, hashes)
	if err != nil {
		return nil, err
	}
	return New(ctx, data, from.Limits())
}

// Write writes objects as a pack, one after the other and without deltas
// (gitformat-pack(5)). go-git's encoder would do too, but holds all of them in
// memory at once.
func Write(ctx context.Context, from Objects, hashes []plumbing.Hash) (*Chunks, error) {
	data, sum := new(Chunks), sha1.New()
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
		if err := from.Limits().Check(limits.Pack, "the files are too large", data.size); err != nil {
			return nil, err
		}
		o, err := from.Object(hash)
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
