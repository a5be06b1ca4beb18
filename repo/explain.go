package repo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/kubesync/kubesync/repo/limits"
)

// errTimeout is the cause of a context that Options.Timeout ended.
var errTimeout = errors.New("timeout")

// explained is an error in words for a person. What it wraps is for errors.Is
// and As only: its own text may hold what must not be shown. It is never
// fs.ErrNotExist: that is a file which the revision does not have, and not one of ours,
// such as the key for ssh, that was missing when the revision was to be read.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }

// Is implements what errors.Is asks for.
func (e *explained) Is(target error) bool {
	return target != fs.ErrNotExist && errors.Is(e.cause, target)
}

// As implements what errors.As asks for.
func (e *explained) As(target any) bool { return errors.As(e.cause, target) }

// explain says which repository failed, why, and what to do about it.
func (r *Repo) explain(ctx context.Context, err error) error {
	text := r.reason(ctx, err)
	if ctx.Err() != nil {
		// What broke because of it may not say so.
		err = errors.Join(ctx.Err(), err)
	}
	return &explained{text: fmt.Sprintf("%s (%s): %s", r.options.URL, r.options.Version, brief(r.redact(text), maxText)), cause: err}
}

// reason finds the words for an error. The order matters: what ended the poll
// goes before what broke because of it.
func (r *Repo) reason(ctx context.Context, err error) string {
	var (
		status   *statusError
		exceeded *limits.Exceeded
	)
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return fmt.Sprintf("not done after %s; if the repository is that large or the network that slow, raise TIMEOUT", r.options.Timeout)
	case ctx.Err() != nil:
		return "stopped before it was done"
	case errors.As(err, &exceeded):
		return err.Error()
	case r.line.silence.fallen.Load():
		return r.line.silence.exceeded().Error()
	case errors.As(err, &status):
		return r.statusReason(status)
	case errors.Is(err, errMoved):
		return errMoved.Error() + ", twice; the next poll takes it as it is then"
	case errors.Is(err, errChecksum):
		return "the pack that came does not match its checksum; the server or something on the way has damaged it"
	case errors.Is(err, errCutOff), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errCutOff.Error() + "; the server or something on the way closed the connection"
	}
	if text := certificateReason(err); text != "" {
		return text
	}
	if text := r.networkReason(err); text != "" {
		return text
	}
	var garbled *packp.ErrUnexpectedData
	switch {
	case errors.As(err, &garbled), errors.Is(err, packp.ErrEmptyInput):
		return errNotGit.Error() + ": its answer cannot be read"
	case r.options.URL.scheme == "ssh" && strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Sprintf("the server takes no login of user %s with the key in SSH_KEY_FILE (%s); is its public half known there?", r.sshUser(), r.options.SSHKeyFile)
	case errors.Is(err, fs.ErrNotExist) && r.options.URL.IsFile():
		return err.Error() + "; is the path right, and mounted where kubesync runs?"
	default:
		return err.Error()
	}
}

func (r *Repo) sshUser() string {
	if r.options.URL.user != "" {
		return r.options.URL.user
	}
	return defaultSSHUser
}

// variables are where credentials come from.
const variables = "REPOCREDS or REPOCREDS_FILE (for a repository in CONFIG its creds_file)"

func (r *Repo) statusReason(e *statusError) string {
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
func (r *Repo) networkReason(err error) string {
	var (
		dns *net.DNSError
		op  *net.OpError
	)
	via := ""
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		via = " (the proxy of HTTPS_PROXY or HTTP_PROXY)"
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("unknown host %s%s; is the name right, and does the machine's name server know it?", dns.Name, via)
	case errors.As(err, &dns):
		return fmt.Sprintf("the name server does not tell the address of %s%s: %s", dns.Name, via, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing answers at %s%s: connection refused; is the server up, and the port right?", address(op, r.options.URL), via)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Sprintf("there is no way to %s%s; does a firewall or a missing route stop it?", address(op, r.options.URL), via)
	}
	// net/http says "Get URL: reason"; the URL stands in front already.
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return ""
}

// address is who was called.
func address(op *net.OpError, u URL) string {
	if op != nil && op.Addr != nil {
		return op.Addr.String()
	}
	return u.authority()
}

// redact takes the secrets of this repository out of a text that others had a
// part in.
func (r *Repo) redact(text string) string {
	for _, c := range r.secrets() {
		basic := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))
		word := c.Password
		if word == "" {
			word = c.User // a token may be the user's name
		}
		for _, secret := range []string{basic, word, url.QueryEscape(word), url.PathEscape(word)} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, masked)
			}
		}
	}
	return text
}
