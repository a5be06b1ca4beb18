package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Meter counts the traffic with a git server. Its methods are called concurrently,
// and must not wait.
type Meter interface {
	// Request counts a request: by the http status of its answer (0 over ssh, which has
	// none), or by the error of one that was not answered.
	Request(status int, err error)
	// Received and Sent count bytes on the connection, of which git's own are a part.
	Received(bytes int)
	Sent(bytes int)
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) Request(int, error) {}
func (unmetered) Received(int)       {}
func (unmetered) Sent(int)           {}

// dialer connects to a server. A meter counts what passes, and silence ends the
// connection.
type dialer struct {
	meter   Meter
	silence *silence
}

func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.silence.most, errSilent)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errSilent):
		return nil, d.silence.fell()
	case err != nil:
		return nil, err
	}
	return meteredConn{conn, d}, nil
}

// meteredConn is a connection that a meter counts. It fails when nothing was received,
// or could be sent, for a while: otherwise a server that is gone, or means to keep a
// client busy, makes each fetch last until TIMEOUT.
type meteredConn struct {
	net.Conn
	dialer
}

// Read implements net.Conn.
func (c meteredConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence.most)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.meter.Received(n)
	return n, c.silent(err)
}

// Write implements net.Conn.
func (c meteredConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.silence.most)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	c.meter.Sent(n)
	return n, c.silent(err)
}

// silent notes that a connection was silent for too long.
func (c meteredConn) silent(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.silence.fell()
	}
	return err
}

// silence bounds how long a server may send nothing, and remembers that one did: not
// all that lies between a connection and its user hands on why it failed.
type silence struct {
	most   time.Duration
	fallen atomic.Bool
}

// errSilent is a server that was silent for too long.
var errSilent = errors.New("the server does not answer")

// err says for how long.
func (s *silence) err() error { return fmt.Errorf("%w: it sent nothing for %s", errSilent, s.most) }

func (s *silence) fell() error {
	s.fallen.Store(true)
	return s.err()
}

// meteredRequests counts every request over http.
type meteredRequests struct {
	*http.Transport
	meter Meter
}

// RoundTrip implements http.RoundTripper.
func (m meteredRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.Transport.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	m.meter.Request(status, err)
	return response, err
}
