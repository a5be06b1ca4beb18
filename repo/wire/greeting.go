package wire

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/kubesync/kubesync/repo/refs"
)

// greeting is what a server says first.
type greeting struct {
	adv *packp.AdvRefs // its refs, in version 0
	can capabilities   // in version 2; else nil
}

// service is what a smart http server says before everything else; in version 2
// some do, some do not.
const service = "001e# service=git-upload-pack\n0000"

// readGreeting reads what a server says first. The reader goes on to be used for
// what it says later, where that comes the same way.
func readGreeting(in *bufio.Reader) (greeting, error) {
	// No more is waited for than a server surely sends: one that has no refs in
	// version 0 says no more than that, and waits.
	start, _ := in.Peek(len(flushLine))
	if len(start) == len(flushLine) && !isHex(start) {
		line, _ := in.Peek(min(in.Buffered(), len(versionLine)))
		return greeting{}, garbled(string(line))
	}
	if string(start) != flushLine {
		start, _ = in.Peek(len(versionLine))
	}
	if strings.HasPrefix(service, string(start)) {
		if all, _ := in.Peek(len(service) + len(versionLine)); string(all) == service+versionLine {
			_, _ = in.Discard(len(service)) // it was just looked at
			start = all[len(service):]
		}
	}
	if string(start) == versionLine {
		can, err := readCapabilities(in)
		return greeting{can: can}, err
	}
	adv, err := readAdvertisement(in)
	return greeting{adv: adv}, err
}

// isHex distinguishes the length of a packet from anything else.
func isHex(digits []byte) bool {
	return strings.Trim(string(digits), "0123456789abcdefABCDEF") == ""
}

// readAdvertisement reads the list of refs. An empty repository is no error here: it
// has none.
func readAdvertisement(r io.Reader) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(r)
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return packp.NewAdvRefs(), nil
	}
	return adv, serverError(err)
}

// advertised reads the refs of a server's greeting in protocol v0.
func advertised(adv *packp.AdvRefs) (refs.List, error) {
	out := refs.New(refs.Scope{All: true})
	for name, hash := range adv.References {
		if !refs.IsName(name) {
			return refs.List{}, garbled(name)
		}
		t := refs.Tag{Tip: hash, Commit: hash}
		if peeled, ok := adv.Peeled[name]; ok {
			t.Commit = peeled
		}
		out.Add(plumbing.ReferenceName(name), t, "")
	}
	if adv.Head != nil {
		out.Add(plumbing.HEAD, refs.Tag{Tip: *adv.Head}, "")
	}
	for _, link := range adv.Capabilities.Get(capability.SymRef) {
		from, to, _ := strings.Cut(link, ":")
		if target := plumbing.ReferenceName(to); from == plumbing.HEAD.String() && target.IsBranch() && refs.IsName(to) {
			out.Head = refs.Short(target)
		}
	}
	return out, nil
}
