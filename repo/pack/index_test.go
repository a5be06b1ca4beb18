package pack

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// forge writes packs that no git would write.
type forge struct {
	bytes.Buffer
	count int
	// offset is where the last object began.
	offset int
}

func newForge() *forge {
	f := new(forge)
	f.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	return f
}

// add adds an object that says that it has so many bytes.
func (f *forge) add(kind plumbing.ObjectType, says int64, between, content []byte) int {
	f.offset = f.Len()
	f.count++
	f.Write(objectHeader(kind, says))
	f.Write(between)
	deflate := zlib.NewWriter(f)
	_, _ = deflate.Write(content)
	_ = deflate.Close()
	return f.offset
}

func (f *forge) whole(kind plumbing.ObjectType, content string) int {
	return f.add(kind, int64(len(content)), nil, []byte(content))
}

// over adds a delta on the object at an offset, over by its name.
func (f *forge) over(offset int, delta []byte) int {
	distance := f.Len() - offset
	var between []byte
	for between = []byte{byte(distance & 0x7f)}; distance > 0x7f; {
		distance = distance>>7 - 1
		between = append([]byte{byte(distance&0x7f) | 0x80}, between...)
	}
	return f.add(plumbing.OFSDeltaObject, int64(len(delta)), between, delta)
}

func (f *forge) overNamed(base plumbing.Hash, delta []byte) {
	f.add(plumbing.REFDeltaObject, int64(len(delta)), base[:], delta)
}

// pack ends the pack and indexes it.
func (f *forge) pack(t testing.TB, bounds limits.Limits) (*Pack, error) {
	t.Helper()
	content := f.Bytes()
	binary.BigEndian.PutUint32(content[8:], uint32(f.count))
	sum := sha1.Sum(content)
	data := new(Chunks)
	_, _ = data.Write(content)
	_, _ = data.Write(sum[:])
	return New(t.Context(), data, bounds)
}

// deltaOf is a delta for a base of a size, that makes so many bytes by instructions.
func deltaOf(base, result int, instructions ...[]byte) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(base)), uint64(result))
	return append(out, bytes.Join(instructions, nil)...)
}

// take copies from the base.
func take(offset, length int) []byte {
	return []byte{0xff, byte(offset), byte(offset >> 8), byte(offset >> 16), byte(offset >> 24), byte(length), byte(length >> 8), byte(length >> 16)}
}

// insert takes bytes out of the delta.
func insert(text string) []byte { return append([]byte{byte(len(text))}, text...) }

func blobHash(content string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(content))
}

// holds expects that a pack has a file.
func holds(t testing.TB, p *Pack, content string) {
	t.Helper()
	got, err := ReadBlob(p, blobHash(content))
	if err != nil || string(got) != content {
		t.Errorf("of %d bytes there are %d: %v", len(content), len(got), err)
	}
}

// TestDeltas puts objects together in all the ways there are.
func TestDeltas(t *testing.T) {
	t.Parallel()
	f := newForge()
	base := f.whole(plumbing.BlobObject, "0123456789")
	second := f.over(base, deltaOf(10, 12, take(0, 5), insert("ab"), take(5, 5)))
	f.over(second, deltaOf(12, 3, insert("xyz")))
	f.overNamed(blobHash("later"), deltaOf(5, 6, take(0, 5), insert("!")))
	f.overNamed(blobHash("later!"), deltaOf(6, 7, take(0, 6), insert("?")))
	f.whole(plumbing.BlobObject, "later")
	f.whole(plumbing.BlobObject, "later") // twice
	large := strings.Repeat("0123456789abcdef", 1<<13)
	at := f.whole(plumbing.BlobObject, large)
	f.over(at, deltaOf(len(large), 1<<16, []byte{0x80})) // no offset, no length: 64 KiB from the start
	p, err := f.pack(t, limits.Limits{})
	must(t, err)
	for _, content := range []string{"0123456789", "01234ab56789", "xyz", "later", "later!", "later!?", large, large[:1<<16]} {
		holds(t, p, content)
		if size, err := p.Size(blobHash(content)); err != nil || size != int64(len(content)) {
			t.Errorf("size %d of %d: %v", size, len(content), err)
		}
	}
}

