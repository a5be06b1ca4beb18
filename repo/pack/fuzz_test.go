package pack

import (
	"crypto/sha1"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

// goodPack is a pack with a commit and its tree.
func goodPack(t testing.TB) []byte {
	t.Helper()
	f := gitbytes.Objects{}
	commit := f.Commit(f.Tree())
	data, err := Write(t.Context(), f, []plumbing.Hash{commit.Hash, commit.TreeHash})
	must(t, err)
	content, err := io.ReadAll(data.Reader())
	must(t, err)
	return content
}

// FuzzTree reads whatever may be pushed as a directory. What is taken of it cannot
// lead out of the directory, nor name two files the same.
func FuzzTree(f *testing.F) {
	id := plumbing.NewHash("0123456789abcdef0123456789abcdef01234567")
	for _, seed := range []string{
		"100644 a.yaml\x00" + string(id[:]), "40000 dir\x00" + string(id[:]) + "100644 x\x00" + string(id[:]),
		"100644 ..\x00" + string(id[:]), "40000 .GIT\x00" + string(id[:]), "100644 a/b\x00" + string(id[:]), "100644 \x00" + string(id[:]),
		"100644 a\x00" + string(id[:]) + "100644 a\x00" + string(id[:]), "100644 a\x00short", "9 a\x00" + string(id[:]), "100644", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		from := gitbytes.Objects{}
		entries, err := ReadTree(from, from.Add(plumbing.TreeObject, data))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || strings.EqualFold(e.Name, ".git") || seen[e.Name] {
				t.Errorf("taken: %q", e.Name)
			}
			seen[e.Name] = true
		}
	})
}

// FuzzPack reads whatever may come as a pack, with the right checksum.
func FuzzPack(f *testing.F) {
	good := goodPack(f)
	f.Add(good[:len(good)-sha1.Size])
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, pack := sha1.Sum(data), new(Chunks)
		_, _ = pack.Write(append(data, sum[:]...))
		checkPack(t, pack)
	})
}

// checkPack reads a pack, if it can be, and each object in it.
func checkPack(t *testing.T, data *Chunks) {
	t.Helper()
	p, err := New(t.Context(), data, limits.Limits{})
	if err != nil {
		return
	}
	// What is taken is what go-git finds.
	index := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(data.Reader()), index)
	must(t, err)
	_, err = parser.Parse()
	must(t, err)
	expected, err := index.Index()
	must(t, err)
	count, err := expected.Count()
	must(t, err)
	if distinct := len(p.Those(func(plumbing.Hash) bool { return true })); int64(distinct) != count {
		t.Errorf("%d objects, and go-git finds %d", distinct, count)
	}
	for _, known := range p.objects {
		if found, err := expected.Contains(known.hash); err != nil || !found {
			t.Errorf("go-git does not find %s: %v", known.hash, err)
		}
		o, err := p.Object(known.hash)
		must(t, err)
		r, err := o.Reader()
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		if plumbing.ComputeHash(o.Type(), content) != known.hash || int64(len(content)) != o.Size() {
			t.Errorf("%s has another content", known.hash)
		}
	}
}
