package repo

import (
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// encoded is a git object that can be read any number of times, and not be changed.
type encoded struct {
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

// SetType implements plumbing.EncodedObject.
func (*encoded) SetType(plumbing.ObjectType) {}

// SetSize implements plumbing.EncodedObject.
func (*encoded) SetSize(int64) {}

// Writer implements plumbing.EncodedObject.
func (*encoded) Writer() (io.WriteCloser, error) { return nil, errors.ErrUnsupported }