// TestForgedPacks has packs that lie.
func TestForgedPacks(t *testing.T) {
	t.Parallel()
	few := limits.Limits{}.With(limits.Delta, 1000).With(limits.Chain, 3).With(limits.Inflated, 50_000).With(limits.Objects, 100)
	ten := "0123456789"
	onTen := func(delta []byte) func(*forge) {
		return func(f *forge) { f.over(f.whole(plumbing.BlobObject, ten), delta) }
	}
	for name, test := range map[string]struct {
		write func(*forge)
		want  string
	}{
		"says too much":        {func(f *forge) { f.add(plumbing.BlobObject, 20, nil, []byte(ten)) }, "shorter than it says"},
		"says too little":      {func(f *forge) { f.add(plumbing.BlobObject, 5, nil, []byte(ten)) }, "exceeds declared size"},
		"says 2^58":            {func(f *forge) { f.add(plumbing.BlobObject, 1<<58, nil, []byte(ten)) }, `the limit "inflated"`},
		"a length without end": {func(f *forge) { f.count++; f.WriteString("\xb0" + strings.Repeat("\xff", 20)) }, "damaged pack"},
		"type 0":               {func(f *forge) { f.whole(0, ten) }, "unknown type 0"},
		"type 5":               {func(f *forge) { f.whole(5, ten) }, "unknown type 5"},
		"no zlib":              {func(f *forge) { f.count++; f.WriteString("\x3axxxxxxxxxxxxxxxxxx") }, "damaged pack"},
		"more than it counts":  {func(f *forge) { f.whole(plumbing.BlobObject, ten); f.whole(plumbing.BlobObject, "x"); f.count-- }, "something follows"},
		"less than it counts":  {func(f *forge) { f.whole(plumbing.BlobObject, gitbytes.Noise(100)); f.count++ }, "damaged pack"},
		"too many": {func(f *forge) {
			for i := range 101 {
				f.whole(plumbing.BlobObject, fmt.Sprint(i))
			}
		}, "LIMITS=objects="},
		"a large tree":          {func(f *forge) { f.whole(plumbing.TreeObject, strings.Repeat("x", 1001)) }, "a tree is too large"},
		"on itself":             {func(f *forge) { f.over(f.Len(), deltaOf(10, 1, insert("x"))) }, "damaged pack"},
		"on what is no object":  {func(f *forge) { f.over(f.whole(plumbing.BlobObject, ten)+1, deltaOf(10, 1, insert("x"))) }, "made of one that is not there"},
		"on the header":         {func(f *forge) { f.over(0, deltaOf(10, 1, insert("x"))) }, "made of one that is not there"},
		"on what is elsewhere":  {func(f *forge) { f.overNamed(blobHash("elsewhere"), deltaOf(9, 1, insert("x"))) }, "made of one that is not there"},
		"a delta without sizes": {onTen(nil), "does not say its sizes"},
		"a delta with one size": {onTen([]byte{10}), "does not say its sizes"},
		"sizes without end":     {onTen(bytes.Repeat([]byte{0xff}, 30)), "does not say its sizes"},
		"for another base":      {onTen(deltaOf(11, 1, insert("x"))), "for another object"},
		"result too large":      {onTen(deltaOf(10, 1001, insert("x"))), "made of others is too large"},
		"result of 2^60":        {onTen(deltaOf(10, 1<<60, insert("x"))), "made of others is too large"},
		"ends too early":        {onTen(deltaOf(10, 2, insert("x"))), "ends too early"},
		"goes on":               {onTen(deltaOf(10, 1, insert("x"), insert("x"))), "leads outside"},
		"takes behind the base": {onTen(deltaOf(10, 5, take(6, 5))), "leads outside"},
		"takes from 4 GB":       {onTen(deltaOf(10, 5, take(1<<32-1, 5))), "leads outside"},
		"inserts what is not":   {onTen(deltaOf(10, 5, []byte{5, 'x'})), "leads outside"},
		"cut in an instruction": {onTen(deltaOf(10, 5, take(0, 5)[:3])), "leads outside"},
		"instruction 0":         {onTen(deltaOf(10, 5, []byte{0})), "leads outside"},
		"a base that is too large": {func(f *forge) {
			f.over(f.whole(plumbing.BlobObject, strings.Repeat("x", 1001)), deltaOf(1001, 1, insert("x")))
		}, "others are made of is too large"},
		"a long chain": {func(f *forge) {
			at := f.whole(plumbing.BlobObject, "0")
			for i := range 4 {
				at = f.over(at, deltaOf(1, 1, insert(fmt.Sprint(i+1))))
			}
		}, `the limit "chain"`},
		"a bomb": {func(f *forge) {
			content := strings.Repeat("x", 1000)
			at := f.whole(plumbing.BlobObject, content)
			for i := range 60 {
				f.over(at, deltaOf(1000, 1000, insert(fmt.Sprintf("%02d", i)), take(2, 998)))
			}
		}, `the limit "inflated"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newForge()
			test.write(f)
			_, err := f.pack(t, few)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestPacksOfGit reads what git packs, with deltas of both kinds, as git reads it.
func TestPacksOfGit(t *testing.T) {
	t.Parallel()
	s, err := gitserver.CreateRepo(t.TempDir(), "site", "master")
	must(t, err)
	text := gitbytes.Noise(20_000)
	for i := range 60 {
		_, err := s.Commit(fmt.Sprint(i), map[string]string{"a": text[:i*100] + fmt.Sprint(i) + text[i*100:], fmt.Sprintf("d%d/b", i%7): text[i*50:], "c": strings.Repeat(fmt.Sprint(i), 3000)})
		must(t, err)
	}
	for _, args := range [][]string{{"tag", "--annotate", "--message", "release", "v1"}, {"push", "--quiet", "origin", "v1"}} {
		_, err = s.Git(args...)
		must(t, err)
	}
	for _, args := range [][]string{{"--delta-base-offset"}, {}, {"--depth=4095", "--window=50"}} {
		file := filepath.Join(t.TempDir(), "p")
		cmd := exec.Command("git", append([]string{"-C", s.Bare, "pack-objects", "--all", "--no-reuse-delta", "--quiet", file}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		found, err := filepath.Glob(file + "-*.pack")
		must(t, err)
		content, err := os.ReadFile(found[0])
		must(t, err)
		data := new(Chunks)
		_, _ = data.Write(content)
		p, err := New(t.Context(), data, limits.Limits{})
		must(t, err)
		listed, err := exec.Command("git", "verify-pack", "-v", found[0]).Output()
		must(t, err)
		deltas := 0
		for line := range strings.Lines(string(listed)) {
			fields := strings.Fields(line)
			if len(fields) < 5 || !plumbing.IsHash(fields[0]) {
				continue
			}
			o, err := p.Object(plumbing.NewHash(fields[0]))
			must(t, err)
			if len(fields) == 7 {
				deltas++
			}
			r, err := o.Reader()
			must(t, err)
			content, err := io.ReadAll(r)
			must(t, err)
			if o.Type().String() != fields[1] || plumbing.ComputeHash(o.Type(), content).String() != fields[0] {
				t.Errorf("read otherwise: %s", line)
			}
		}
		if deltas < 50 || p.Len() < 200 {
			t.Errorf("%v: %d objects, %d of them deltas", args, p.Len(), deltas)
		}
		index := strings.TrimSuffix(found[0], ".pack") + ".idx"
		expected, err := os.ReadFile(index)
		must(t, err)
		wanted, err := p.Index()
		must(t, err)
		if !bytes.Equal(wanted, expected) {
			t.Errorf("%v: git's index is another", args)
		}
	}
}

// FuzzDelta puts together whatever a delta may say, as go-git does.
func FuzzDelta(f *testing.F) {
	base := []byte(gitbytes.Noise(300))
	for _, delta := range [][]byte{
		deltaOf(300, 5, take(6, 5)), deltaOf(300, 7, insert("ab"), take(295, 5)), deltaOf(300, 1<<16, []byte{0x80}), deltaOf(300, 0), deltaOf(300, 5, take(299, 5)), {}, {0x80},
	} {
		f.Add(delta)
	}
	f.Fuzz(func(t *testing.T, delta []byte) {
		_, size, _, err := deltaSizes(delta)
		if err != nil || size > 1<<20 {
			return
		}
		got, err := patch(base, delta, size)
		expected, expectedErr := packfile.PatchDelta(base, delta)
		if (err == nil) != (expectedErr == nil) || err == nil && !bytes.Equal(got, expected) {
			t.Errorf("got %q, %v; go-git makes %q, %v", got, err, expected, expectedErr)
		}
	})
}
