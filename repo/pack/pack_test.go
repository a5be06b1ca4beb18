package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

func TestChunks(t *testing.T) {
	t.Parallel()
	want := []byte(gitbytes.Noise(3*chunkSize + 17))
	c := new(Chunks)
	for i, part := 0, 1; i < len(want); part = part*3 + 1 {
		end := min(i+part, len(want))
		if n, err := c.Write(want[i:end]); n != end-i || err != nil {
			t.Fatal(n, err)
		}
		i = end
	}
	got, err := io.ReadAll(c.Reader())
	if err != nil || !bytes.Equal(got, want) || c.size != int64(len(want)) {
		t.Errorf("got %d bytes back, %v", len(got), err)
	}
	for _, offset := range []int64{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 16, 3*chunkSize + 17, 4 * chunkSize} {
		buf := make([]byte, chunkSize+5)
		n, err := c.ReadAt(buf, offset)
		expected := want[min(int(offset), len(want)):min(int(offset)+len(buf), len(want))]
		if !bytes.Equal(buf[:n], expected) || errors.Is(err, io.EOF) != (n < len(buf)) {
			t.Errorf("at %d: got %d bytes, %v", offset, n, err)
		}
	}
}

// TestDamagedPack cuts a pack at every length and changes it in every place.
func TestDamagedPack(t *testing.T) {
	t.Parallel()
	f := gitbytes.Objects{}
	commit := f.Commit(f.Tree())
	good, err := Write(t.Context(), f, []plumbing.Hash{commit.Hash, commit.TreeHash})
	must(t, err)
	content, err := io.ReadAll(good.Reader())
	must(t, err)
	try := func(content []byte) error {
		c := new(Chunks)
		_, _ = c.Write(content)
		_, err := New(t.Context(), c, limits.Limits{})
		return err
	}
	must(t, try(content))
	for i := range content {
		if err := try(content[:i]); !errors.Is(err, ErrCutOff) {
			t.Errorf("cut at %d: %v", i, err)
		}
		changed := bytes.Clone(content)
		changed[i] ^= 0x10
		if try(changed) == nil {
			t.Errorf("changed at %d: no error", i)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(ctx, good, limits.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestIncomplete has a server that leaves out a file.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	f := gitbytes.Objects{}
	commit := f.Commit(f.Tree())
	must(t, CheckWhole(t.Context(), f, commit))
	delete(f, commit.TreeHash)
	if err := CheckWhole(t.Context(), f, commit); !errors.Is(err, ErrIncomplete) {
		t.Errorf("got %v", err)
	}
}

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
