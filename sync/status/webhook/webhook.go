package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo"
)

const (
	// mostBody is how many bytes a body may have: a push of hundreds of commits, which
	// GitHub lists one by one, has a fraction of it.
	mostBody = 4 << 20
	// mostReaders is how many bodies are read at a time.
	mostReaders = 8
	// queueTimeout is how long a request waits for its body to be read.
	queueTimeout = 10 * time.Second
	// while is the shortest time between two polls of a repo that pushes cause.
	while = time.Second
	// refusals is the shortest time between two log lines about refused requests.
	refusals = time.Minute
)

// Target is a repo that may be pushed to.
type Target struct {
	Name    string
	URL     repo.URL
	Version repo.Version
}

// Options say what a webhook works with.
type Options struct {
	// Secret returns what requests are signed with; it is asked at every request.
	Secret func() (string, error)
	// Targets returns the repos as they are listed now.
	Targets func() []Target
	// Standby reports whether another process holds the Lease, and polls.
	Standby func() bool
	// Poll has a repo synced now.
	Poll func(name string)
	Log  zerolog.Logger
}

// Handler answers POST /webhook.
//
//	202  repos are polled; the body names them
//	200  nothing is to be done: no push, of no repo listed here, or of another ref
//	400  the body cannot be read         413  it is too long
//	401  there is no signature           403  it is wrong
//	503  the secret cannot be read, or another process holds the Lease: send it there
type Handler struct {
	options Options
	pace    *pace
	slots   chan struct{}

	mu      sync.Mutex // guards what follows
	refused time.Time  // when that was last said
}

// New returns a webhook.
func New(options Options) *Handler {
	h := &Handler{options: options, slots: make(chan struct{}, mostReaders)}
	h.pace = newPace(while, h.poll)
	return h
}

// refusal is why a request is not accepted.
type refusal struct {
	status int
	reason string
	err    error // for the log alone
}

// Error is what the sender reads.
func (r *refusal) Error() string { return r.reason }

// ServeHTTP receives one push.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	push, is, err := h.read(w, r)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		h.logRefusal(r, refused)
		http.Error(w, refused.reason, refused.status)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case !is:
		fmt.Fprintln(w, "this is no push: nothing to do")
		return
	}
	h.accept(w, push)
}

// read returns the push that a request is about, false if of none.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (repo.Push, bool, error) {
	proof, found := offered(r.Header)
	if !found {
		return repo.Push{}, false, &refusal{http.StatusUnauthorized, "a signature is wanted: X-Hub-Signature-256: sha256=HEX, the HMAC-SHA256 of the body", nil}
	}
	secret, err := h.options.Secret()
	if err != nil {
		return repo.Push{}, false, &refusal{http.StatusServiceUnavailable, "the secret of the webhook cannot be read; the log of kubesync says why", err}
	}
	release, err := h.slot(r)
	if err != nil {
		return repo.Push{}, false, err
	}
	defer release()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return repo.Push{}, false, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", mostBody), nil}
	case err != nil:
		return repo.Push{}, false, errors.New("the body ends too early")
	case !proof.holds(secret, body):
		return repo.Push{}, false, &refusal{http.StatusForbidden, "the signature is wrong: it was made with another secret than that in WEBHOOK_SECRET_FILE", nil}
	}
	return parse(r.Header, body)
}

// slot waits until a body may be read.
func (h *Handler) slot(r *http.Request) (release func(), err error) {
	timer := time.NewTimer(queueTimeout)
	defer timer.Stop()
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	case <-timer.C:
	case <-r.Context().Done():
	}
	return nil, &refusal{http.StatusServiceUnavailable, "too many requests at a time: try again", nil}
}

// accept polls the repos that a push concerns.
func (h *Handler) accept(w http.ResponseWriter, push repo.Push) {
	var names []string
	for _, target := range h.options.Targets() {
		if push.Concerns(target.URL, target.Version) {
			names = append(names, target.Name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintln(w, "no repo here follows that: nothing to do")
		return
	}
	if h.options.Standby() {
		http.Error(w, "this process is on standby, and the leader did not get the push", http.StatusServiceUnavailable)
		return
	}
	for _, name := range names {
		h.pace.ask(name)
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "polling %s\n", strings.Join(names, ", "))
}

// poll has a repo polled.
func (h *Handler) poll(name string) {
	h.options.Log.Info().Str("repo", name).Msg("push webhook received, polling")
	h.options.Poll(name)
}

// logRefusal logs a refusal, not each of a flood.
func (h *Handler) logRefusal(r *http.Request, why *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.refused) < refusals {
		return
	}
	h.refused = time.Now()
	h.options.Log.Warn().AnErr("error", why.err).Str("from", r.RemoteAddr).Int("status", why.status).Str("reason", why.reason).Msg("a request to the push webhook was refused; further ones are not logged for a minute")
}
