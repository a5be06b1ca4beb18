package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Options say what is served, where.
type Options struct {
	Listen      Listen
	Certificate KeyPair // of Listen; the zero value: no TLS
	// Token returns what the page and the API ask for; nil: they ask for nothing.
	Token       func() (string, error)
	ProbeListen Listen
	Routes      Routes
	Debug       bool // Listen serves profiles
	Log         zerolog.Logger
}

// Server serves until it is stopped.
type Server struct {
	log     zerolog.Logger
	limits  limits
	serving context.Context // ends when the server stops
	stop    context.CancelFunc
	all     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	servers []*http.Server
}

// limits bound the phases of a connection.
type limits struct {
	header, read, write, idle time.Duration
	retry                     time.Duration // between two tries to open an assumed address
}

// usual limits: a client on the same network needs a fraction of them.
func usual() limits {
	return limits{header: 5 * time.Second, read: 20 * time.Second, write: 30 * time.Second, idle: time.Minute, retry: 2 * time.Second}
}

// mostHeader is how many bytes of headers a request may have.
const mostHeader = 16 << 10

// stopTimeout is what answers under way get to end; the process has 10 s in all.
const stopTimeout = time.Second

// Start opens the addresses and serves. The error names the variable of every address that
// cannot be opened; opening an assumed address is retried in the background instead.
func Start(options Options) (*Server, error) { return start(options, usual()) }

func start(options Options, limits limits) (*Server, error) {
	s := &Server{log: options.Log, limits: limits}
	s.serving, s.stop = context.WithCancel(context.Background())
	var secured *tls.Config
	if options.Certificate != (KeyPair{}) {
		certificate, err := newCertificate(options.Certificate, options.Log)
		if err != nil {
			return nil, fmt.Errorf("LISTEN_TLS_CERT_FILE: %w", err)
		}
		secured = &tls.Config{GetCertificate: certificate.get, MinVersion: tls.VersionTLS12}
	}
	var failed error
	for _, d := range []door{
		{variable: "LISTEN", at: options.Listen, secured: secured, handler: func(at net.Addr) http.Handler { return options.forAll(at) }},
		{variable: "PROBE_LISTEN", at: options.ProbeListen, handler: func(net.Addr) http.Handler { return options.Routes.probes(unguarded) }},
	} {
		if err := s.open(d); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", d.variable, err))
		}
	}
	if failed != nil {
		s.Stop()
		return nil, failed
	}
	return s, nil
}

// door is an address with what is behind it.
type door struct {
	variable string
	at       Listen
	secured  *tls.Config // nil: plain
	handler  func(net.Addr) http.Handler
}

// forAll returns what LISTEN serves, at the address that it got.
func (o Options) forAll(at net.Addr) http.Handler {
	local, token := unguarded, unguarded
	if o.Token != nil {
		token = func(next http.Handler) http.Handler { return &gate{token: o.Token, log: o.Log, next: next} }
	} else if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		local = localNames
	}
	return o.Routes.all(o.Debug, local, token)
}

func unguarded(next http.Handler) http.Handler { return next }

// open opens a door, now or, if it is an assumed one, as soon as that is possible.
func (s *Server) open(d door) error {
	if d.at.Off() {
		return nil
	}
	listener, err := listen(d.at)
	switch {
	case err == nil:
		s.serve(d, listener)
	case d.at.Assumed:
		s.log.Warn().Err(err).Str("variable", d.variable).Msg("cannot serve, retrying")
		s.all.Go(func() { s.openLater(d) })
	default:
		return err
	}
	return nil
}

// openLater tries until a door can be opened, or the server stops.
func (s *Server) openLater(d door) {
	for {
		select {
		case <-s.serving.Done():
			return
		case <-time.After(s.limits.retry):
		}
		if listener, err := listen(d.at); err == nil {
			s.serve(d, listener)
			return
		}
	}
}

// serve serves behind a door in the background.
func (s *Server) serve(d door, listener net.Listener) {
	server := &http.Server{
		Handler:           survive(s.log, harden(inTime(s.limits.read, d.handler(listener.Addr())))),
		TLSConfig:         d.secured,
		ReadHeaderTimeout: s.limits.header,
		WriteTimeout:      s.limits.write,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    mostHeader,
		BaseContext:       func(net.Listener) context.Context { return s.serving },
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving.Err() != nil {
		_ = listener.Close()
		return
	}
	s.servers = append(s.servers, server)
	s.log.Info().Str("variable", d.variable).Str("address", address(d, listener)).Msg("serving")
	s.all.Go(func() {
		var err error
		if d.secured != nil {
			err = server.ServeTLS(listener, "", "")
		} else {
			err = server.Serve(listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Str("variable", d.variable).Msg("stopped serving")
		}
	})
}

// address words where a door is, with the port that it got.
func address(d door, listener net.Listener) string {
	switch {
	case d.at.Network == "unix":
		return d.at.String()
	case d.secured != nil:
		return "https://" + listener.Addr().String() + "/"
	}
	return "http://" + listener.Addr().String() + "/"
}

// Stop ends all answers, those that stream at once and others within a second, and
// closes the doors. It may be called on nil.
func (s *Server) Stop() {
	if s == nil {
		return
	}
	s.stop()
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, server := range servers {
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close()
		}
	}
	s.all.Wait()
}
