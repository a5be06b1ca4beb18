package apiproxy

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubesync/kubesync/test/lab/port"
)

// Relay passes bytes to an API server and back, without knowing what they are: TLS,
// HTTP/2 and credentials are the client's and the API server's own.
type Relay struct {
	port     port.Port
	to       string // host:port
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	open  map[*relayed]bool
	ended bool
}

// relayed is one connection with its other half.
type relayed struct {
	client, server net.Conn
	silent         bool // the relay's mu guards it
}

// LaunchRelay starts a relay to the API server at server, a URL.
func LaunchRelay(server string) (*Relay, error) {
	to, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("API relay: %w", err)
	}
	reserved, err := port.Take()
	if err != nil {
		return nil, fmt.Errorf("API relay: %w", err)
	}
	r := &Relay{port: reserved, to: to.Host, open: map[*relayed]bool{}}
	if r.listener, err = net.Listen("tcp", reserved.Address()); err != nil {
		reserved.Release()
		return nil, fmt.Errorf("API relay: %w", err)
	}
	r.running.Go(r.accept)
	return r, nil
}

// Kubeconfig writes to path the kubeconfig at from, with the relay for its server.
func (r *Relay) Kubeconfig(from, path string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("kubeconfig of the API relay: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + r.port.Address()
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("kubeconfig of the API relay: %w", err)
	}
	return nil
}

// Silence makes every connection that is open now half-open: what is sent on it is
// taken and goes nowhere, and it never ends. New ones work.
func (r *Relay) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.silent = true
	}
}

// Close ends the relay and all its connections.
func (r *Relay) Close() {
	r.mu.Lock()
	r.ended = true
	_ = r.listener.Close() // nothing is lost that should be kept
	for c := range r.open {
		c.close()
	}
	r.mu.Unlock()
	r.running.Wait()
	r.port.Release()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = client.Close() // refused, as far as one can tell
			continue
		}
		r.relay(&relayed{client: client, server: server})
	}
}

// relay passes on what both sides send.
func (r *Relay) relay(c *relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		c.close()
		return
	}
	r.open[c] = true
	r.running.Go(func() { r.copy(c, c.server, c.client) })
	r.running.Go(func() { r.copy(c, c.client, c.server) })
}

// copy passes on what one side sends until it ends; a silent connection does not tell
// of an end.
func (r *Relay) copy(c *relayed, to io.Writer, from io.Reader) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		silent := r.isSilent(c)
		if n > 0 && !silent {
			if _, writeErr := to.Write(chunk[:n]); err == nil {
				err = writeErr
			}
		}
		if err != nil && (!silent || from == c.client) {
			c.close()
			r.mu.Lock()
			delete(r.open, c)
			r.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (r *Relay) isSilent(c *relayed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.silent
}

// close closes both halves.
func (c *relayed) close() {
	_ = c.client.Close() // a second time does nothing
	_ = c.server.Close()
}
