package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/server"
)

const (
	// patience is how long an answer may take.
	patience = 10 * time.Second
	// mostAnswer is how many bytes of an answer are read.
	mostAnswer = 64 << 20
)

// unanswered says that no one answers at an address.
type unanswered struct {
	at    server.Listen
	cause error
}

// Error implements error.
func (u *unanswered) Error() string {
	cause := u.cause
	var dial *net.OpError
	if errors.As(u.cause, &dial) {
		cause = dial.Err
	}
	return fmt.Sprintf("no kubesync answers at LISTEN=%s (%v)", u.at, cause)
}

// Unwrap returns the cause.
func (u *unanswered) Unwrap() error { return u.cause }

// request asks the kubesync at LISTEN.
func request(ctx context.Context, options Options) (status.Overview, error) {
	client, url, err := clientFor(options)
	if err != nil {
		return status.Overview{}, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/repos", nil)
	if err != nil {
		return status.Overview{}, fmt.Errorf("LISTEN=%s: %w", options.Listen, err)
	}
	if options.Token != nil {
		token, err := options.Token()
		if err != nil {
			return status.Overview{}, fmt.Errorf("LISTEN_TOKEN_FILE: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	var refused *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused), errors.Is(err, errOtherCertificate):
		return status.Overview{}, fmt.Errorf("LISTEN=%s: %w", options.Listen, err)
	case err != nil:
		return status.Overview{}, &unanswered{at: options.Listen, cause: err}
	}
	defer answer.Body.Close()
	return decode(options.Listen, answer)
}

// decode reads an answer.
func decode(from server.Listen, answer *http.Response) (status.Overview, error) {
	var overview status.Overview
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return overview, fmt.Errorf("LISTEN=%s asks for a token: set LISTEN_TOKEN_FILE to the file that holds it", from)
	default:
		return overview, fmt.Errorf("LISTEN=%s answers with status %s: is that kubesync?", from, answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostAnswer)).Decode(&overview); err != nil {
		return overview, fmt.Errorf("LISTEN=%s gives an answer that is not kubesync's: %w", from, err)
	}
	return overview, nil
}

// clientFor returns a client for LISTEN, and the URL there.
func clientFor(options Options) (*http.Client, string, error) {
	transport := &http.Transport{}
	client := &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	network, address := options.Listen.Network, reachable(options.Listen)
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if network == "unix" {
		return client, "http://localhost", nil
	}
	if options.CertFile == "" {
		return client, "http://" + address, nil
	}
	expected, err := leaf(options.CertFile)
	if err != nil {
		return nil, "", fmt.Errorf("LISTEN_TLS_CERT_FILE: %w", err)
	}
	// The certificate is for the name that others use, which need not be this one; but
	// it is known which it is.
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		if !state.PeerCertificates[0].Equal(expected) {
			return errOtherCertificate
		}
		return nil
	}}
	return client, "https://" + address, nil
}

// errOtherCertificate says that another writer answers.
var errOtherCertificate = errors.New("it shows another certificate than LISTEN_TLS_CERT_FILE")

// leaf reads the first certificate of a file.
func leaf(name string) (*x509.Certificate, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(bytes.TrimSpace(content))
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", name)
	}
	return x509.ParseCertificate(block.Bytes)
}

// reachable returns the address at which what listens on all addresses is reached from
// this machine.
func reachable(listen server.Listen) string {
	if listen.Network == "unix" {
		return listen.Address
	}
	host, port, err := net.SplitHostPort(listen.Address)
	if err != nil {
		return listen.Address
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
