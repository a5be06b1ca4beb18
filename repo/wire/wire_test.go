package wire

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/kubesync/kubesync/repo/refs"
)

func TestAdvertised(t *testing.T) {
	t.Parallel()
	adv := packp.NewAdvRefs()
	head := id("1")
	adv.Head = &head
	for name, hash := range map[string]string{"refs/heads/main": "1", "refs/heads/a/b": "2", "refs/tags/v1": "3", "refs/pull/1/head": "4", "refs/notes/x": "5"} {
		adv.References[name] = id(hash)
	}
	adv.Peeled["refs/tags/v1"] = id("1")
	if err := adv.Capabilities.Add(capability.SymRef, "HEAD:refs/heads/main"); err != nil {
		t.Fatal(err)
	}
	r, err := advertised(adv)
	must(t, err)
	if r.Head != "main" || r.HeadCommit != head || len(r.Branches) != 2 || r.Branches["a/b"] != id("2") || len(r.Tags) != 1 || r.Tags["v1"] != (refs.Tag{Tip: id("3"), Commit: head}) {
		t.Errorf("got %+v", r)
	}
	var tips []plumbing.Hash
	for _, tip := range r.Tips() {
		tips = append(tips, tip.Tip)
	}
	plumbing.HashesSort(tips)
	if !slices.Equal(tips, []plumbing.Hash{id("1"), id("2"), id("3")}) {
		t.Errorf("got tips %v", tips)
	}
}

func TestCertificateForAnotherHost(t *testing.T) {
	t.Parallel()
	err := New(Options{}).explain(&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "127.0.0.2", Certificate: &x509.Certificate{}}})
	if !strings.Contains(err.Error(), "certificate is not for this host") {
		t.Error(err)
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a b": "'/a b'", "it's": `'it'\''s'`, "$(id)`id`": "'$(id)`id`'", "": "''",
	} {
		if got := shellQuote(text); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}
