package gitserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kubesync/kubesync/test/lab/port"
)

// SSHServer serves the repositories of a directory over ssh, to one key.
type SSHServer struct {
	KeyFile        string // private key that is let in
	KnownHostsFile string // with the server's host key
	dir            string // the bare repositories
	port           port.Port
	config         *ssh.ServerConfig
	fetches        atomic.Int64
	withoutV2      atomic.Bool

	mu       sync.Mutex // guards the rest
	listener net.Listener
	hostKey  ssh.PublicKey
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// StartSSH serves the repositories in dir for one test.
func StartSSH(t testing.TB, dir string) *SSHServer {
	t.Helper()
	s, err := LaunchSSH(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// LaunchSSH serves the repositories in dir and writes the client's files to
// keys. The caller has to Close it.
func LaunchSSH(dir, keys string) (*SSHServer, error) {
	s := &SSHServer{
		KeyFile: filepath.Join(keys, "id_ed25519"), KnownHostsFile: filepath.Join(keys, "known_hosts"),
		dir: dir, open: map[net.Conn]bool{},
	}
	client, err := s.writeClientKey()
	if err != nil {
		return nil, err
	}
	s.config = &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(client.Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
	}
	if s.port, err = port.Take(); err != nil {
		return nil, err
	}
	if err := s.NewHostKey(); err != nil {
		return nil, err
	}
	if err := s.writeKnownHosts(); err != nil {
		return nil, err
	}
	return s, s.Up()
}

// writeClientKey makes the key that is let in and returns its public half.
func (s *SSHServer) writeClientKey() (ssh.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "kubesync test")
	if err != nil {
		return nil, fmt.Errorf("ssh key: %w", err)
	}
	if err := os.WriteFile(s.KeyFile, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, fmt.Errorf("ssh key: %w", err)
	}
	return ssh.NewPublicKey(public)
}

// NewHostKey gives the server another host key, from the next connection on.
// KnownHostsFile stays as it is, so clients have to refuse it.
func (s *SSHServer) NewHostKey() error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("ssh host key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return fmt.Errorf("ssh host key: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	config := &ssh.ServerConfig{PublicKeyCallback: s.config.PublicKeyCallback}
	config.AddHostKey(signer)
	s.config, s.hostKey = config, signer.PublicKey()
	return nil
}

func (s *SSHServer) writeKnownHosts() error {
	line := knownhosts.Line([]string{knownhosts.Normalize(s.port.Address())}, s.hostKey)
	if err := os.WriteFile(s.KnownHostsFile, []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("known_hosts: %w", err)
	}
	return nil
}

// URL is where the repository name is cloned from.
func (s *SSHServer) URL(name string) string {
	return "ssh://git@" + s.port.Address() + "/" + name + ".git"
}

// Fetches is how many times objects or refs were asked for: one a connection.
func (s *SSHServer) Fetches() int { return int(s.fetches.Load()) }

// WithoutV2 makes it a server that only knows git's protocol v0, from now on: it
// does not accept the variable that asks for more.
func (s *SSHServer) WithoutV2() { s.withoutV2.Store(true) }

// Up undoes Down.
func (s *SSHServer) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.port.Address())
	if err != nil {
		return fmt.Errorf("ssh server: %w", err)
	}
	s.listener = listener
	s.serving.Go(func() { s.accept(listener) })
	return nil
}

// Down breaks all connections and refuses new ones until Up.
func (s *SSHServer) Down() {
	s.mu.Lock()
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
		port.Closed(s.port.Address())
	}
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// Close ends the server.
func (s *SSHServer) Close() {
	s.Down()
	s.port.Release()
}

func (s *SSHServer) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // Down
		}
		s.mu.Lock()
		if s.listener != listener {
			s.mu.Unlock()
			_ = conn.Close()
			return
		}
		s.open[conn] = true
		config := s.config
		s.serving.Go(func() {
			s.serve(conn, config)
			_ = conn.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, conn)
		})
		s.mu.Unlock()
	}
}

// serve answers one connection until it ends. What fails here the client sees.
func (s *SSHServer) serve(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		session, requests, err := channel.Accept()
		if err != nil {
			return
		}
		s.session(session, requests)
	}
}

// session runs the one command of a session.
func (s *SSHServer) session(session ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = session.Close() }()
	protocol := ""
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			known := ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL" && !s.withoutV2.Load()
			if known {
				protocol = variable.Value
			}
			_ = request.Reply(known, nil)
		case "exec":
			var exec struct{ Command string }
			if err := ssh.Unmarshal(request.Payload, &exec); err != nil {
				_ = request.Reply(false, nil)
				return
			}
			_ = request.Reply(true, nil)
			status := struct{ Status uint32 }{s.uploadPack(session, exec.Command, protocol)}
			_, _ = session.SendRequest("exit-status", false, ssh.Marshal(status))
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// uploadPack runs git upload-pack, the only command there is, and returns its
// exit status.
func (s *SSHServer) uploadPack(session ssh.Channel, command, protocol string) uint32 {
	s.fetches.Add(1)
	path, found := strings.CutPrefix(command, "git-upload-pack ")
	path = filepath.Join(s.dir, filepath.Clean("/"+strings.Trim(path, "'")))
	if !found {
		fmt.Fprintf(session.Stderr(), "no such command: %s\n", command)
		return 128
	}
	cmd := exec.Command("git", "upload-pack", path)
	cmd.Env = append(bareEnviron(s.dir), configuration([][2]string{{"safe.directory", "*"}, {"uploadpack.allowFilter", "true"}})...)
	if protocol != "" {
		cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 128
	}
	cmd.Stdout, cmd.Stderr = session, session.Stderr()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(session.Stderr(), err)
		return 128
	}
	go func() { // not waited for: a client may keep its end open
		_, _ = io.Copy(stdin, session)
		_ = stdin.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}
