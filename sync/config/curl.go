package config

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"
)

// curlOptions is what CURL_OPTIONS says. Its zero value is no options.
type curlOptions struct {
	caFile, caDir     string
	certFile, keyFile string
	insecure          bool
	user              string // user:password
	headers           http.Header
	proxy             *url.URL
	noProxy           bool // -x "": not even that of the environment
	followRedirects   bool
	connectTimeout    time.Duration // 0: not limited apart
	maxTime           time.Duration
}

const (
	// defaultMaxTime bounds the fetch of a list without -m: curl would wait for ever.
	defaultMaxTime = time.Minute
	// mostRedirects is curl's own limit.
	mostRedirects = 50
)

const acceptedCurl = "accepted are --cacert --capath -E/--cert --key -u/--user -H/--header -k/--insecure --connect-timeout -m/--max-time -x/--proxy and -L/--location"

// parseCurlOptions reads CURL_OPTIONS the way curl does: short flags may be joined
// (-kL) and may have their value attached (-uuser:password). Beyond curl, a long flag
// may have its value behind a "=". The secrets among them are made known to the
// redactor, and stand in no error.
func parseCurlOptions(text string, redactor *Redactor) (curlOptions, []error) {
	var (
		o                       curlOptions
		headers                 []string
		proxy                   string
		connectTimeout, maxTime string
	)
	flags := pflag.NewFlagSet("CURL_OPTIONS", pflag.ContinueOnError)
	flags.StringVar(&o.caFile, "cacert", "", "")
	flags.StringVar(&o.caDir, "capath", "", "")
	flags.StringVarP(&o.certFile, "cert", "E", "", "")
	flags.StringVar(&o.keyFile, "key", "", "")
	flags.StringVarP(&o.user, "user", "u", "", "")
	flags.StringArrayVarP(&headers, "header", "H", nil, "")
	flags.BoolVarP(&o.insecure, "insecure", "k", false, "")
	flags.BoolVarP(&o.followRedirects, "location", "L", false, "")
	flags.StringVar(&connectTimeout, "connect-timeout", "", "")
	flags.StringVarP(&maxTime, "max-time", "m", "", "")
	flags.StringVarP(&proxy, "proxy", "x", "", "")
	problems := parseFlags(flags, text)
	for i := range problems {
		problems[i] = fmt.Errorf("%w; %s", problems[i], acceptedCurl)
	}

	user, password, _ := strings.Cut(o.user, ":")
	redactor.Add(basicSecrets(user, password)...)
	redactor.Add(urlSecrets(proxy)...)
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	o.headers = http.Header{}
	for _, line := range headers {
		name, value, err := parseHeader(line, redactor)
		note(err)
		o.headers[name] = append(o.headers[name], value)
	}
	var err error
	o.connectTimeout, err = parseCurlSeconds("--connect-timeout", connectTimeout, 0)
	note(err)
	o.maxTime, err = parseCurlSeconds("--max-time", maxTime, defaultMaxTime)
	note(err)
	if proxy != "" {
		o.proxy, err = parseProxy(proxy)
		if err != nil {
			note(fmt.Errorf("--proxy: %w", err))
		} else {
			redactor.Add(urlSecrets(o.proxy.String())...)
		}
	}
	o.noProxy = proxy == "" && flags.Changed("proxy")
	if o.keyFile != "" && o.certFile == "" {
		note(errors.New("--key is given without --cert"))
	}
	if len(problems) == 0 {
		_, _, err = o.transports()
		note(err)
	}
	return o, problems
}

// parseHeader reads "Name: value". What a header carries is a secret, but for a few
// that never do.
func parseHeader(line string, redactor *Redactor) (name, value string, err error) {
	name, value, found := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !found || value == "" || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		redactor.Add(line)
		return "", "", errors.New(`the value of --header is not of the form "Name: value"`)
	}
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Host", "User-Agent":
	default:
		redactor.Add(value)
		// "Bearer 12345": the second half is secret without the first as well.
		if _, token, found := strings.Cut(value, " "); found {
			redactor.Add(strings.TrimSpace(token))
		}
	}
	return name, value, nil
}

// parseCurlSeconds reads a time as curl does, in seconds with an optional fraction.
// Empty or 0 is the default.
func parseCurlSeconds(flag, text string, byDefault time.Duration) (time.Duration, error) {
	if text == "" {
		return byDefault, nil
	}
	duration, err := parseSeconds(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the value of %s is no number of seconds", flag)
	case duration == 0:
		return byDefault, nil
	default:
		return duration, nil
	}
}

// parseProxy reads a proxy as curl does: http and port 1080, unless it says otherwise.
// The error holds nothing of it.
func parseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" {
		return nil, errors.New("it cannot be read: want [user:password@]host[:port], special characters of a password percent-encoded")
	}
	switch proxy.Scheme = strings.ToLower(proxy.Scheme); proxy.Scheme {
	case "http", "socks5", "socks5h":
		if proxy.Port() == "" {
			proxy.Host += ":1080"
		}
	case "https":
	default:
		return nil, errors.New("its scheme is none of http, https, socks5 and socks5h")
	}
	return proxy, nil
}

// pemFiles returns the files of a directory that may hold certificates.
func pemFiles(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		name := filepath.Join(directory, entry.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files, nil
}
