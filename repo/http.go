package repo

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubesync/kubesync/repo/limits"
)

const (
	uploadPack = "git-upload-pack"
	infoRefs   = "/info/refs"

	// maxRedirects is curl's and net/http's order of magnitude; a server that
	// moved needs one.
	maxRedirects = 5

	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10

	// maxRetryAfter is a day, in seconds: more would not fit a time.Duration.
	maxRetryAfter = 24 * 60 * 60
)

// httpWire speaks to a server over http or https. It follows redirects itself:
// net/http would pass credentials on to another port of the same host, and to
// hosts below it.
type httpWire struct {
	url         URL
	client      *http.Client
	limits      limits.Limits
	userAgent   string
	credentials *Credentials // nil: none

	// place is where the repository was found, at first by whom was there before.
	place  place
	habits *habits
	// asked is set once the server was greeted by this wire.
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

// newHTTPWire prepares a conversation; nothing is sent yet.
func newHTTPWire(u URL, userAgent string, credentials *Credentials, roots *x509.CertPool, learned *habits, to dialer) *httpWire {
	transport := &http.Transport{ // without time limits: all is bounded by the context, and by the dialer
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 1,
		DialContext:         to.dial,

		MaxResponseHeaderBytes: maxHeader,
	}
	return &httpWire{
		url: u,
		client: &http.Client{
			Transport:     meteredRequests{transport, to.meter},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		limits:      to.silence.limits,
		userAgent:   userAgent,
		credentials: credentials,
		habits:      learned,
	}
}

// greet implements wire. A server that was found to speak version 2 is not greeted
// again, so that a poll is one request; one for which a redirect says each time
// where it is, is.
func (w *httpWire) greet(ctx context.Context) (greeting, error) {
	if found := w.habits.found; found != nil {
		w.place = *found
		return greeting{can: found.can}, nil
	}
	if w.place.can != nil {
		return greeting{can: w.place.can}, nil // was just asked
	}
	said, err := w.ask(ctx)
	if err != nil {
		return greeting{}, err
	}
	w.place.can = said.can
	if found := w.place; found.lasting && found.can != nil {
		w.habits.found, w.asked = &found, true
	}
	return said, nil
}

// forget implements wire.
func (w *httpWire) forget() bool {
	known := w.habits.found != nil && !w.asked
	w.habits.found, w.place = nil, place{}
	return known
}

// ask asks the server what it has or does.
func (w *httpWire) ask(ctx context.Context) (greeting, error) {
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

// permanent tells a redirect that is for ever from one for the time being.
func permanent(response *http.Response) bool {
	return response.StatusCode == http.StatusMovedPermanently || response.StatusCode == http.StatusPermanentRedirect
}

func (w *httpWire) readGreeting(response *http.Response, from *url.URL) (_ greeting, err error) {
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if err := w.check(response, "advertisement"); err != nil {
		return greeting{}, err
	}
	base, found := strings.CutSuffix(from.EscapedPath(), infoRefs)
	if !found {
		return greeting{}, fmt.Errorf("it redirects to %s, which is no git repository's address", from.Redacted())
	}
	w.place.base = from.Scheme + "://" + from.Host + base
	said := boundedBy(w.limits, limits.Refs, "its list of branches and tags is too long", response.Body)
	out, err := readGreeting(bufio.NewReader(said))
	return out, said.or(err)
}

// request implements wire.
func (w *httpWire) request(ctx context.Context, body []byte) (io.ReadCloser, error) {
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

// rest implements wire. A request here has a context of its own.
func (w *httpWire) rest() {}

// close implements wire.
func (w *httpWire) close() { w.client.CloseIdleConnections() }

// send makes one request. Credentials go along while no redirect led away from
// the URL's origin, and to that origin only.
func (w *httpWire) send(ctx context.Context, method string, target *url.URL, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Some servers answer nobody but git, and tell it by this name, which
	// libgit2 takes too.
	req.Header.Set("User-Agent", "git/2.0 ("+w.userAgent+")")
	if method == http.MethodGet || w.place.can != nil {
		req.Header.Set("Git-Protocol", "version=2")
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-"+uploadPack+"-request")
		req.Header.Set("Accept", "application/x-"+uploadPack+"-result")
	}
	if w.authenticated() && w.url.sameOrigin(target) {
		req.SetBasicAuth(w.credentials.User, w.credentials.Password)
	}
	return w.client.Do(req)
}

func (w *httpWire) authenticated() bool { return w.place.trusted && w.credentials != nil }

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
func (w *httpWire) follow(from, to *url.URL) (*url.URL, error) {
	to.User = nil // net/http would send it as credentials
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return nil, fmt.Errorf("it redirects to a %s URL, which is not followed", to.Scheme)
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, fmt.Errorf("it redirects from https to %s://%s, where anyone on the way could change what is applied; that is not followed", to.Scheme, to.Host)
	}
	if !w.url.sameOrigin(to) {
		w.place.trusted = false
	}
	return to, nil
}

// check makes an error of an answer that is not git's.
func (w *httpWire) check(response *http.Response, kind string) error {
	if response.StatusCode != http.StatusOK {
		return &statusError{
			code:          response.StatusCode,
			from:          response.Request.URL.Scheme + "://" + response.Request.URL.Host,
			authenticated: w.authenticated(),
			retryAfter:    retryAfter(response.Header.Get("Retry-After")),
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

// errNotGit is a server that answers, but not as git servers do.
var errNotGit = errors.New("that is no git repository served over http")

// statusError is an http status other than 200.
type statusError struct {
	code          int
	from          string // the server that sent it
	authenticated bool   // credentials were sent
	lost          bool   // credentials were not sent, because a redirect led elsewhere
	// retryAfter is how long the server wants to be left alone, 0 if it does not say.
	retryAfter time.Duration
}

// busy tells a server that is there but will not answer now.
func (e *statusError) busy() bool {
	return e.code == http.StatusTooManyRequests || e.code >= 500
}

// retryAfter reads the header Retry-After: seconds, or a date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(seconds, maxRetryAfter))) * time.Second
	}
	if when, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(when))
	}
	return 0
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.from, e.code, http.StatusText(e.code))
}

// Roots returns the certificate authorities of a file and a directory, each
// empty for none; nil, which means the system's, if both are. As in git they
// take the place of the system's. They are read at every poll, so renewed files
// count at once.
func Roots(file, dir string) (*x509.CertPool, error) {
	if file == "" && dir == "" {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("GIT_SSL_CAINFO: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("GIT_SSL_CAINFO: there is no PEM certificate in %s", file)
		}
	}
	if dir != "" {
		if err := appendDir(roots, dir); err != nil {
			return nil, fmt.Errorf("GIT_SSL_CAPATH: %w", err)
		}
	}
	return roots, nil
}

// appendDir takes every certificate in a directory. OpenSSL wants hashed names
// there; we take any.
func appendDir(roots *x509.CertPool, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		// What cannot be read as a file (a directory, a dangling link) is none.
		pem, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && roots.AppendCertsFromPEM(pem) {
			found = true
		}
	}
	if !found {
		return fmt.Errorf("there is no PEM certificate in %s", dir)
	}
	return nil
}
