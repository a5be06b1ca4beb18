package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxRepeats is how many of equal requests in one step have names: those that wait for
// something ask again and again, and how often is a matter of time.
const maxRepeats = 5

// fault is what happens to a request instead of being passed on; ask passes it on.
type fault func(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error)

// tap sees every request of a daemon, to the API server and to the git server, gives
// each that makes sense a name, and strikes those that faults are meant for.
type tap struct {
	mu       sync.Mutex // guards what follows
	seen     map[string]int
	order    []string // the requests of the step, by name, as they came
	faults   map[string]fault
	struck   map[string]bool
	holding  bool // the daemon has its Lease
	open     int  // requests without an answer, watches left out
	answers  []answer
	activity time.Time
}

func newTap() *tap {
	return &tap{seen: map[string]int{}, faults: map[string]fault{}, struck: map[string]bool{}}
}

// begin starts a step: the count of requests and these faults.
func (t *tap) begin(faults map[string]fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen, t.order, t.faults, t.struck = map[string]int{}, nil, faults, map[string]bool{}
	t.activity = time.Now()
}

// disarm takes away the faults that have not struck.
func (t *tap) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

// newDaemon says that the next request to a Lease is for having it.
func (t *tap) newDaemon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holding = false
}

// requests are the names of the step's requests so far.
func (t *tap) requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.order...)
}

// hit reports whether the fault for a request has struck.
func (t *tap) hit(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.struck[name]
}

// quiet reports whether nothing has been asked for so long, and all is answered.
func (t *tap) quiet(since time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open == 0 && time.Since(t.activity) > since
}

// touch has the quiet begin anew.
func (t *tap) touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activity = time.Now()
}

// through puts the tap before a server.
func (t *tap) through(server string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return t.pass(server, next, r) })
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pass passes one request on, or strikes it.
func (t *tap) pass(server string, next http.RoundTripper, r *http.Request) (*http.Response, error) {
	body, err := keepBody(r)
	if err != nil {
		return nil, err
	}
	line := server + " " + lineOf(r, body)
	watch := r.URL.Query().Get("watch") != ""
	strike := t.enter(line, lease(r, body), watch)
	if !watch {
		defer t.leave()
	}
	ask := func() (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && lease(r, body) == takesLease && response.StatusCode < 300 {
			t.mu.Lock()
			t.holding = true
			t.mu.Unlock()
		}
		if err != nil {
			return nil, err
		}
		return t.keepAnswer(r, response)
	}
	if strike != nil {
		return strike(r, ask)
	}
	return ask()
}

// enter counts a request and returns the fault that is meant for it.
func (t *tap) enter(line string, of leaseUse, watch bool) fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of != noLease && t.holding && of != givesLease {
		if !watch {
			t.open++
		}
		return nil // the clock has it renewed, and that is no step of the story
	}
	t.activity = time.Now()
	if !watch {
		t.open++
	}
	if t.seen[line]++; t.seen[line] > maxRepeats {
		return nil
	}
	name := fmt.Sprintf("%s #%d", line, t.seen[line])
	t.order = append(t.order, name)
	strike := t.faults[name]
	if strike == nil || t.struck[name] {
		return nil
	}
	t.struck[name] = true
	return strike
}

func (t *tap) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// keepBody reads a request's body, and puts it back.
func keepBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// lineOf names a request by what it is for, without what differs from run to run.
func lineOf(r *http.Request, body []byte) string {
	path := eventName(r.URL.Path)
	switch {
	case strings.HasSuffix(path, "/git-upload-pack") && bytes.Contains(body, []byte("command=ls-refs")):
		return "ls-refs " + strings.TrimSuffix(path, "/git-upload-pack")
	case strings.HasSuffix(path, "/git-upload-pack"):
		return "fetch " + strings.TrimSuffix(path, "/git-upload-pack")
	}
	query, kept := r.URL.Query(), url.Values{}
	for _, key := range []string{"watch", "dryRun", "labelSelector", "fieldSelector"} {
		if query.Has(key) {
			kept[key] = query[key]
		}
	}
	if len(kept) == 0 {
		return r.Method + " " + path
	}
	text, err := url.QueryUnescape(kept.Encode())
	if err != nil {
		text = kept.Encode()
	}
	return r.Method + " " + path + "?" + text
}

// eventName takes the random part off the name of an Event.
func eventName(path string) string {
	return regexp.MustCompile(`(/events/[^/.]+)\.[0-9a-f]+`).ReplaceAllString(path, "$1")
}

// leaseUse is what a request does to a Lease.
type leaseUse int

const (
	noLease leaseUse = iota
	readsLease
	takesLease // or renews it
	givesLease
)

func lease(r *http.Request, body []byte) leaseUse {
	switch {
	case !strings.Contains(r.URL.Path, "/leases"):
		return noLease
	case r.Method == http.MethodGet:
		return readsLease
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	written, ok := object.(*coordinationv1.Lease)
	if err == nil && ok && written.Spec.HolderIdentity == nil {
		return givesLease
	}
	return takesLease
}

// errKilled ends the requests of a daemon that is no more.
var errKilled = errors.New("the daemon was killed")

// killBefore kills before the request is passed on.
func killBefore(kill func()) fault {
	return func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		kill()
		return nil, errKilled
	}
}

// killAfter kills when the server has done what it was asked, before the answer
// arrives.
func killAfter(kill func()) fault {
	return func(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error) {
		response, err := ask()
		if err == nil {
			if r.URL.Query().Get("watch") == "" {
				_, err = io.Copy(io.Discard, response.Body)
			}
			err = errors.Join(err, response.Body.Close())
		}
		kill()
		return nil, errors.Join(errKilled, err)
	}
}
