package repo

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubesync/kubesync/repo/limits"
)

// hash is an object's name, for what a server says of it.
const hash = "0123456789abcdef0123456789abcdef01234567"

// packetsOf returns the lines of a message as packets; "0000" and "0001" are those.
func packetsOf(lines ...string) []byte {
	m := newMessage(nil)
	m.Reset()
	for _, line := range lines {
		if line == flushLine || line == delimiter {
			m.WriteString(line)
		} else {
			m.line("%s", line)
		}
	}
	return m.Bytes()
}

// goodPack is a pack with a commit and its tree.
func goodPack(t testing.TB) []byte {
	t.Helper()
	f := trees{}
	commit := f.commit(f.tree())
	data, err := writePack(t.Context(), f, []plumbing.Hash{commit.Hash, commit.TreeHash})
	must(t, err)
	content, err := io.ReadAll(data.reader())
	must(t, err)
	return content
}

// FuzzGreeting reads whatever a server may say first. What is taken can be used.
func FuzzGreeting(f *testing.F) {
	can := packetsOf("version 2", "agent=git/2", "ls-refs=unborn", "fetch=shallow filter", "object-format=sha1", flushLine)
	for _, seed := range [][]byte{
		can, append([]byte(service), can...), []byte(service), []byte(flushLine), nil, can[:20],
		packetsOf("version 2", flushLine), packetsOf("version 2", delimiter), packetsOf("version 1"), []byte("0012ERR go away"),
		packetsOf(hash+" HEAD\x00multi_ack symref=HEAD:refs/heads/x", hash+" refs/heads/x", flushLine),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		said, err := readGreeting(bufio.NewReader(bytes.NewReader(data)))
		switch {
		case err != nil:
		case said.can == nil && said.adv == nil:
			t.Error("neither an error nor a greeting")
		case said.can == nil:
			if listed, err := advertised(said.adv); err == nil {
				listed.tips()
			}
		default:
			_, lists := said.can["ls-refs"]
			_, fetches := said.can["fetch"]
			if !lists || !fetches {
				t.Errorf("taken without what is needed: %v", said.can)
			}
		}
	})
}

// FuzzListing reads whatever may come as a list of refs.
func FuzzListing(f *testing.F) {
	for _, seed := range [][]byte{
		packetsOf(hash+" HEAD symref-target:refs/heads/x", hash+" refs/heads/x", hash+" refs/tags/v peeled:"+hash, flushLine),
		packetsOf(hash + " refs/heads/x"), packetsOf(hash, flushLine), packetsOf(hash+" refs/tags/v peeled:x", flushLine),
		packetsOf("unborn HEAD symref-target:refs/heads/x", flushLine), packetsOf(delimiter, flushLine), []byte("0003"), []byte("fffe"), nil,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		listed, err := readListing(bytes.NewReader(data), scope{branch: "x"})
		if err != nil {
			return
		}
		if !bytes.Contains(data, []byte(flushLine)) {
			t.Error("a list without an end is taken")
		}
		for name, commit := range listed.branches {
			if !strings.Contains(string(data), name) || !strings.Contains(strings.ToLower(string(data)), commit.String()) {
				t.Errorf("made up: %s %s", commit, name)
			}
		}
	})
}

// FuzzPackedRefs reads whatever a repository on disk may have for its packed refs.
func FuzzPackedRefs(f *testing.F) {
	for _, seed := range []string{
		"# pack-refs with: peeled fully-peeled sorted \n" + hash + " refs/heads/x\n" + hash + " refs/tags/v\n^" + hash + "\n",
		hash + " refs/heads/x", hash + " refs/heads/x\r\n", hash + "\n", "^" + hash + "\n", hash + " refs/tags/v\n^x", "#\n\n", "\x00", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		packed := packedRefs{rest: content}
		for {
			left := len(packed.rest)
			name, ref, err := packed.next()
			if err != nil {
				return
			}
			if len(packed.rest) >= left {
				t.Fatal("it does not come to an end")
			}
			if !isRef(name.String()) || !strings.Contains(content, name.String()) || !strings.Contains(strings.ToLower(content), ref.hash.String()) {
				t.Errorf("made up: %s %q", ref.hash, name)
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
		append(append(packetsOf("shallow-info", "shallow "+hash, delimiter, "packfile"), data.Bytes()...), flushLine...),
		append(packetsOf("packfile"), data.Bytes()...), packetsOf("packfile"), packetsOf("packfile", flushLine), packetsOf(flushLine),
		packetsOf("packfile", "\x02counting", "\x03no", flushLine), packetsOf("acknowledgments", "NAK", delimiter, "packfile", "\x07"), nil,
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
	shallow := packetsOf("shallow "+hash, flushLine, "NAK")
	for _, seed := range [][]byte{
		append(packetsOf("NAK"), good...), append(packetsOf("NAK"), muxed.Bytes()...), append(bytes.Clone(shallow), good...),
		append(bytes.Clone(shallow), muxed.Bytes()...), append(bytes.Clone(shallow), muxed.Bytes()[:40]...), shallow, packetsOf("ACK " + hash),
		packetsOf("NAK", "\x03no"), packetsOf("shallow x", flushLine), packetsOf("ERR upload-pack: not our ref " + hash), []byte("0003"), nil,
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

// FuzzTree reads whatever may be pushed as a directory. What is taken of it cannot
// lead out of the directory, nor name two files the same.
func FuzzTree(f *testing.F) {
	id := plumbing.NewHash(hash)
	for _, seed := range []string{
		"100644 a.yaml\x00" + string(id[:]), "40000 dir\x00" + string(id[:]) + "100644 x\x00" + string(id[:]),
		"100644 ..\x00" + string(id[:]), "40000 .GIT\x00" + string(id[:]), "100644 a/b\x00" + string(id[:]), "100644 \x00" + string(id[:]),
		"100644 a\x00" + string(id[:]) + "100644 a\x00" + string(id[:]), "100644 a\x00short", "9 a\x00" + string(id[:]), "100644", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		from := trees{}
		entries, err := readTree(from, from.add(plumbing.TreeObject, data))
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
		sum, pack := sha1.Sum(data), new(chunks)
		_, _ = pack.Write(append(data, sum[:]...))
		checkPack(t, pack)
	})
}

// checkPack reads a pack, if it can be, and each object in it.
func checkPack(t *testing.T, data *chunks) {
	t.Helper()
	p, err := newPack(t.Context(), data, limits.Limits{})
	if err != nil {
		return
	}
	// What is taken is what go-git finds.
	index := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(data.reader()), index)
	must(t, err)
	_, err = parser.Parse()
	must(t, err)
	expected, err := index.Index()
	must(t, err)
	count, err := expected.Count()
	must(t, err)
	if distinct := len(p.those(func(plumbing.Hash) bool { return true })); int64(distinct) != count {
		t.Errorf("%d objects, and go-git finds %d", distinct, count)
	}
	for _, known := range p.objects {
		if found, err := expected.Contains(known.hash); err != nil || !found {
			t.Errorf("go-git does not find %s: %v", known.hash, err)
		}
		o, err := p.object(known.hash)
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
