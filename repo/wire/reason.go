package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/kubesync/kubesync/internal/limits"

	"github.com/kubesync/kubesync/repo/pack"
)

// ErrMoved is a ref that changed between being listed and being fetched, or an object
// that the server does not hand out.
var ErrMoved = errors.New("the branch or tag changed while it was being fetched")

// errNotGit is a server that answers, but not as git servers do.
var errNotGit = errors.New("that is no git repository served over http")

// remoteError is an error in the server's own words.
type remoteError struct{ text string }

// Error implements error.
func (e *remoteError) Error() string { return "the server says: " + e.text }

// serverError finds out what a server means by an error; nil stays nil.
func serverError(err error) error {
	var line *pktline.ErrorLine
	switch {
	case errors.As(err, &line) && strings.Contains(line.Text, "not our ref"):
		return ErrMoved
	case errors.As(err, &line):
		return &remoteError{line.Text}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pktline.ErrInvalidPktLen):
		return fmt.Errorf("%w (%w)", pack.ErrCutOff, err)
	default:
		return err
	}
}

// described is an error in words for a person.
type described struct {
	text  string
	cause error
}

// Error implements error.
func (e *described) Error() string { return e.text }

// Unwrap returns the cause, whose own text may hold secrets.
func (e *described) Unwrap() error { return e.cause }

// explain finds the words for an error, and what to do about it.
func (s *Server) explain(err error) error {
	if err == nil {
		return nil
	}
	if text := s.reason(err); text != "" {
		return &described{text, err}
	}
	return err
}

// reason returns the words for an error, empty if it has its own.
func (s *Server) reason(err error) string {
	var (
		status   *statusError
		exceeded *limits.Exceeded
		garbled  *packp.ErrUnexpectedData
	)
	switch {
	case errors.As(err, &exceeded):
		return ""
	case s.silence.fallen.Load():
		return s.silence.err().Error()
	case errors.As(err, &status):
		return status.reason()
	case errors.Is(err, ErrMoved):
		return ErrMoved.Error() + ", twice; the next poll takes it as it is then"
	case errors.Is(err, pack.ErrChecksum):
		return "the pack that came does not match its checksum; the server or something on the way has damaged it"
	case errors.Is(err, pack.ErrCutOff), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return pack.ErrCutOff.Error() + "; the server or something on the way closed the connection"
	}
	if text := certificateReason(err); text != "" {
		return text
	}
	if text := s.networkReason(err); text != "" {
		return text
	}
	switch {
	case errors.As(err, &garbled), errors.Is(err, packp.ErrEmptyInput):
		return errNotGit.Error() + ": its answer cannot be read"
	case s.target.URL.Scheme == "ssh" && strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Sprintf("the server takes no login of user %s with the key in SSH_KEY_FILE (%s); is its public half known there?", s.target.user(), s.target.SSHKeyFile)
	}
	return ""
}

// variables are where credentials come from.
const variables = "REPOCREDS or REPOCREDS_FILE (for a repository in CONFIG its creds_file)"

// reason says what a status means, and what to do.
func (e *statusError) reason() string {
	switch {
	case (e.code == http.StatusUnauthorized || e.code == http.StatusForbidden || e.code == http.StatusNotFound) && e.lost:
		return fmt.Sprintf("it redirects to %s, where the credentials are not sent, and %v; if that is the right place, give its URL instead", e.from, e)
	case e.code == http.StatusUnauthorized && e.authenticated:
		return fmt.Sprintf("%v: the credentials are not accepted; check %s", e, variables)
	case e.code == http.StatusUnauthorized:
		return fmt.Sprintf("%v: it wants credentials; set %s", e, variables)
	case e.code == http.StatusForbidden && e.authenticated:
		return fmt.Sprintf("%v: the credentials are accepted but may not read this repository; check %s", e, variables)
	case e.code == http.StatusNotFound && e.authenticated:
		return fmt.Sprintf("%v: there is no such repository, or the credentials may not see it; check the URL and %s", e, variables)
	case e.code == http.StatusNotFound:
		return fmt.Sprintf("%v: there is no such repository, or it is not for everyone; check the URL, or set %s", e, variables)
	case e.code == http.StatusProxyAuthRequired:
		return fmt.Sprintf("%v: the proxy wants credentials; put them into HTTPS_PROXY or HTTP_PROXY", e)
	case e.busy() && e.retryAfter > 0:
		return fmt.Sprintf("%v and wants to be left alone for %s", e, e.retryAfter.Round(time.Second))
	case e.code == http.StatusTooManyRequests:
		return fmt.Sprintf("%v: it was asked too often; a longer INTERVAL helps", e)
	case e.code >= 500:
		return fmt.Sprintf("%v: the server has a problem of its own", e)
	default:
		return e.Error()
	}
}

// certificateReason explains what is wrong with a server's certificate, empty if
// that is not what failed.
func certificateReason(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		verify   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unknown):
		return "the server's certificate is signed by an authority that is not known here; put that authority's certificate into GIT_SSL_CAINFO or GIT_SSL_CAPATH"
	case errors.As(err, &hostname):
		return fmt.Sprintf("the server's certificate is not for this host: %v", hostname)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the server's certificate is not valid now: %v", invalid)
	case errors.As(err, &verify):
		return fmt.Sprintf("the server's certificate is refused: %v", verify.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak TLS on that port; is it meant to be http://, or another port?"
	default:
		return ""
	}
}

// networkReason explains a connection that did not come about, empty if that is
// not what failed.
func (s *Server) networkReason(err error) string {
	var (
		dns     *net.DNSError
		op      *net.OpError
		request *url.Error
	)
	via, address := "", s.target.URL.Host
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		via = " (the proxy of HTTPS_PROXY or HTTP_PROXY)"
	}
	if op != nil && op.Addr != nil {
		address = op.Addr.String()
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("unknown host %s%s; is the name right, and does the machine's name server know it?", dns.Name, via)
	case errors.As(err, &dns):
		return fmt.Sprintf("the name server does not return the address of %s%s: %s", dns.Name, via, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing answers at %s%s: connection refused; is the server up, and the port right?", address, via)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Sprintf("there is no way to %s%s; does a firewall or a missing route stop it?", address, via)
	case errors.As(err, &request): // "Get URL: reason"; the URL stands in front already
		return request.Err.Error()
	}
	return ""
}
