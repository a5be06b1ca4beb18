package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/repo/refs"
)

const (
	// versionLine is what a server of protocol v2 begins with.
	versionLine = "000eversion 2\n"
	sha1Format  = "sha1"
	// delimiter stands between the parts of a message, a packet that go-git's
	// scanner does not know.
	delimiter = "0001"
	// flushLine ends a message.
	flushLine = "0000"
)

// packets reads the packets of one message in protocol v2.
type packets struct {
	in   *bufio.Reader
	scan *pktline.Scanner
}

func newPackets(r io.Reader) *packets {
	in, ok := r.(*bufio.Reader)
	if !ok {
		in = bufio.NewReader(r)
	}
	return &packets{in: in, scan: pktline.NewScanner(in)}
}

// packet is one of them. A line stands without its line break.
type packet struct {
	kind packetKind
	line string
}

type packetKind int

const (
	linePacket packetKind = iota
	delimiterPacket
	flushPacket // the end of the message
)

// next reads a packet. A message that ends without a flush was cut off.
func (p *packets) next() (packet, error) {
	if start, _ := p.in.Peek(len(delimiter)); string(start) == delimiter {
		_, err := p.in.Discard(len(delimiter))
		return packet{kind: delimiterPacket}, err
	}
	if !p.scan.Scan() {
		err := p.scan.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return packet{}, serverError(err)
	}
	if len(p.scan.Bytes()) == 0 {
		return packet{kind: flushPacket}, nil
	}
	return packet{line: strings.TrimSuffix(string(p.scan.Bytes()), "\n")}, nil
}

// lines reads lines up to the end of the message.
func (p *packets) lines(each func(string) error) error {
	for {
		next, err := p.next()
		switch {
		case err != nil:
			return err
		case next.kind == flushPacket:
			return nil
		case next.kind == delimiterPacket:
			return garbled("delimiter")
		}
		if err := each(next.line); err != nil {
			return err
		}
	}
}

// garbled is the error of an answer that is not what the protocol knows. Of the
// answer only little is shown: it may be anything.
func garbled(line string) error {
	const shown = 40
	if len(line) > shown {
		line = line[:shown] + "…"
	}
	return fmt.Errorf("%w: its answer cannot be read at %q", errNotGit, line)
}

// capabilities are what a server of protocol v2 knows to do, and the features of
// each, separated by spaces.
type capabilities map[string]string

func (c capabilities) has(command, feature string) bool {
	return slices.Contains(strings.Fields(c[command]), feature)
}

// readCapabilities reads the greeting of a server that speaks protocol v2.
func readCapabilities(in io.Reader) (capabilities, error) {
	p, can := newPackets(in), capabilities{}
	if first, err := p.next(); err != nil {
		return nil, err
	} else if first.line != "version 2" {
		return nil, garbled(first.line)
	}
	err := p.lines(func(line string) error {
		name, features, _ := strings.Cut(line, "=")
		can[name] = features
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, command := range []string{"ls-refs", "fetch"} {
		if _, ok := can[command]; !ok {
			return nil, fmt.Errorf("%w: its server does not know %s", errNotGit, command)
		}
	}
	return can, nil
}

// message writes the packets of a request.
type message struct {
	bytes.Buffer
	packets *pktline.Encoder
}

// newMessage begins a request with the lines of its header.
func newMessage(header []string) *message {
	m := new(message)
	m.packets = pktline.NewEncoder(m)
	for _, line := range header {
		m.line("%s", line)
	}
	m.WriteString(delimiter)
	return m
}

// line adds a line. All are short, which is the one thing that could go wrong.
func (m *message) line(format string, args ...any) { _ = m.packets.Encodef(format+"\n", args...) }

// end returns the message.
func (m *message) end() []byte {
	_ = m.packets.Flush() // to memory
	return m.Bytes()
}

// listRequest asks for the refs whose names begin so; for all if there are no
// prefixes.
func listRequest(header, prefixes []string) []byte {
	m := newMessage(header)
	m.line("peel")
	m.line("symrefs")
	for _, prefix := range prefixes {
		m.line("ref-prefix %s", prefix)
	}
	return m.end()
}

// readListing reads the answer to listRequest.
func readListing(answer io.Reader, of refs.Scope) (refs.List, error) {
	out := refs.New(of)
	err := newPackets(answer).lines(func(line string) error {
		fields := strings.Split(line, " ")
		if len(fields) < 2 || !plumbing.IsHash(fields[0]) || !refs.IsName(fields[1]) {
			return garbled(line)
		}
		hash, name := plumbing.NewHash(fields[0]), plumbing.ReferenceName(fields[1])
		peeled, link := hash, ""
		for _, attribute := range fields[2:] {
			if to, ok := strings.CutPrefix(attribute, "peeled:"); ok {
				if !plumbing.IsHash(to) {
					return garbled(line)
				}
				peeled = plumbing.NewHash(to)
			}
			if to, ok := strings.CutPrefix(attribute, "symref-target:"); ok {
				if !refs.IsName(to) {
					return garbled(line)
				}
				link = to
			}
		}
		out.Add(name, refs.Tag{Tip: hash, Commit: peeled}, plumbing.ReferenceName(link))
		return nil
	})
	return out, err
}

// fetchRequest asks for objects.
type fetchRequest struct {
	wants, haves []plumbing.Hash
	depth        int    // of commits, 0 for all
	filter       string // what is left out, empty for nothing
	tags         bool   // tag objects that point at what is sent, too
}

func (f fetchRequest) encode(header []string) []byte {
	m := newMessage(header)
	m.line("no-progress")
	m.line("ofs-delta")
	if f.tags {
		m.line("include-tag")
	}
	for _, hash := range f.wants {
		m.line("want %s", hash)
	}
	for _, hash := range f.haves {
		m.line("have %s", hash)
	}
	if f.depth > 0 {
		m.line("deepen %d", f.depth)
	}
	if f.filter != "" {
		m.line("filter %s", f.filter)
	}
	m.line("done")
	return m.end()
}

// readFetched reads the answer to a fetchRequest, the pack as it is, and the
// commits that are said to be shallow.
func readFetched(answer io.Reader, bounds limits.Limits) (*pack.Chunks, map[plumbing.Hash]bool, error) {
	p, shallow := newPackets(answer), map[plumbing.Hash]bool{}
	for {
		next, err := p.next()
		if err != nil {
			return nil, nil, err
		}
		commit, isShallow := strings.CutPrefix(next.line, "shallow ")
		switch {
		case next.kind == flushPacket:
			return nil, nil, fmt.Errorf("%w: it sends no pack", errNotGit)
		case isShallow && plumbing.IsHash(commit):
			shallow[plumbing.NewHash(commit)] = true
			if err := bounds.Check(limits.Objects, tooMuch, int64(len(shallow))); err != nil {
				return nil, nil, err
			}
		case next.line == "packfile":
			data, err := readSideband(p.in)
			return data, shallow, err
		}
	}
}

// readSideband reads a pack up to the end of the message.
func readSideband(in *bufio.Reader) (*pack.Chunks, error) {
	data := new(pack.Chunks)
	_, err := io.Copy(data, sideband.NewDemuxer(sideband.Sideband64k, in))
	if err == nil {
		data.Trim()
		return data, nil
	}
	// go-git has no type for what a server says on its error channel.
	if text, remote := strings.CutPrefix(err.Error(), "unexpected error: "); remote {
		err = &remoteError{strings.TrimSpace(text)}
	}
	var known *remoteError
	if errors.As(err, &known) {
		return nil, err
	}
	return nil, serverError(err)
}
