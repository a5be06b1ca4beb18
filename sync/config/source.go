package config

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubesync/kubesync/repo/limits"
)

// source is where a list is read from.
type source interface {
	// read returns the list as it is now.
	read(context.Context, limits.Limits) ([]byte, error)
	// String returns where it is, without credentials.
	String() string
}

// parseSource reads CONFIG. The error shows no credentials.
func parseSource(text string, options curlOptions) (source, error) {
	if filepath.IsAbs(text) {
		return fileSource(filepath.Clean(text)), nil
	}
	const accepted = "want /path, file:///path, http://… or https://…"
	if !strings.Contains(text, "://") {
		if strings.Contains(text, "@") { // may be half of a URL, with a password
			return nil, errors.New("that is no source of a list: " + accepted)
		}
		return nil, fmt.Errorf("%q is no source of a list: %s", text, accepted)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL cannot be read; special characters of a password must be percent-encoded (/ is %2F, @ is %40, # is %23, % is %25)")
	}
	switch strings.ToLower(parsed.Scheme) {
	case "file":
		if parsed.Host != "" && parsed.Host != "localhost" || !filepath.IsAbs(parsed.Path) {
			return nil, fmt.Errorf("%q names no absolute path: write file:///path", printable(parsed))
		}
		return fileSource(filepath.Clean(parsed.Path)), nil
	case "http", "https":
		if parsed.Hostname() == "" {
			return nil, fmt.Errorf("%q names no host", printable(parsed))
		}
		if !options.schemes[strings.ToLower(parsed.Scheme)] {
			return nil, fmt.Errorf("%q: --proto in CURL_OPTIONS does not allow that scheme", printable(parsed))
		}
		return httpSource{url: parsed, options: options}, nil
	default:
		return nil, fmt.Errorf("%q is no source of a list: %s", printable(parsed), accepted)
	}
}

// fileSource is a path on this machine.
type fileSource string

func (f fileSource) String() string { return string(f) }

func (f fileSource) read(_ context.Context, bounds limits.Limits) ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, bounds)
}

// httpSource is a URL on a web server.
type httpSource struct {
	url     *url.URL
	options curlOptions
}

func (h httpSource) String() string { return printable(h.url) }

// read fetches the list, and again as --retry says.
func (h httpSource) read(ctx context.Context, bounds limits.Limits) ([]byte, error) {
	start := time.Now()
	for try := 1; ; try++ {
		content, err := h.fetch(ctx, bounds)
		if err == nil {
			return content, nil
		}
		delay, again := h.options.retries.wait(try, time.Since(start), err)
		if ctx.Err() == nil && again && pause(ctx, delay) {
			continue
		}
		if try > 1 {
			return nil, fmt.Errorf("%w (after %d tries)", err, try)
		}
		return nil, err
	}
}

// fetch fetches the list once.
func (h httpSource) fetch(ctx context.Context, bounds limits.Limits) ([]byte, error) {
	client, err := h.options.client(h.url)
	if err != nil {
		return nil, fmt.Errorf("CURL_OPTIONS: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.options.maxTime)
	defer cancel()
	target := *h.url
	target.User = nil // the transport adds it where it belongs
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("no request can be made of the URL")
	}
	request.Header.Set("User-Agent", "kubesync")
	request.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	response, err := client.Do(request)
	if err != nil {
		return nil, h.explain(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &statusFailure{
			error:      statusError(response),
			status:     response.StatusCode,
			retryAfter: parseRetryAfter(response.Header.Get("Retry-After"), time.Now()),
		}
	}
	content, err := readBounded(response.Body, bounds)
	if err != nil {
		return nil, h.explain(err)
	}
	return content, nil
}

// explain takes the URL out of a client's error, where its query would show, and adds
// what to do about it.
func (h httpSource) explain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Errorf("%w (name the server's CA with --cacert in CURL_OPTIONS)", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("not done after %v, see --max-time in CURL_OPTIONS: %w", h.options.maxTime, err)
	default:
		return err
	}
}

// statusError tells what a server answered instead of a list.
func statusError(response *http.Response) error {
	answer := fmt.Sprintf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	switch status := response.StatusCode; {
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		to := ""
		if location, err := response.Location(); err == nil {
			to = " to " + printable(location)
		}
		return fmt.Errorf("%s%s, which cannot be followed: put the right URL into CONFIG", answer, to)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%s: give credentials with -u or -H in CURL_OPTIONS", answer)
	case status == http.StatusProxyAuthRequired:
		return fmt.Errorf("%s: give the proxy's credentials with -x in CURL_OPTIONS", answer)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: check CONFIG", answer)
	default:
		return errors.New(answer)
	}
}

// readBounded reads to the end, or fails where there is too much.
func readBounded(from io.Reader, bounds limits.Limits) ([]byte, error) {
	most := bounds.Of(limits.List)
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, bounds.Exceeded(limits.List, "what is there", 0)
	}
	return content, nil
}
