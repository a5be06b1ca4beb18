package apiproxy

import (
	"bufio"
	"bytes"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Mute has the watches that match carry nothing any more, without ending: those that
// are open, and those that are begun from now on. Normal cuts them, as the events
// they have missed would be missed for ever.
func (p *Proxy) Mute(pattern *regexp.Regexp) {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	p.watches.muted = append(p.watches.muted, pattern)
	for s := range p.watches.open {
		s.deaf = s.deaf || pattern.MatchString(s.request)
	}
}

// Say sends text down the open watches that match, between the events that the API
// server sends, and returns how many these are. Only watches that were begun after
// Readable have JSON on them.
func (p *Proxy) Say(pattern *regexp.Regexp, text []byte) int {
	p.watches.mu.Lock()
	var to []*stream
	for s := range p.watches.open {
		if pattern.MatchString(s.request) {
			to = append(to, s)
		}
	}
	p.watches.mu.Unlock()
	for _, s := range to {
		s.send(text)
	}
	return len(to)
}

// Readable has watches and lists asked for in JSON from now on, whatever the client prefers, so
// that Say and Answer can speak as the API server does.
func (p *Proxy) Readable() {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	p.watches.readable = true
}

// watches are the watches that go through a proxy.
type watches struct {
	mu       sync.Mutex // guards what follows
	open     map[*stream]bool
	muted    []*regexp.Regexp
	readable bool
}

// ask prepares a request for what may be done with its answer.
func (w *watches) ask(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.readable {
		return
	}
	var accepted []string
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if !strings.Contains(one, "protobuf") {
			accepted = append(accepted, one)
		}
	}
	r.Header.Set("Accept", strings.Join(accepted, ","))
}

// follow puts a stream in the way of the answer to a watch.
func (w *watches) follow(r *http.Request, answer *http.Response) {
	if answer == nil || answer.StatusCode != http.StatusOK || !strings.Contains(r.URL.RawQuery, "watch=") {
		return
	}
	s := &stream{watches: w, request: r.Method + " " + r.URL.RequestURI(), from: answer.Body}
	s.out, s.in = io.Pipe()
	w.mu.Lock()
	for _, pattern := range w.muted {
		s.deaf = s.deaf || pattern.MatchString(s.request)
	}
	w.open[s] = true
	w.mu.Unlock()
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	go s.pump(err == nil && kind == "application/json")
	answer.Body = s
}

// normal cuts what was muted.
func (w *watches) normal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = nil
	for s := range w.open {
		if s.deaf {
			_ = s.in.CloseWithError(io.ErrUnexpectedEOF) // never fails
		}
	}
}

// stream is a watch on its way through the proxy.
type stream struct {
	watches *watches
	request string // METHOD PATH?QUERY
	from    io.ReadCloser
	out     *io.PipeReader
	in      *io.PipeWriter
	deaf    bool // the watches' mu guards it

	sending sync.Mutex // what is sent goes out whole
}

// Read implements io.Reader for the client's side.
func (s *stream) Read(b []byte) (int, error) { return s.out.Read(b) }

// Close ends the watch: the client is gone, or the proxy's connection to it.
func (s *stream) Close() error {
	s.watches.mu.Lock()
	delete(s.watches.open, s)
	s.watches.mu.Unlock()
	_ = s.out.Close() // never fails
	return s.from.Close()
}

// pump passes on what the API server sends: lines, or else whatever comes in at a time.
func (s *stream) pump(lines bool) {
	reader := bufio.NewReader(s.from)
	for {
		var chunk []byte
		var err error
		if lines {
			chunk, err = reader.ReadBytes('\n')
		} else {
			chunk = make([]byte, 32<<10)
			var n int
			n, err = reader.Read(chunk)
			chunk = chunk[:n]
		}
		deaf := s.isDeaf()
		if !deaf && len(chunk) > 0 {
			s.send(chunk)
		}
		switch {
		case err != nil && deaf:
			return // a silent connection does not tell that it has ended
		case err != nil:
			_ = s.in.CloseWithError(err) // never fails
			return
		}
	}
}

// send writes to the client, unless it has gone.
func (s *stream) send(chunk []byte) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_, _ = io.Copy(s.in, bytes.NewReader(chunk)) // the pipe fails only when it is closed
}

func (s *stream) isDeaf() bool {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return s.deaf
}
