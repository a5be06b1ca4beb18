package gitserver

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a client wants.
type Kind string

// The kinds of requests.
const (
	Advertise Kind = "advertise" // info/refs: in protocol v0 all refs, in v2 what the server can do
	ListRefs  Kind = "ls-refs"   // protocol v2: refs by prefix
	Fetch     Kind = "fetch"     // objects
	Other     Kind = "other"
)

// Request is one request as the server saw it.
type Request struct {
	Kind      Kind
	Path      string
	Protocol  string // the Git-Protocol header: "version=2"
	User      string // of basic auth
	Password  string
	UserAgent string
	Body      string // of the client, unpacked
	Status    int
	Bytes     int // of the answer
	Time      time.Time
}

// Log remembers the requests of a server, those it refused included.
type Log struct {
	mu       sync.Mutex
	requests []Request
	underWay map[*counter]Request
}

// Requests returns what was asked since the last Reset, in the order in which it
// was answered.
func (l *Log) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// UnderWay returns the requests that are being answered, with the bytes that were
// sent so far.
func (l *Log) UnderWay() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []Request
	for counted, r := range l.underWay {
		r.Bytes = int(counted.bytes.Load())
		open = append(open, r)
	}
	return open
}

// Count returns the number of requests of the given kinds, or of all.
func (l *Log) Count(kinds ...Kind) int {
	return len(l.of(kinds))
}

// Bytes returns the size of the answers to requests of the given kinds, or all.
func (l *Log) Bytes(kinds ...Kind) int {
	sum := 0
	for _, r := range l.of(kinds) {
		sum += r.Bytes
	}
	return sum
}

func (l *Log) of(kinds []Kind) []Request {
	return slices.DeleteFunc(l.Requests(), func(r Request) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, r.Kind)
	})
}

// Reset forgets all requests.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// record adds each request that next answers, also when it breaks off.
func (l *Log) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen := Request{
			Path: r.URL.Path, Protocol: r.Header.Get("Git-Protocol"), UserAgent: r.UserAgent(),
			Body: unpack(r.Header.Get("Content-Encoding"), body), Time: time.Now(),
		}
		seen.Kind = kindOf(r.URL.Path, seen.Body)
		seen.User, seen.Password, _ = r.BasicAuth()
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		l.begin(counted, seen)
		defer l.end(counted)
		next.ServeHTTP(counted, r)
	})
}

func (l *Log) begin(counted *counter, seen Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay == nil {
		l.underWay = map[*counter]Request{}
	}
	l.underWay[counted] = seen
}

func (l *Log) end(counted *counter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.underWay[counted]
	delete(l.underWay, counted)
	seen.Status, seen.Bytes = counted.status, int(counted.bytes.Load())
	l.requests = append(l.requests, seen)
}

// unpack returns a body as the client wrote it; git compresses long ones.
func unpack(encoding string, body []byte) string {
	if encoding != "gzip" {
		return string(body)
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return string(body)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return string(body)
	}
	return string(plain)
}

func kindOf(path, body string) Kind {
	switch {
	case strings.HasSuffix(path, "/info/refs"):
		return Advertise
	case !strings.HasSuffix(path, "/git-upload-pack"):
		return Other
	case strings.Contains(body, "command=ls-refs"):
		return ListRefs
	}
	return Fetch
}

// counter counts what is written to a client.
type counter struct {
	http.ResponseWriter
	status int
	bytes  atomic.Int64
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
