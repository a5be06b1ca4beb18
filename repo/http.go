package repo

import (
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
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const (
	uploadPack = "git-upload-pack"
	infoRefs   = "/info/refs"

	// maxRedirects is curl's and net/http's order of magnitude; a server that
	// moved needs one.
	maxRedirects = 5
)

// httpWire speaks to a server over http or https. It follows redirects itself:
// net/http would pass credentials on to another port of the same host, and to
// hosts below it.
type httpWire struct {
	url         URL
	client      *http.Client
	userAgent   string
	credentials *Credentials // nil: none

	// base is where the repository was found: the URL, or where that redirected
	// to. trusted is false once a redirect led away from the URL's origin.
	base    string
	trusted bool
}

// newHTTPWire prepares a conversation; nothing is sent yet.
func newHTTPWire(u URL, userAgent string, credentials *Credentials, roots *x509.CertPool) *httpWire {
	transport := &http.Transport{ // without time limits: all is bounded by the context
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 1,
	}
	return &httpWire{
		url: u,
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		userAgent:   userAgent,
		credentials: credentials,
	}
}

// advertise implements wire.
func (w *httpWire) advertise(ctx context.Context) (*packp.AdvRefs, error) {
	w.trusted = true
	target, err := url.Parse(w.url.String() + infoRefs + "?service=" + uploadPack)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		response, err := w.send(ctx, http.MethodGet, target, nil)
		if err != nil {
			return nil, err
		}
		if to, ok := redirect(response); ok {
			_ = response.Body.Close()
			if target, err = w.follow(target, to); err != nil {
				return nil, err
			}
			continue
		}
		return w.readAdvertisement(response, target)
	}
	return nil, fmt.Errorf("it redirects in circles, last to %s", target.Redacted())
}

func (w *httpWire) readAdvertisement(response *http.Response, from *url.URL) (_ *packp.AdvRefs, err error) {
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if err := w.check(response, "advertisement"); err != nil {
		return nil, err
	}
	base, found := strings.CutSuffix(from.EscapedPath(), infoRefs)
	if !found {
		return nil, fmt.Errorf("it redirects to %s, which is no git repository's address", from.Redacted())
	}
	w.base = from.Scheme + "://" + from.Host + base
	return decodeAdvertisement(response.Body)
}

// request implements wire.
func (w *httpWire) request(ctx context.Context, body []byte) (io.ReadCloser, error) {
	target, err := url.Parse(w.base + "/" + uploadPack)
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
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-"+uploadPack+"-request")
		req.Header.Set("Accept", "application/x-"+uploadPack+"-result")
	}
	if w.authenticated() && w.url.sameOrigin(target) {
		req.SetBasicAuth(w.credentials.User, w.credentials.Password)
	}
	return w.client.Do(req)
}

func (w *httpWire) authenticated() bool { return w.trusted && w.credentials != nil }

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
		w.trusted = false
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
			lost:          !w.trusted && w.credentials != nil,
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
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.from, e.code, http.StatusText(e.code))
}

// readRoots returns the certificate authorities of a file and a directory, each
// empty for none; nil, which means the system's, if both are. As in git they
// take the place of the system's. They are read at every poll, so renewed files
// count at once.
func readRoots(file, dir string) (*x509.CertPool, error) {
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
