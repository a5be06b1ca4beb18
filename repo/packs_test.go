package repo

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

// TestWritePack writes a pack that git itself takes, and reads it again.
func TestWritePack(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	s.commit("one", map[string]string{"empty": "", "one": "x", "fifteen": "123456789012345", "sixteen": "1234567890123456", "big": gitbytes.Noise(70_000), "a/b/c": "c", "a/b/d": "c"})
	s.tag(true, "v1")
	l, err := openLocal(s.Bare, limits.Limits{})
	must(t, err)
	listed, err := l.Refs(t.Context(), refs.Scope{All: true})
	must(t, err)
	commit, err := pack.ReadCommit(l.disk, listed.Branches["master"])
	must(t, err)
	p, err := pack.OfCommit(t.Context(), l.disk, commit, []plumbing.Hash{listed.Tags["v1"].Tip})
	must(t, err)
	must(t, pack.CheckWhole(t.Context(), p, commit))
	if !p.Has(listed.Tags["v1"].Tip) || len(p.Commits) != 1 || p.Commits[0] != commit.Hash {
		t.Errorf("the pack has commits %v", p.Commits)
	}
	must(t, pack.WalkTrees(t.Context(), p, commit.TreeHash, func(hash plumbing.Hash) error {
		size, err := p.Size(hash)
		if expected, _ := l.disk.Size(hash); size != expected {
			t.Errorf("%s: size %d, want %d", hash, size, expected)
		}
		return err
	}))
	file := filepath.Join(t.TempDir(), "x.pack")
	content, err := io.ReadAll(p.Reader())
	must(t, err)
	must(t, os.WriteFile(file, content, 0o644))
	gitIn(t, t.TempDir(), "index-pack", "--strict", file)
}
