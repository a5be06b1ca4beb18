package repo

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// newKey writes a private key, locked if there is a passphrase.
func newKey(t *testing.T, passphrase string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return write(t, string(pem.EncodeToMemory(block)))
}

// write writes a temporary file.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sshFiles are a key and known hosts that are of no use but valid.
func sshFiles(t *testing.T) func(*Options) {
	key, hosts := newKey(t, ""), write(t, "")
	return func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = key, hosts }
}

func TestSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, "master")
	hash := s.commit("one", file("1"))
	server := gitserver.StartSSH(t, dir)
	url := server.URL("site")
	for name, test := range map[string]struct {
		url, key, hosts string
		says            []string
	}{
		"right":            {url, server.KeyFile, server.KnownHostsFile, nil},
		"no key":           {url, "", server.KnownHostsFile, []string{"SSH_KEY_FILE is not set"}},
		"missing key":      {url, "/no/such/key", server.KnownHostsFile, []string{"SSH_KEY_FILE", "/no/such/key"}},
		"no key in it":     {url, server.KnownHostsFile, server.KnownHostsFile, []string{"SSH_KEY_FILE", "no private key"}},
		"locked key":       {url, newKey(t, "open sesame"), server.KnownHostsFile, []string{"SSH_KEY_FILE", "passphrase"}},
		"another key":      {url, newKey(t, ""), server.KnownHostsFile, []string{"no login of user git", "SSH_KEY_FILE"}},
		"no known hosts":   {url, server.KeyFile, "", []string{"SSH_KNOWN_HOSTS_FILE is not set"}},
		"missing hosts":    {url, server.KeyFile, "/no/such/hosts", []string{"SSH_KNOWN_HOSTS_FILE", "/no/such/hosts"}},
		"unknown host":     {url, server.KeyFile, write(t, ""), []string{"is not in", "SHA256:", "add the line: [127.0.0.1]:", " ssh-ed25519 AAAA"}},
		"no such repo":     {url + "x", server.KeyFile, server.KnownHostsFile, []string{"the server says", "not appear to be a git repository"}},
		"path with quotes": {server.URL("a'b; touch x"), server.KeyFile, server.KnownHostsFile, []string{"the server says"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, test.url, "", func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = test.key, test.hosts })
			if test.says == nil {
				want(t, r, resolve(t, r), hash, "refs/heads/master", "1")
				return
			}
			resolveFails(t, r, test.says...)
		})
	}
}

// TestSSHFix does what the error about an unknown host says.
func TestSSHFix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, "master")
	hash := s.commit("one", file("1"))
	server := gitserver.StartSSH(t, dir)
	hosts := write(t, "# none yet\n")
	r := open(t, server.URL("site"), "", func(o *Options) { o.SSHKeyFile, o.SSHKnownHostsFile = server.KeyFile, hosts })
	_, line, _ := strings.Cut(resolveFails(t, r, "add the line: "), "add the line: ")
	if err := os.WriteFile(hosts, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, r, resolve(t, r), hash, "refs/heads/master", "1")

	if err := server.NewHostKey(); err != nil {
		t.Fatal(err)
	}
	resolveFails(t, r, "another host key", "either the server got a new key, or this is not the server")
	want(t, r, r.current.revision, hash, "refs/heads/master", "1")
	server.Down()
	resolveFails(t, r, "connection refused")
}

// TestSSHSilence has an ssh server fall silent: before its first word, while keys are
// agreed on, and after the login. Nothing but its silence ends that.
func TestSSHSilence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newSite(t, dir, "master").commit("one", file("1"))
	server := gitserver.StartSSH(t, dir)
	host, _, _ := strings.Cut(strings.TrimPrefix(server.URL("site"), "ssh://git@"), "/")
	for _, bytes := range []int64{0, 700, 2500} {
		t.Run(fmt.Sprintf("after %d bytes", bytes), func(t *testing.T) {
			t.Parallel()
			relay := silentAfter(t, host, bytes)
			known, err := os.ReadFile(server.KnownHostsFile)
			must(t, err)
			_, port, err := net.SplitHostPort(host)
			must(t, err)
			_, relayPort, err := net.SplitHostPort(relay)
			must(t, err)
			hosts := write(t, strings.ReplaceAll(string(known), ":"+port, ":"+relayPort))
			r := open(t, strings.Replace(server.URL("site"), host, relay, 1), "", quickSilence, func(o *Options) {
				o.SSHKeyFile, o.SSHKnownHostsFile = server.KeyFile, hosts
			})
			resolveFails(t, r, "the server does not answer: it sent nothing for 300ms")
		})
	}
}

// silentAfter passes connections on to a server, and so many bytes of what it answers.
// It returns its address.
func silentAfter(t *testing.T, server string, bytes int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(behind, client) // until the client gives up
				_ = behind.Close()
				_ = client.Close()
			}()
			go func() { _, _ = io.CopyN(client, behind, bytes) }()
		}
	}()
	return listener.Addr().String()
}

// TestMissingKey has the key for ssh go while a revision is being read: that is no file
// which the revision does not have, for then others would be looked for in its place.
func TestMissingKey(t *testing.T) {
	t.Parallel()
	r := open(t, "ssh://git.example.com/site.git", "", func(o *Options) { o.SSHKeyFile = filepath.Join(t.TempDir(), "id") })
	_, err := r.Resolve(t.Context())
	says(t, err, "SSH_KEY_FILE", "no such file")
	if errors.Is(err, fs.ErrNotExist) {
		t.Error("a missing key is taken for a file that the revision does not have")
	}
	var path *fs.PathError
	if !errors.As(err, &path) {
		t.Error("no one can see which file it was")
	}
}
