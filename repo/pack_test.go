package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/repo/limits"
)

func TestChunks(t *testing.T) {
	t.Parallel()
	want := []byte(noise(3*chunkSize + 17))
	c := new(chunks)
	for i, part := 0, 1; i < len(want); part = part*3 + 1 {
		end := min(i+part, len(want))
		if n, err := c.Write(want[i:end]); n != end-i || err != nil {
			t.Fatal(n, err)
		}
		i = end
	}
	got, err := io.ReadAll(c.reader())
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

// TestWritePack writes a pack that git itself takes, and reads it again.
func TestWritePack(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	s.commit("one", map[string]string{"empty": "", "one": "x", "fifteen": "123456789012345", "sixteen": "1234567890123456", "big": noise(70_000), "a/b/c": "c", "a/b/d": "c"})
	s.tag(true, "v1")
	l, err := openLocal(s.Bare, limits.Limits{})
	must(t, err)
	listed, err := l.refs(t.Context(), scope{all: true})
	must(t, err)
	commit, err := readCommit(l.disk, listed.branches["master"])
	must(t, err)
	p, err := packCommit(t.Context(), l.disk, commit, listed.tagsOf(l.disk, commit.Hash))
	must(t, err)
	must(t, whole(t.Context(), p, commit))
	if !p.has(listed.tags["v1"].tip) || len(p.commits) != 1 || p.commits[0] != commit.Hash {
		t.Errorf("the pack has commits %v", p.commits)
	}
	must(t, walkTrees(t.Context(), p, commit.TreeHash, func(hash plumbing.Hash) error {
		size, err := p.size(hash)
		if expected, _ := l.disk.size(hash); size != expected {
			t.Errorf("%s: size %d, want %d", hash, size, expected)
		}
		return err
	}))
	file := filepath.Join(t.TempDir(), "x.pack")
	content, err := io.ReadAll(p.data.reader())
	must(t, err)
	must(t, os.WriteFile(file, content, 0o644))
	gitIn(t, t.TempDir(), "index-pack", "--strict", file)
}

// TestDamagedPack cuts a pack at every length and changes it in every place.
func TestDamagedPack(t *testing.T) {
	t.Parallel()
	f := trees{}
	commit := f.commit(f.tree())
	good, err := writePack(t.Context(), f, []plumbing.Hash{commit.Hash, commit.TreeHash})
	must(t, err)
	content, err := io.ReadAll(good.reader())
	must(t, err)
	try := func(content []byte) error {
		c := new(chunks)
		_, _ = c.Write(content)
		_, err := newPack(t.Context(), c, limits.Limits{})
		return err
	}
	must(t, try(content))
	for i := range content {
		if err := try(content[:i]); !errors.Is(err, errCutOff) {
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
	if _, err := newPack(ctx, good, limits.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestIncomplete has a server that leaves out a file.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	f := trees{}
	commit := f.commit(f.tree())
	must(t, whole(t.Context(), f, commit))
	delete(f, commit.TreeHash)
	if err := whole(t.Context(), f, commit); !errors.Is(err, errIncomplete) {
		t.Errorf("got %v", err)
	}
}
