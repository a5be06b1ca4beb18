package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/internal/origin"
)

const (
	// defaultSSHUser is who git servers let everyone log in as.
	defaultSSHUser = "git"
	// maxErrorOutput bounds what is kept of a server's error output, in bytes.
	maxErrorOutput = 4 << 10
)

// sshTransport speaks to a server over ssh. go-git's own ssh transport knows neither
// contexts nor time limits while it connects, and reads the ssh_config of
// whoever runs it.
type sshTransport struct {
	to     Target
	limits limits.Limits
	dialer dialer

	client *ssh.Client
	stop   func() bool // ends the watch over the context; nil if there is none
	run    *sshRun     // upload-pack that waits for a request; nil if none
}

// greet implements transport. The connection is made once; in version 0 each
// conversation is a process of its own on the server, in version 2 one process
// answers many requests.
func (w *sshTransport) greet(ctx context.Context) (greeting, error) {
	if w.run != nil && w.run.greeting.can != nil && w.watch(ctx) {
		return w.run.greeting, nil
	}
	if w.client == nil || !w.watch(ctx) {
		w.close()
		if err := w.connect(ctx); err != nil {
			w.dialer.meter.Request(0, err)
			return greeting{}, err
		}
	}
	w.run.close()
	run, err := w.start()
	w.dialer.meter.Request(0, err)
	if err != nil {
		w.run = nil
		return greeting{}, err
	}
	w.run = run
	return run.greeting, nil
}

// forget implements transport: a process is always greeted.
func (w *sshTransport) forget() bool { return false }

// request implements transport.
func (w *sshTransport) request(ctx context.Context, body []byte) (io.ReadCloser, error) {
	if w.run == nil || !w.watch(ctx) {
		if _, err := w.greet(ctx); err != nil {
			return nil, err
		}
	}
	run := w.run
	if run.greeting.can == nil {
		w.run = nil // it answers once
	}
	_, err := run.stdin.Write(body)
	w.dialer.meter.Request(0, err)
	if err != nil {
		w.close()
		return nil, err
	}
	if run.greeting.can != nil {
		return io.NopCloser(run.out), nil
	}
	return run, nil
}

// rest implements transport.
func (w *sshTransport) rest() {
	if w.stop != nil && w.stop() {
		w.stop = nil // else the connection is gone, which the next request finds out
	}
}

// close implements transport.
func (w *sshTransport) close() {
	w.run.close()
	w.run = nil
	if w.client != nil {
		w.rest()
		_ = w.client.Close()
		w.client, w.stop = nil, nil
	}
}

// watch makes the connection end with a context, in the place of the one before. It
// is false if that one has ended it.
func (w *sshTransport) watch(ctx context.Context) bool {
	if w.client == nil || w.stop != nil && !w.stop() {
		return false
	}
	client := w.client
	w.stop = context.AfterFunc(ctx, func() { _ = client.Close() })
	return true
}

// connect logs in. From then on the connection is cut when the context ends,
// which makes every read and write on it return.
func (w *sshTransport) connect(ctx context.Context) error {
	address := net.JoinHostPort(w.to.URL.Hostname(), origin.Port(w.to.URL))
	config, err := w.config(address)
	if err != nil {
		return err
	}
	conn, err := w.dialer.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		stop()
		_ = conn.Close()
		return err
	}
	w.client, w.stop = ssh.NewClient(c, channels, requests), stop
	return nil
}

func (w *sshTransport) config(address string) (*ssh.ClientConfig, error) {
	signer, err := readKey(w.to.SSHKeyFile)
	if err != nil {
		return nil, err
	}
	if w.to.SSHKnownHostsFile == "" {
		return nil, fmt.Errorf("SSH_KNOWN_HOSTS_FILE is not set, so there is no way to tell %s from an impostor; name a known_hosts file that holds its host key", w.to.URL.Hostname())
	}
	known, err := knownhosts.NewDB(w.to.SSHKnownHostsFile)
	if err != nil {
		return nil, fmt.Errorf("SSH_KNOWN_HOSTS_FILE: %w", err)
	}
	return &ssh.ClientConfig{
		User: w.to.user(),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// Ask for the kinds of key that are on file: a host has several.
		HostKeyAlgorithms: known.HostKeyAlgorithms(address),
		HostKeyCallback:   w.checkHostKey(known.HostKeyCallback()),
	}, nil
}

