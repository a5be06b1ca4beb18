package wire

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
)

// hash is an object's name, for what a server says of it.
const hash = "0123456789abcdef0123456789abcdef01234567"

// must ends a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// id makes a hash of a digit.
func id(digit string) plumbing.Hash { return plumbing.NewHash(digit + strings.Repeat("0", 39)) }

// one is a store of one object.
type one struct{ o *plumbing.MemoryObject }

func (s one) Object(plumbing.Hash) (plumbing.EncodedObject, error) { return s.o, nil }
func (s one) Size(plumbing.Hash) (int64, error)                    { return s.o.Size(), nil }
func (s one) Has(plumbing.Hash) bool                               { return true }
func (s one) Limits() limits.Limits                                { return limits.Limits{} }

// goodPack is a pack with a file.
func goodPack(t testing.TB) []byte {
	t.Helper()
	o := new(plumbing.MemoryObject)
	o.SetType(plumbing.BlobObject)
	_, _ = o.Write([]byte("text"))
	data, err := pack.Write(t.Context(), one{o}, []plumbing.Hash{o.Hash()})
	must(t, err)
	content, err := io.ReadAll(data.Reader())
	must(t, err)
	return content
}

// checkPack reads a pack, if it can be, and each object in it.
func checkPack(t *testing.T, data *pack.Chunks) {
	t.Helper()
	p, err := pack.New(t.Context(), data, limits.Limits{})
	if err != nil {
		return
	}
	for _, known := range p.Those(func(plumbing.Hash) bool { return true }) {
		o, err := p.Object(known)
		must(t, err)
		r, err := o.Reader()
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		if plumbing.ComputeHash(o.Type(), content) != known {
			t.Errorf("%s has another content", known)
		}
	}
}

// FuzzGreeting reads whatever a server may say first. What is taken can be used.
func FuzzGreeting(f *testing.F) {
	can := gitbytes.Packets("version 2", "agent=git/2", "ls-refs=unborn", "fetch=shallow filter", "object-format=sha1", flushLine)
	for _, seed := range [][]byte{
		can, append([]byte(service), can...), []byte(service), []byte(flushLine), nil, can[:20],
		gitbytes.Packets("version 2", flushLine), gitbytes.Packets("version 2", delimiter), gitbytes.Packets("version 1"), []byte("0012ERR go away"),
		gitbytes.Packets(hash+" HEAD\x00multi_ack symref=HEAD:refs/heads/x", hash+" refs/heads/x", flushLine),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		greeted, err := readGreeting(bufio.NewReader(bytes.NewReader(data)))
		switch {
		case err != nil:
		case greeted.can == nil && greeted.adv == nil:
			t.Error("neither an error nor a greeting")
		case greeted.can == nil:
			if listed, err := advertised(greeted.adv); err == nil {
				listed.Tips()
			}
		default:
			_, lists := greeted.can["ls-refs"]
			_, fetches := greeted.can["fetch"]
			if !lists || !fetches {
				t.Errorf("taken without what is needed: %v", greeted.can)
			}
		}
	})
}

// FuzzListing reads whatever may come as a list of refs.
func FuzzListing(f *testing.F) {
	for _, seed := range [][]byte{
		gitbytes.Packets(hash+" HEAD symref-target:refs/heads/x", hash+" refs/heads/x", hash+" refs/tags/v peeled:"+hash, flushLine),
		gitbytes.Packets(hash + " refs/heads/x"), gitbytes.Packets(hash, flushLine), gitbytes.Packets(hash+" refs/tags/v peeled:x", flushLine),
		gitbytes.Packets("unborn HEAD symref-target:refs/heads/x", flushLine), gitbytes.Packets(delimiter, flushLine), []byte("0003"), []byte("fffe"), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		listed, err := readListing(bytes.NewReader(data), refs.Scope{Branch: "x"})
		if err != nil {
			return
		}
		if !bytes.Contains(data, []byte(flushLine)) {
			t.Error("a list without an end is taken")
		}
		for name, commit := range listed.Branches {
			if !strings.Contains(string(data), name) || !strings.Contains(strings.ToLower(string(data)), commit.String()) {
				t.Errorf("made up: %s %s", commit, name)
			}
		}
	})
}

// FuzzFetched reads whatever may come as an answer to a fetch. What is taken of it
// has the hash it is known by.
func FuzzFetched(f *testing.F) {
	var data bytes.Buffer
	_, err := sideband.NewMuxer(sideband.Sideband64k, &data).Write(goodPack(f))
	must(f, err)
	for _, seed := range [][]byte{
		append(append(gitbytes.Packets("shallow-info", "shallow "+hash, delimiter, "packfile"), data.Bytes()...), flushLine...),
		append(gitbytes.Packets("packfile"), data.Bytes()...), gitbytes.Packets("packfile"), gitbytes.Packets("packfile", flushLine), gitbytes.Packets(flushLine),
		gitbytes.Packets("packfile", "\x02counting", "\x03no", flushLine), gitbytes.Packets("acknowledgments", "NAK", delimiter, "packfile", "\x07"), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := readFetched(bytes.NewReader(data), limits.Limits{})
		if err == nil {
			checkPack(t, got)
		}
	})
}

// FuzzAnswer reads whatever may come as an answer in version 0, with and without
// sideband. What is taken of it has the hash it is known by.
func FuzzAnswer(f *testing.F) {
	good, id := goodPack(f), plumbing.NewHash(hash)
	var muxed bytes.Buffer
	_, err := sideband.NewMuxer(sideband.Sideband64k, &muxed).Write(good)
	must(f, err)
	muxed.WriteString(flushLine)
	shallow := gitbytes.Packets("shallow "+hash, flushLine, "NAK")
	for _, seed := range [][]byte{
		append(gitbytes.Packets("NAK"), good...), append(gitbytes.Packets("NAK"), muxed.Bytes()...), append(bytes.Clone(shallow), good...),
		append(bytes.Clone(shallow), muxed.Bytes()...), append(bytes.Clone(shallow), muxed.Bytes()[:40]...), shallow, gitbytes.Packets("ACK " + hash),
		gitbytes.Packets("NAK", "\x03no"), gitbytes.Packets("shallow x", flushLine), gitbytes.Packets("ERR upload-pack: not our ref " + hash), []byte("0003"), nil,
	} {
		for _, depth := range []bool{false, true} {
			f.Add(seed, depth, false)
			f.Add(seed, depth, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, depth, banded bool) {
		req := packp.NewUploadPackRequest()
		req.Wants = append(req.Wants, id)
		if depth {
			req.Depth = packp.DepthCommits(1)
			must(t, req.Capabilities.Set(capability.Shallow))
		}
		if banded {
			must(t, req.Capabilities.Set(capability.Sideband64k))
		}
		if got, err := readPack(io.NopCloser(bytes.NewReader(data)), req); err == nil {
			checkPack(t, got)
		}
	})
}
