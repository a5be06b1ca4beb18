package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubesync/kubesync/internal/backoff"
	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/internal/origin"
)

const (
	uploadPack = "git-upload-pack"
	infoRefs   = "/info/refs"

	// maxRedirects is curl's and net/http's order of magnitude; a server that
	// moved needs one.
	maxRedirects = 5

	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
)

// httpTransport speaks to a server over http or https. It follows redirects itself:
// net/http would pass credentials on to another port of the same host, and to
// hosts below it.
type httpTransport struct {
	url         *url.URL
	client      *http.Client
	limits      limits.Limits
	userAgent   string
	credentials *Credentials // nil: none

	// place is where the repository was found, at first by the poll before.
	place   place
	learned *learned
	// asked is set once this transport greeted the server.
	asked bool
}

// place is where a repository was found: its URL, or where that redirected to.
type place struct {
	base string
	// trusted is false once a redirect led away from the URL's origin.
	trusted bool
	// lasting is false once a redirect was one for the time being.
	lasting bool
	can     capabilities // of the server there; nil if it speaks version 0
}

// newHTTPTransport prepares a conversation; nothing is sent yet.
func newHTTPTransport(to Target, o Options, known *learned, connect dialer) *httpTransport {
	transport := &http.Transport{ // without time limits: all is bounded by the context, and by the dialer
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{RootCAs: to.Roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 1,
		DialContext:         connect.dial,

		MaxResponseHeaderBytes: maxHeader,
	}
	return &httpTransport{
		url: to.URL,
		client: &http.Client{
			Transport:     meteredRequests{transport, connect.meter},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		limits:      o.Limits,
		userAgent:   o.UserAgent,
		credentials: to.Credentials,
		learned:     known,
	}
}

// greet implements transport. A server that was found to speak version 2 is not greeted
// again, so that a poll is one request; one for which a redirect says each time
// where it is, is.
func (w *httpTransport) greet(ctx context.Context) (greeting, error) {
	if found := w.learned.found; found != nil {
		w.place = *found
		return greeting{can: found.can}, nil
	}
	if w.place.can != nil {
		return greeting{can: w.place.can}, nil // was just asked
	}
	greeted, err := w.ask(ctx)
	if err != nil {
		return greeting{}, err
	}
	w.place.can = greeted.can
	if found := w.place; found.lasting && found.can != nil {
		w.learned.found, w.asked = &found, true
	}
	return greeted, nil
}

// forget implements transport.
func (w *httpTransport) forget() bool {
	known := w.learned.found != nil && !w.asked
	w.learned.found, w.place = nil, place{}
	return known
}

// ask asks the server what it has or does.
func (w *httpTransport) ask(ctx context.Context) (greeting, error) {
	w.place = place{trusted: true, lasting: true}
	target, err := url.Parse(w.url.String() + infoRefs + "?service=" + uploadPack)
	if err != nil {
		return greeting{}, err
	}
	for range maxRedirects + 1 {
		response, err := w.send(ctx, http.MethodGet, target, nil)
		if err != nil {
			return greeting{}, err
		}
		if to, ok := redirect(response); ok {
			_ = response.Body.Close()
			if !permanent(response) {
				w.place.lasting = false
			}
			if target, err = w.follow(target, to); err != nil {
				return greeting{}, err
			}
			continue
		}
		return w.readGreeting(response, target)
	}
	return greeting{}, fmt.Errorf("it redirects in circles, last to %s", target.Redacted())
}

// permanent reports whether a redirect is for ever.
func permanent(response *http.Response) bool {
	return response.StatusCode == http.StatusMovedPermanently || response.StatusCode == http.StatusPermanentRedirect
}

func (w *httpTransport) readGreeting(response *http.Response, from *url.URL) (_ greeting, err error) {
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if err := w.check(response, "advertisement"); err != nil {
		return greeting{}, err
	}
	base, found := strings.CutSuffix(from.EscapedPath(), infoRefs)
	if !found {
		return greeting{}, fmt.Errorf("it redirects to %s, which is no git repository's address", from.Redacted())
	}
	w.place.base = from.Scheme + "://" + from.Host + base
	answer := boundedBy(w.limits, limits.Refs, "its list of branches and tags is too long", response.Body)
	out, err := readGreeting(bufio.NewReader(answer))
	return out, answer.or(err)
}

// request implements transport.
func (w *httpTransport) request(ctx context.Context, body []byte) (io.ReadCloser, error) {
	target, err := url.Parse(w.place.base + "/" + uploadPack)
	if err != nil {
		return nil, err
	}
	response, err := w.send(ctx, http.MethodPost, target, body)
	if err != nil {
		return nil, err
	}
	if err := w.check(response, "result"); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response.Body, nil
}

// rest implements transport. A request here has a context of its own.
func (w *httpTransport) rest() {}

// close implements transport.
func (w *httpTransport) close() { w.client.CloseIdleConnections() }

// send makes one request. Credentials go along while no redirect led away from
// the URL's origin, and to that origin only.
func (w *httpTransport) send(ctx context.Context, method string, target *url.URL, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Some servers answer git alone, which they know by this name; libgit2 uses it,
	// too.
	req.Header.Set("User-Agent", "git/2.0 ("+w.userAgent+")")
	if method == http.MethodGet || w.place.can != nil {
		req.Header.Set("Git-Protocol", "version=2")
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-"+uploadPack+"-request")
		req.Header.Set("Accept", "application/x-"+uploadPack+"-result")
	}
	if w.authenticated() && origin.Same(w.url, target) {
		req.SetBasicAuth(w.credentials.User, w.credentials.Password)
	}
	return w.client.Do(req)
}

func (w *httpTransport) authenticated() bool { return w.place.trusted && w.credentials != nil }

// redirect returns where an answer points instead.
func redirect(response *http.Response) (*url.URL, bool) {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to, err := response.Location()
		return to, err == nil
	}
	return nil, false
}

// follow decides whether a redirect may be followed.
func (w *httpTransport) follow(from, to *url.URL) (*url.URL, error) {
	to.User = nil // net/http would send it as credentials
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, fmt.Errorf("it redirects to a %s URL, which is not followed", to.Scheme)
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, fmt.Errorf("it redirects from https to %s://%s, where anyone on the way could change what is applied; that is not followed", to.Scheme, to.Host)
	}
	if !origin.Same(w.url, to) {
		w.place.trusted = false
	}
	return to, nil
}

// check makes an error of an answer that is not git's.
func (w *httpTransport) check(response *http.Response, kind string) error {
	if response.StatusCode != http.StatusOK {
		return &statusError{
			code:          response.StatusCode,
			from:          response.Request.URL.Scheme + "://" + response.Request.URL.Host,
			authenticated: w.authenticated(),
			retryAfter:    backoff.RetryAfter(response.Header),
			lost:          !w.place.trusted && w.credentials != nil,
		}
	}
	want := "application/x-" + uploadPack + "-" + kind
	got, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(got) != want {
		return fmt.Errorf("%w: it answers with %q instead of %q", errNotGit, got, want)
	}
	return nil
}

// statusError is an http status other than 200.
type statusError struct {
	code          int
	from          string // the server that sent it
	authenticated bool   // credentials were sent
	lost          bool   // credentials were not sent, because a redirect led elsewhere
	// retryAfter is how long the server wants to be left alone, 0 if it does not say.
	retryAfter time.Duration
}

// busy reports whether a server is there but will not answer now.
func (e *statusError) busy() bool {
	return e.code == http.StatusTooManyRequests || e.code >= 500
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.from, e.code, http.StatusText(e.code))
}
