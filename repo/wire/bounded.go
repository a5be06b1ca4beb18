package wire

import (
	"io"

	"github.com/kubesync/kubesync/internal/limits"
)

// bounded is an answer of a server that is read up to a limit.
type bounded struct {
	io.ReadCloser
	limits limits.Limits
	limit  limits.Limit
	what   string
	read   int64
	err    error // once the limit was exceeded
	free   bool  // of the limit, from now on
}

// boundedBy reads an answer up to a limit. what says what is wrong if there is more.
func boundedBy(bounds limits.Limits, limit limits.Limit, what string, answer io.ReadCloser) *bounded {
	return &bounded{ReadCloser: answer, limits: bounds, limit: limit, what: what}
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.read > b.limits.Of(b.limit) && !b.free {
		b.err = b.limits.Exceeded(b.limit, b.what, 0)
		return 0, b.err
	}
	return n, err
}

// or returns what the limit has to say, if that ended the reading, else an error that
// others made of it.
func (b *bounded) or(err error) error {
	if b.err != nil {
		return b.err
	}
	return err
}
