package gitserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/pki"
	"github.com/kubesync/kubesync/test/lab/port"
)

// Option changes what a server is.
type Option func(*options)

type options struct {
	dir           string
	tls           bool
	user          string
	password      string
	withoutV2     bool
	withoutFilter bool
	address       string
}

// WithTLS serves https with a certificate of an authority of the server's own
// (see CAFile).
func WithTLS(o *options) { o.tls = true }

// WithBasicAuth lets in only who gives this name and password.
func WithBasicAuth(user, password string) Option {
	return func(o *options) { o.user, o.password = user, password }
}

// WithDir serves the bare repositories in dir, rather than in a temporary
// directory.
func WithDir(dir string) Option { return func(o *options) { o.dir = dir } }

// WithoutV2 makes it a server that only knows git's protocol v0.
func WithoutV2(o *options) { o.withoutV2 = true }

// WithoutFilter makes it a server that cannot do partial clones.
func WithoutFilter(o *options) { o.withoutFilter = true }

// WithAddress listens at host:port rather than at a free port of 127.0.0.1.
func WithAddress(address string) Option { return func(o *options) { o.address = address } }

// Server is a git server over HTTP or HTTPS.
type Server struct {
	Log  Log
	opts options
	dir  string // the bare repositories, and files of the server's own
	cgi  string // the path of git http-backend
	port port.Port
	ca   *pki.Authority

	mu          sync.Mutex // guards the rest
	server      *http.Server
	stopped     chan struct{} // closed when server has returned
	behaviour   Behaviour
	user        string
	password    string
	certificate *tls.Certificate
}

// Start starts a server for one test and ends it with the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Launch(append([]Option{WithDir(t.TempDir())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Launch starts a server, which the caller has to Close.
func Launch(opts ...Option) (*Server, error) {
	s := &Server{behaviour: Normal()}
	for _, option := range opts {
		option(&s.opts)
	}
	s.user, s.password = s.opts.user, s.opts.password
	var err error
	if s.cgi, err = backendPath(); err != nil {
		return nil, err
	}
	if s.dir = s.opts.dir; s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "kubesync-gitserver-"); err != nil {
			return nil, fmt.Errorf("directory of a git server: %w", err)
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return nil, fmt.Errorf("directory of a git server: %w", err)
	}
	if s.opts.address == "" {
		if s.port, err = port.Take(); err != nil {
			return nil, err
		}
	}
	if s.opts.tls {
		if err := s.certify(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.Up(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// certify makes the server's authority and certificate.
func (s *Server) certify() error {
	var err error
	if s.ca, err = pki.NewAuthority("kubesync-test-git"); err != nil {
		return err
	}
	if err := os.WriteFile(s.CAFile(), s.ca.PEM, 0o600); err != nil {
		return fmt.Errorf("CA of the git server: %w", err)
	}
	return s.use(s.ca)
}

// use makes ca the issuer of the server's certificate.
func (s *Server) use(ca *pki.Authority) error {
	pair, err := ca.Server("git")
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("certificate of the git server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate = &certificate
	return nil
}

// Close ends the server. Its directory is removed unless it was given.
func (s *Server) Close() error {
	s.Down()
	s.port.Release()
	if s.opts.dir != "" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing a git server's directory: %w", err)
	}
	return nil
}

// Dir is where the bare repositories are: NAME.git.
func (s *Server) Dir() string { return s.dir }

// Base is the server's URL, without a slash at the end.
func (s *Server) Base() string {
	scheme := "http"
	if s.opts.tls {
		scheme = "https"
	}
	return scheme + "://" + s.address()
}

func (s *Server) address() string {
	if s.opts.address != "" {
		return s.opts.address
	}
	return s.port.Address()
}

// URL is where the repository name is cloned from.
func (s *Server) URL(name string) string { return s.Base() + "/" + name + ".git" }

// CAFile is the path of the certificate of the authority that clients have to
// trust, in PEM. It exists only WithTLS.
func (s *Server) CAFile() string { return filepath.Join(s.dir, "ca.crt") }

// Down breaks all connections and refuses new ones until Up.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close()
		<-s.stopped
		s.server = nil
		port.Closed(s.address())
	}
}

// Up undoes Down.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.address())
	if err != nil {
		return fmt.Errorf("git server: %w", err)
	}
	if s.opts.tls {
		listener = tls.NewListener(listener, &tls.Config{
			NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.certificate, nil
			},
		})
	}
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that distrust the certificate, on purpose
	}
	s.server, s.stopped = server, make(chan struct{})
	go func(stopped chan struct{}) {
		defer close(stopped)
		_ = server.Serve(listener) // ends by Down only
	}(s.stopped)
	return nil
}

// Behave makes the server answer in the given way from the next request on.
func (s *Server) Behave(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour = b
}

// SetBasicAuth changes who is let in; an empty name lets in everybody.
func (s *Server) SetBasicAuth(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Distrust gives the server a certificate of another authority than CAFile's;
// connections that are open stay so.
func (s *Server) Distrust() error {
	other, err := pki.NewAuthority("kubesync-test-other")
	if err != nil {
		return err
	}
	return s.use(other)
}

// Trust undoes Distrust.
func (s *Server) Trust() error { return s.use(s.ca) }

// Handler answers as the server does, behind another one for example.
func (s *Server) Handler() http.Handler { return s.handler() }

// handler is what a request passes: log, authentication, behaviour, git.
func (s *Server) handler() http.Handler {
	git := s.backend()
	return s.Log.record(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		behaviour, user, password := s.behaviour, s.user, s.password
		s.mu.Unlock()
		if name, given, _ := r.BasicAuth(); user != "" && (name != user || given != password) {
			unauthorized(w)
			return
		}
		behaviour(git).ServeHTTP(w, r)
	}))
}

// backend runs git http-backend, as a web server does, for each request.
func (s *Server) backend() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		env := append(s.environ(), "GIT_PROJECT_ROOT="+s.dir, "GIT_HTTP_EXPORT_ALL=1")
		if s.opts.withoutV2 { // without this header a client gets v0
			r = r.Clone(r.Context())
			r.Header.Del("Git-Protocol")
		}
		env = append(env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
		(&cgi.Handler{Path: s.cgi, Root: "/", Dir: s.dir, Env: env, Stderr: io.Discard}).ServeHTTP(w, r)
	})
}

// environ is git's environment on the server: no configuration but what is said
// here, which is what hosting sites allow.
func (s *Server) environ() []string {
	settings := [][2]string{
		{"safe.directory", "*"},
		{"uploadpack.allowFilter", fmt.Sprint(!s.opts.withoutFilter)},
		{"uploadpack.allowTipSHA1InWant", "true"},
		{"uploadpack.allowReachableSHA1InWant", "true"},
		{"gc.auto", "0"},
	}
	return append(bareEnviron(s.dir), configuration(settings)...)
}
