package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/sync/config/curl"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// source is where a list is read from.
type source interface {
	// read returns the list as it is now.
	read(context.Context, limits.Limits) ([]byte, error)
	// String returns where it is, without credentials.
	String() string
}

// parseSource reads CONFIG. The error shows no credentials.
func parseSource(text string, options curl.Options) (source, error) {
	if filepath.IsAbs(text) {
		return fileSource(filepath.Clean(text)), nil
	}
	const accepted = "it must be /path, file:///path, http://… or https://…"
	if !strings.Contains(text, "://") {
		if strings.Contains(text, "@") { // may be half of a URL, with a password
			return nil, errors.New("not a location of a list: " + accepted)
		}
		return nil, fmt.Errorf("%q is not a location of a list: %s", text, accepted)
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a valid URL: percent-encode special characters of a password (/ is %2F, @ is %40, # is %23, % is %25)")
	}
	switch strings.ToLower(parsed.Scheme) {
	case "file":
		if parsed.Host != "" && parsed.Host != "localhost" || !filepath.IsAbs(parsed.Path) {
			return nil, fmt.Errorf("%q is not an absolute path: write file:///path", redact.Shown(parsed))
		}
		return fileSource(filepath.Clean(parsed.Path)), nil
	case "http", "https":
		if parsed.Hostname() == "" {
			return nil, fmt.Errorf("%q names no host", redact.Shown(parsed))
		}
		if !options.Allows(parsed.Scheme) {
			return nil, fmt.Errorf("%q: --proto in CURL_OPTIONS does not allow that scheme", redact.Shown(parsed))
		}
		return httpSource{url: parsed, options: options}, nil
	default:
		return nil, fmt.Errorf("%q is not a location of a list: %s", redact.Shown(parsed), accepted)
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
	options curl.Options
}

func (h httpSource) String() string { return redact.Shown(h.url) }

func (h httpSource) read(ctx context.Context, bounds limits.Limits) ([]byte, error) {
	return h.options.Fetch(ctx, h.url, func(body io.Reader) ([]byte, error) { return readBounded(body, bounds) })
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
