package repo

import (
	"context"
	"net"
	"net/http"
)

// Meter hears of the traffic with a git server. Its methods are called concurrently,
// and must not wait.
type Meter interface {
	// Request tells of a request: of the http status of its answer (0 over ssh, which
	// has none), or by an error that it was not answered.
	Request(status int, err error)
	// Received and Sent tell of bytes on the connection, of which git's own are a part.
	Received(bytes int)
	Sent(bytes int)
}

// unmetered counts nothing.
type unmetered struct{}

func (unmetered) Request(int, error) {}
func (unmetered) Received(int)       {}
func (unmetered) Sent(int)           {}

// meteredDial connects, and has the meter hear of what passes.
func meteredDial(meter Meter) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return meteredConn{conn, meter}, nil
	}
}

// meteredConn is a connection of which a meter hears.
type meteredConn struct {
	net.Conn
	meter Meter
}

// Read implements net.Conn.
func (c meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.Received(n)
	return n, err
}

// Write implements net.Conn.
func (c meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.Sent(n)
	return n, err
}

// meteredRequests tells a meter of every request over http.
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
