//go:build !race

package bombs

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Types of git objects in a pack (gitformat-pack(5)).
const (
	commit = 1
	tree   = 2
	blob   = 3
	delta  = 6
)

// Modes of tree entries.
const (
	file       = "100644"
	executable = "100755"
	dir        = "40000"
	link       = "120000"
)

// id is the hash of an object.
type id [sha1.Size]byte

// pack is written to a file: a bomb may be larger than what it is thrown at.
type pack struct {
	t      testing.TB
	out    *os.File
	sum    hash.Hash
	offset int64
	count  uint32
	seen   map[id]bool
	head   id
}

// newPack begins a pack that holds so many objects: the number stands at its start.
func newPack(t testing.TB, count int) *pack {
	out, err := os.CreateTemp(t.TempDir(), "*.pack")
	must(t, err)
	p := &pack{t: t, out: out, sum: sha1.New(), seen: map[id]bool{}}
	p.write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count)))
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pack) write(content []byte) {
	p.offset += int64(len(content))
	_, _ = p.sum.Write(content)
	_, err := p.out.Write(content)
	must(p.t, err)
}

// header begins an object.
func (p *pack) header(kind byte, size int) {
	b := kind<<4 | byte(size&0x0f)
	size >>= 4
	var out []byte
	for size > 0 {
		out = append(out, b|0x80)
		b = byte(size & 0x7f)
		size >>= 7
	}
	p.write(append(out, b))
	p.count++
}

// add adds an object, compressed if that pays.
func (p *pack) add(kind byte, content []byte) id {
	name := map[byte]string{commit: "commit", tree: "tree", blob: "blob"}[kind]
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", name, len(content))
	_, _ = h.Write(content)
	hash := id(h.Sum(nil))
	if len(content) > 1000 && p.seen[hash] {
		return hash
	}
	p.seen[hash] = len(content) > 1000
	p.header(kind, len(content))
	if len(content) > 60_000 {
		p.deflate(bytes.NewReader(content))
	} else {
		p.store(content)
	}
	return hash
}

// store writes content as it is, which is quick.
func (p *pack) store(content []byte) {
	out := []byte{0x78, 0x01, 0x01}
	out = binary.LittleEndian.AppendUint16(out, uint16(len(content)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(content)))
	out = append(out, content...)
	p.write(binary.BigEndian.AppendUint32(out, adler32.Checksum(content)))
}

func (p *pack) deflate(content io.Reader) {
	out := new(bytes.Buffer)
	w, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
	must(p.t, err)
	_, err = io.Copy(w, content)
	must(p.t, err)
	must(p.t, w.Close())
	p.write(out.Bytes())
}

// large is a file of equal bytes, as it stands in a pack: to make it takes longer than
// to set it off.
type large struct {
	id     id
	packed []byte
}

// sames holds the files of equal bytes that were made.
type sames struct {
	mu   sync.Mutex
	made map[string]large
}

var known = sames{made: map[string]large{}}

// same returns a file of so many equal bytes.
func (s *sames) same(c byte, size int) large {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(c, size)
	if l, ok := s.made[key]; ok {
		return l
	}
	h, out := sha1.New(), new(bytes.Buffer)
	fmt.Fprintf(h, "blob %d\x00", size)
	w := zlib.NewWriter(out)
	part := bytes.Repeat([]byte{c}, 1<<20)
	for left := size; left > 0; left -= len(part) {
		part = part[:min(left, len(part))]
		_, _ = h.Write(part)
		_, _ = w.Write(part) // to memory
	}
	_ = w.Close()
	s.made[key] = large{id(h.Sum(nil)), out.Bytes()}
	return s.made[key]
}

// addSame adds a file of so many equal bytes.
func (p *pack) addSame(c byte, size int) id {
	l := known.same(c, size)
	p.header(blob, size)
	p.write(l.packed)
	return l.id
}

// over adds a delta on an object at an offset.
func (p *pack) over(base int64, instructions []byte) {
	distance := p.offset - base
	p.header(delta, len(instructions))
	between := []byte{byte(distance & 0x7f)}
	for distance > 0x7f {
		distance = distance>>7 - 1
		between = append([]byte{byte(distance&0x7f) | 0x80}, between...)
	}
	p.write(between)
	p.store(instructions)
}

// entry is one line of a directory.
type entry struct {
	mode, name string
	id         id
}

func (p *pack) tree(entries ...entry) id {
	var content bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&content, "%s %s\x00", e.mode, e.name)
		content.Write(e.id[:])
	}
	return p.add(tree, content.Bytes())
}

// commit makes a tree the revision.
func (p *pack) commit(root id) {
	p.head = p.add(commit, fmt.Appendf(nil, "tree %x\nauthor a <a@example.com> 1700000000 +0000\ncommitter a <a@example.com> 1700000000 +0000\n\nA bomb\n", root))
}

// end ends the pack: its header says how many objects there are.
func (p *pack) end() {
	_, err := p.out.WriteAt(binary.BigEndian.AppendUint32(nil, p.count), 8)
	must(p.t, err)
	// The sum is over the header, too, which was written with another number.
	h := sha1.New()
	_, err = p.out.Seek(0, io.SeekStart)
	must(p.t, err)
	_, err = io.Copy(h, p.out)
	must(p.t, err)
	_, err = p.out.Write(h.Sum(nil))
	must(p.t, err)
}

// serve serves the pack to whoever asks for anything, as a server does that ignores
// filters, and returns the URL.
func (p *pack) serve() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, "000eversion 2\n000cls-refs\n0019fetch=shallow filter\n0000")
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		if bytes.Contains(asked, []byte("command=ls-refs")) {
			fmt.Fprintf(w, "%04x%x refs/heads/master\n0000", 4+40+len(" refs/heads/master\n"), p.head)
			return
		}
		_, _ = io.WriteString(w, "000dpackfile\n")
		content := io.NewSectionReader(p.out, 0, 1<<40)
		part := make([]byte, 65_515)
		for {
			n, err := io.ReadFull(content, part)
			if n == 0 {
				break
			}
			if _, err := fmt.Fprintf(w, "%04x\x01%s", n+5, part[:n]); err != nil || n < len(part) {
				break
			}
			_ = err
		}
		_, _ = io.WriteString(w, "0000")
	}))
	p.t.Cleanup(server.Close)
	return server.URL + "/bomb"
}

// onDisk makes a repository on disk of the pack, and returns the URL.
func (p *pack) onDisk() string {
	// Not the test's own directory: its name may have a comma, and REPO is a list.
	base, err := os.MkdirTemp("", "bomb")
	must(p.t, err)
	p.t.Cleanup(func() { _ = os.RemoveAll(base) })
	bare := filepath.Join(base, "bomb.git")
	git(p.t, "init", "--quiet", "--bare", bare)
	content, err := os.Open(p.out.Name())
	must(p.t, err)
	defer content.Close()
	cmd := exec.Command("git", "-C", bare, "index-pack", "--stdin")
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	git(p.t, "-C", bare, "update-ref", "refs/heads/master", fmt.Sprintf("%x", p.head))
	return "file://" + bare
}

func git(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
