package curl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/kubesync/kubesync/internal/backoff"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// Fetch returns the file at a URL, which is read by a function, and tries again as --retry
// says. The error shows neither the URL nor credentials.
func (o Options) Fetch(ctx context.Context, target *url.URL, read func(io.Reader) ([]byte, error)) ([]byte, error) {
	start := time.Now()
	for try := 1; ; try++ {
		content, err := o.fetch(ctx, target, read)
		if err == nil {
			return content, nil
		}
		delay, again := o.retries.wait(try, time.Since(start), err)
		if ctx.Err() == nil && again && backoff.Sleep(ctx, delay, nil) {
			continue
		}
		if try > 1 {
			return nil, fmt.Errorf("%w (after %d tries)", err, try)
		}
		return nil, err
	}
}

// fetch fetches the file once.
func (o Options) fetch(ctx context.Context, target *url.URL, read func(io.Reader) ([]byte, error)) ([]byte, error) {
	client, err := o.client(target)
	if err != nil {
		return nil, fmt.Errorf("CURL_OPTIONS: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.maxTime)
	defer cancel()
	plain := *target
	plain.User = nil // the transport adds it where it belongs
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, plain.String(), nil)
	if err != nil {
		return nil, errors.New("no request can be made of the URL")
	}
	request.Header.Set("User-Agent", "kubesync")
	request.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return nil, o.explain(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &statusFailure{
			error:      statusError(response),
			status:     response.StatusCode,
			retryAfter: min(backoff.RetryAfter(response.Header), longestRetryDelay),
		}
	}
	content, err := read(response.Body)
	if err != nil {
		return nil, o.explain(err)
	}
	return content, nil
}

// explain takes the URL out of a client's error, where its query would show, and adds
// what to do about it.
func (o Options) explain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w (name the server's CA with --cacert in CURL_OPTIONS)", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("timed out after %v (--max-time in CURL_OPTIONS): %w", o.maxTime, err)
	default:
		return err
	}
}

// statusError says what a server answered instead of the file.
func statusError(response *http.Response) error {
	answer := fmt.Sprintf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	switch status := response.StatusCode; {
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		to := ""
		if location, err := response.Location(); err == nil {
			to = " to " + redact.Shown(location)
		}
		return fmt.Errorf("%s%s, which cannot be followed: correct the URL in CONFIG", answer, to)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%s: set credentials with -u or -H in CURL_OPTIONS", answer)
	case status == http.StatusProxyAuthRequired:
		return fmt.Errorf("%s: set the proxy's credentials with -x in CURL_OPTIONS", answer)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: check CONFIG", answer)
	default:
		return errors.New(answer)
	}
}
