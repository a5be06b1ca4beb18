package curl

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/kubesync/kubesync/internal/authorities"
	"github.com/kubesync/kubesync/internal/origin"
)

// client returns an HTTP client that does what the options say for requests to one
// URL. Credentials, headers and the client certificate are for that URL's scheme,
// host and port: a redirect leads on without them. Certificates are read from their
// files each time, as they may have been renewed.
func (o Options) client(target *url.URL) (*http.Client, error) {
	own, others, err := o.transports()
	if err != nil {
		return nil, err
	}
	to := &targetTransport{target: target, headers: o.headers, user: target.User, own: own, others: others}
	if o.user != "" {
		name, password, _ := strings.Cut(o.user, ":")
		to.user = url.UserPassword(name, password)
	}
	return &http.Client{Transport: to, CheckRedirect: o.redirect}, nil
}

// redirect decides about following one more redirect. They are followed without -L,
// too, which the shell script always gave to curl.
func (o Options) redirect(request *http.Request, via []*http.Request) error {
	if scheme := request.URL.Scheme; !o.schemes[scheme] || !o.redirectSchemes[scheme] {
		return fmt.Errorf("a redirect leads to %s, which --proto or --proto-redir does not allow", scheme)
	}
	if len(via) > o.mostRedirects {
		return fmt.Errorf("more than %d redirects", o.mostRedirects)
	}
	return nil
}

// transports returns one transport that has the client certificate, and one that has
// not. Neither keeps connections: a list is fetched once in an interval.
func (o Options) transports() (own, others *http.Transport, err error) {
	others = &http.Transport{
		Proxy:             o.proxyOf(),
		DialContext:       o.dial,
		ForceAttemptHTTP2: !o.http1,
		DisableKeepAlives: true,
		// The bound on the size counts what comes out.
		DisableCompression:  !o.compressed,
		TLSHandshakeTimeout: o.connectTimeout,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: o.insecure, MinVersion: o.leastTLS, MaxVersion: o.latestTLS},
	}
	others.TLSClientConfig.RootCAs, err = authorities.Read(
		authorities.Source{Setting: "--cacert", Path: o.caFile}, authorities.Source{Setting: "--capath", Path: o.caDir})
	if err != nil {
		return nil, nil, err
	}
	own = others.Clone()
	if o.certFile != "" {
		certificate, err := o.certificate()
		if err != nil {
			return nil, nil, err
		}
		own.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	return own, others, nil
}

// certificate returns the client certificate. Without --key, the key is in the same
// file, as curl has it.
func (o Options) certificate() (tls.Certificate, error) {
	certFile, keyFile := o.certFile, o.keyFile
	_, missing := os.Stat(certFile)
	if file, _, found := strings.Cut(certFile, ":"); found && missing != nil {
		return tls.Certificate{}, fmt.Errorf("--cert: there is no such file, and %s with a password behind it is not supported: decrypt the key", file)
	}
	if keyFile == "" {
		keyFile = certFile
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--cert: %w", err)
	}
	return certificate, nil
}

// targetTransport adds what is meant for one server to the requests that go there.
// net/http's own rules would pass credentials on to subdomains, and other headers to
// any host.
type targetTransport struct {
	target      *url.URL
	headers     http.Header
	user        *url.Userinfo
	own, others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *targetTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Referer") // holds the query of the URL before, which may be a token
	if !origin.Same(request.URL, t.target) {
		return t.others.RoundTrip(request)
	}
	if t.user != nil {
		password, _ := t.user.Password()
		request.SetBasicAuth(t.user.Username(), password)
	}
	for name, values := range t.headers {
		if name == "Host" {
			request.Host = values[0]
		} else {
			request.Header[name] = values
		}
	}
	return t.own.RoundTrip(request)
}