func (w *sshTransport) checkHostKey(check ssh.HostKeyCallback) ssh.HostKeyCallback {
	return func(hostname string, remote net.Addr, key ssh.PublicKey) error {
		err := check(hostname, remote, key)
		switch {
		case err == nil:
			return nil
		case knownhosts.IsHostKeyChanged(err):
			return fmt.Errorf("%s shows another host key (%s %s) than %s holds for it: either the server got a new key, or this is not the server; find out which before you change the file",
				w.to.URL.Hostname(), key.Type(), ssh.FingerprintSHA256(key), w.to.SSHKnownHostsFile)
		case knownhosts.IsHostUnknown(err):
			return fmt.Errorf("the host key of %s is not in %s: if the fingerprint that its operator publishes is %s, add the line: %s",
				w.to.URL.Hostname(), w.to.SSHKnownHostsFile, ssh.FingerprintSHA256(key), knownhosts.Line([]string{hostname}, key))
		default:
			return fmt.Errorf("host key of %s: %w", w.to.URL.Hostname(), err)
		}
	}
}

// user is the name to log in with.
func (t Target) user() string { return cmp.Or(t.URL.User.Username(), defaultSSHUser) }

func readKey(file string) (ssh.Signer, error) {
	if file == "" {
		return nil, errors.New("SSH_KEY_FILE is not set: ssh needs a private key to log in with")
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("SSH_KEY_FILE: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, fmt.Errorf("SSH_KEY_FILE: the key in %s is locked with a passphrase, and no one is there to type it; give a key of its own without one", file)
	case err != nil:
		return nil, fmt.Errorf("SSH_KEY_FILE: there is no private key in %s that can be read: %w", file, err)
	}
	return signer, nil
}

// sshRun is one git-upload-pack on the server. Reading it is reading its output.
type sshRun struct {
	session  *ssh.Session
	stdin    io.WriteCloser
	out      *bufio.Reader
	errors   *errorOutput
	greeting greeting
}

// start runs upload-pack and reads what it begins with. Version 2 is asked for by
// a variable, which servers may leave aside, and then speak version 0.
func (w *sshTransport) start() (_ *sshRun, err error) {
	session, err := w.client.NewSession()
	if err != nil {
		return nil, err
	}
	run := &sshRun{session: session, errors: new(errorOutput)}
	defer func() {
		if err != nil {
			run.close()
		}
	}()
	session.Stderr = run.errors
	if run.stdin, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	answer := boundedBy(w.limits, limits.Refs, "its list of branches and tags is too long", io.NopCloser(out))
	run.out = bufio.NewReader(answer)
	// As OpenSSH does, without waiting for what the server thinks of it.
	variable := ssh.Marshal(struct{ Name, Value string }{"GIT_PROTOCOL", "version=2"})
	if _, err := session.SendRequest("env", false, variable); err != nil {
		return nil, err
	}
	if err := session.Start(uploadPack + " " + shellQuote(w.path())); err != nil {
		return nil, err
	}
	run.greeting, err = readGreeting(run.out)
	if errors.Is(err, packp.ErrEmptyInput) {
		// It refused and said why on its error output, which is all there once
		// the process is gone.
		_ = session.Wait()
		err = &remoteError{run.errors.String()}
	}
	if err = answer.or(err); err != nil {
		return nil, err
	}
	answer.free = true // what is asked for later is bounded by who asks
	return run, nil
}

// Read implements io.Reader.
func (r *sshRun) Read(p []byte) (int, error) { return r.out.Read(p) }

// path is the repository's path as git asks for it: ~user is the server's shell's
// to expand, and only without a slash before it.
func (w *sshTransport) path() string {
	if strings.HasPrefix(w.to.URL.Path, "/~") {
		return w.to.URL.Path[1:]
	}
	return w.to.URL.Path
}

// Close implements io.Closer for the reader of an answer.
func (r *sshRun) Close() error {
	r.close()
	return nil
}

// close ends the process; one that waits for a request is sent the end of the conversation. The
// channel may long be closed from the other side, so errors mean nothing.
func (r *sshRun) close() {
	if r == nil {
		return
	}
	if r.stdin != nil {
		_, _ = r.stdin.Write(pktline.FlushPkt)
	}
	_ = r.session.Close()
}

// shellQuote quotes for the POSIX shell that runs the command on the server.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// errorOutput keeps the beginning of what a server writes to its error output. It is
// written by the ssh client's goroutine.
type errorOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (s *errorOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p[:min(len(p), maxErrorOutput-s.text.Len())])
	return len(p), nil
}

// String returns it as one line.
func (s *errorOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(s.text.String(), "")), " ")
	if text == "" {
		return "nothing"
	}
	return text
}
