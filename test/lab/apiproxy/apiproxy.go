package apiproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubesync/kubesync/test/lab/port"
)

// Fault is what happens to the requests that match.
type Fault struct {
	Pattern *regexp.Regexp // of METHOD PATH?QUERY
	// Status answers with an error of that code instead of asking the API server.
	// Zero asks it, and keeps the answer back until the faults are taken away.
	Status int
	// Done has the API server asked all the same, before the error is answered.
	Done bool
	// Answer, where there is one, is the body of that answer, of ContentType.
	Answer      []byte
	ContentType string
	Times       int // so many requests; 0 for all
}

// Proxy is a way to an API server that can be made to fail.
type Proxy struct {
	port      port.Port
	upstream  *httputil.ReverseProxy
	transport http.RoundTripper
	watches   watches

	mu     sync.Mutex // guards what follows
	server *http.Server
	faults []*Fault
	normal chan struct{} // closed when the faults are taken away
}

// Option changes what a proxy does.
type Option func(*Proxy)

// Through has every request pass a transport around the way to the server, which sees
// it, may keep it or change its answer, and is there for faults that no Fault describes.
func Through(wrap func(next http.RoundTripper) http.RoundTripper) Option {
	return func(p *Proxy) { p.transport = wrap(p.transport) }
}

// Launch starts a proxy to the API server that config is for, or to any other server
// over HTTP.
func Launch(config *rest.Config, options ...Option) (*Proxy, error) {
	to, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("API proxy: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("API proxy: %w", err)
	}
	reserved, err := port.Take()
	if err != nil {
		return nil, fmt.Errorf("API proxy: %w", err)
	}
	p := &Proxy{port: reserved, transport: transport, watches: watches{open: map[*stream]bool{}}, normal: make(chan struct{})}
	for _, option := range options {
		option(p)
	}
	p.upstream = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     roundTripper(p.roundTrip),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // connections break here on purpose
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return p, p.Up()
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return "http://" + p.port.Address() }

// Kubeconfig writes a kubeconfig file for the proxy.
func (p *Proxy) Kubeconfig(path string) error {
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: p.URL()}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, path)
	if err != nil {
		return fmt.Errorf("kubeconfig of the API proxy: %w", err)
	}
	return nil
}

// Up listens, again after Down on the same port.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		return errors.New("the API proxy is up already")
	}
	listener, err := net.Listen("tcp", p.port.Address())
	if err != nil {
		return fmt.Errorf("API proxy: %w", err)
	}
	p.server = &http.Server{Handler: p.upstream, ErrorLog: p.upstream.ErrorLog}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server) // it ends with Down
	return nil
}

// Down cuts all connections and refuses new ones.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		_ = p.server.Close() // nothing is lost that should be kept
		p.server = nil
		port.Closed(p.port.Address())
	}
}

// Cut cuts all connections, and accepts new ones.
func (p *Proxy) Cut() error {
	p.Down()
	return p.Up()
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.Normal()
	p.Down()
	p.port.Release()
}

// Fail adds a fault, which goes before those that are there.
func (p *Proxy) Fail(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.Insert(p.faults, 0, &f)
}

// Normal takes all faults away, and lets go of the answers that were kept back.
func (p *Proxy) Normal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
	close(p.normal)
	p.normal = make(chan struct{})
	p.watches.normal()
}

// fault returns what happens to a request, nil for nothing, and what tells that
// faults are over.
func (p *Proxy) fault(r *http.Request) (*Fault, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if !f.Pattern.MatchString(r.Method + " " + r.URL.RequestURI()) {
			continue
		}
		if f.Times--; f.Times == 0 {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
		}
		return f, p.normal
	}
	return nil, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip asks the API server, unless a fault has it otherwise.
func (p *Proxy) roundTrip(r *http.Request) (*http.Response, error) {
	f, normal := p.fault(r)
	switch {
	case f != nil && f.Answer != nil:
		answer := newAnswer(r, f.Status, f.Answer)
		answer.Header.Set("Content-Type", f.ContentType)
		return answer, nil
	case f != nil && f.Status != 0:
		if f.Done {
			response, err := p.transport.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			_ = response.Body.Close() // what it says is kept back
		}
		return failure(r, f.Status)
	}
	p.watches.ask(r)
	response, err := p.transport.RoundTrip(r)
	p.watches.follow(r, response)
	if f != nil {
		select {
		case <-normal:
		case <-r.Context().Done():
		}
	}
	return response, err
}

// failure is an answer as the API server words its errors.
func failure(r *http.Request, code int) (*http.Response, error) {
	reasons := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonExpired,
		http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusForbidden: metav1.StatusReasonForbidden,
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reasons[code], Code: int32(code), Message: "the proxy answers so",
	})
	if err != nil {
		return nil, fmt.Errorf("API proxy: %w", err)
	}
	answer := newAnswer(r, code, body)
	if code == http.StatusTooManyRequests {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}

// newAnswer is a response with a body of JSON.
func newAnswer(r *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
