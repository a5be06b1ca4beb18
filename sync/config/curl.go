package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
	user              string      // user:password
	headers           http.Header // a nil value takes away what is sent by default
	compressed        bool

	proxy   *url.URL
	noProxy bool         // -x "": not even that of the environment
	direct  *directHosts // --noproxy; nil: what the environment says

	resolve         resolved
	family          string // "4" or "6"; empty: either
	http1           bool   // no HTTP/2
	leastTLS        uint16 // 0: Go's, which is 1.2
	latestTLS       uint16 // 0: any
	schemes         map[string]bool
	redirectSchemes map[string]bool
	mostRedirects   int

	connectTimeout time.Duration // 0: not limited apart
	maxTime        time.Duration
	retries        retries
}

const (
	// defaultMaxTime bounds the fetch of a list without -m: curl would wait for ever.
	defaultMaxTime = time.Minute
	// mostRedirects is curl's own limit, for which --max-redirs -1 stands here, too:
	// there is no such thing as no limit.
	mostRedirects = 50
)

const acceptedCurl = "accepted are --cacert --capath -E/--cert --key -u/--user --oauth2-bearer -H/--header -A/--user-agent -b/--cookie -k/--insecure --connect-timeout -m/--max-time " +
	"--retry and its like, -x/--proxy -U/--proxy-user --noproxy --resolve --compressed --proto --tlsv1.2 --http1.1 -4 -6 --max-redirs, and flags that change nothing here, such as -s -S -f -v and -L"

// curlText is the values of flags that are looked at after all of them were read.
type curlText struct {
	headers, resolve                         []string
	agent, referer, cookie, bearer           string
	proxy, proxyUser, noProxy                string
	connectTimeout, maxTime                  string
	retryDelay, retryMaxTime                 string
	proto, protoRedirect, latestTLS          string
	method, output, certificateKind, keyKind string
	tls13, ipv4, ipv6                        bool
}

// parseCurlOptions reads CURL_OPTIONS the way curl does: short flags may be joined
// (-kL) and may have their value attached (-uuser:password). Beyond curl, a long flag
// may have its value behind a "=". The secrets among them are made known to the
// redactor, and stand in no error.
func parseCurlOptions(text string, redactor *Redactor) (curlOptions, []error) {
	o, from := curlOptions{mostRedirects: mostRedirects}, curlText{}
	flags := pflag.NewFlagSet("CURL_OPTIONS", pflag.ContinueOnError)
	o.define(flags, &from)
	defineIdle(flags)
	problems := parseFlags(flags, text)
	advise(problems)
	user, password, _ := strings.Cut(o.user, ":")
	redactor.Add(basicSecrets(user, password)...)
	redactor.Add(urlSecrets(from.proxy + " " + from.referer)...)
	redactor.Add(from.bearer)
	problems = slices.Concat(problems,
		o.readHeaders(from, flags, redactor),
		o.readTimes(from),
		o.readProxy(from, flags, redactor),
		o.readConnection(from, flags),
		o.readSchemes(from),
		o.check(from),
	)
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	if len(problems) == 0 {
		if _, _, err := o.transports(); err != nil {
			problems = []error{err}
		}
	}
	return o, problems
}

// define adds the flags that have an effect.
func (o *curlOptions) define(flags *pflag.FlagSet, from *curlText) {
	flags.StringVar(&o.caFile, "cacert", "", "")
	flags.StringVar(&o.caDir, "capath", "", "")
	flags.StringVarP(&o.certFile, "cert", "E", "", "")
	flags.StringVar(&from.certificateKind, "cert-type", "", "")
	flags.StringVar(&o.keyFile, "key", "", "")
	flags.StringVar(&from.keyKind, "key-type", "", "")
	flags.StringVarP(&o.user, "user", "u", "", "")
	flags.StringVar(&from.bearer, "oauth2-bearer", "", "")
	flags.StringArrayVarP(&from.headers, "header", "H", nil, "")
	flags.StringVarP(&from.agent, "user-agent", "A", "", "")
	flags.StringVarP(&from.referer, "referer", "e", "", "")
	flags.StringVarP(&from.cookie, "cookie", "b", "", "")
	flags.StringVarP(&from.method, "request", "X", http.MethodGet, "")
	flags.StringVarP(&from.output, "output", "o", "-", "")
	flags.StringVar(&from.connectTimeout, "connect-timeout", "", "")
	flags.StringVarP(&from.maxTime, "max-time", "m", "", "")
	flags.IntVar(&o.retries.most, "retry", 0, "")
	flags.StringVar(&from.retryDelay, "retry-delay", "", "")
	flags.StringVar(&from.retryMaxTime, "retry-max-time", "", "")
	flags.StringVarP(&from.proxy, "proxy", "x", "", "")
	flags.StringVarP(&from.proxyUser, "proxy-user", "U", "", "")
	flags.StringVar(&from.noProxy, "noproxy", "", "")
	flags.StringArrayVar(&from.resolve, "resolve", nil, "")
	flags.StringVar(&from.proto, "proto", "", "")
	flags.StringVar(&from.protoRedirect, "proto-redir", "", "")
	flags.IntVar(&o.mostRedirects, "max-redirs", mostRedirects, "")
	flags.StringVar(&from.latestTLS, "tls-max", "", "")
	flags.BoolVar(&from.tls13, "tlsv1.3", false, "")
	flags.BoolVarP(&from.ipv4, "ipv4", "4", false, "")
	flags.BoolVarP(&from.ipv6, "ipv6", "6", false, "")
	flags.BoolVar(&o.http1, "http1.1", false, "")
	defineSwitch(flags, &o.insecure, "insecure", "k")
	defineSwitch(flags, &o.compressed, "compressed", "")
	defineSwitch(flags, &o.retries.refused, "retry-connrefused", "")
	defineSwitch(flags, &o.retries.all, "retry-all-errors", "")
}

// readHeaders reads the flags that add to what a request says. A header that is given
// by name goes before the flag for it, as curl has it.
func (o *curlOptions) readHeaders(from curlText, flags *pflag.FlagSet, redactor *Redactor) (problems []error) {
	o.headers = http.Header{}
	for _, line := range from.headers {
		name, values, err := parseHeader(line, redactor)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		o.headers[name] = append(o.headers[name], values...)
	}
	byFlag := func(flag, name, value string) {
		if _, given := o.headers[name]; given || !flags.Changed(flag) {
			return
		}
		o.headers[name] = nil
		if value != "" {
			o.headers[name] = []string{value}
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			problems = append(problems, fmt.Errorf("the value of --%s holds a control character", flag))
		}
	}
	byFlag("user-agent", "User-Agent", from.agent)
	byFlag("referer", "Referer", strings.TrimSuffix(from.referer, ";auto"))
	byFlag("oauth2-bearer", "Authorization", "Bearer "+from.bearer)
	if flags.Changed("cookie") && !strings.Contains(from.cookie, "=") {
		redactor.Add(from.cookie)
		problems = append(problems, errors.New("a file of cookies, as --cookie has it, is not supported: write --cookie name=value"))
	} else {
		redactor.Add(cookieSecrets(from.cookie)...)
		byFlag("cookie", "Cookie", from.cookie)
	}
	return problems
}

// shortestCookie is from how many characters on the value of a cookie is taken for a
// secret: a setting such as lang=german is none, and masked it would spoil the log.
const shortestCookie = 8

// cookieSecrets returns what must not be printed of cookies.
func cookieSecrets(text string) []string {
	secrets := []string{text}
	for cookie := range strings.SplitSeq(text, ";") {
		_, value, _ := strings.Cut(cookie, "=")
		if value = strings.TrimSpace(value); len(value) >= shortestCookie {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// readTimes reads the flags that are seconds.
func (o *curlOptions) readTimes(from curlText) (problems []error) {
	seconds := func(flag, text string, byDefault time.Duration) time.Duration {
		value, err := parseCurlSeconds(flag, text, byDefault)
		problems = append(problems, err)
		return value
	}
	o.connectTimeout = seconds("--connect-timeout", from.connectTimeout, 0)
	o.maxTime = seconds("--max-time", from.maxTime, defaultMaxTime)
	o.retries.delay = seconds("--retry-delay", from.retryDelay, 0)
	o.retries.maxTime = seconds("--retry-max-time", from.retryMaxTime, longestRetrying)
	return problems
}

// readProxy reads which way the list is fetched.
func (o *curlOptions) readProxy(from curlText, flags *pflag.FlagSet, redactor *Redactor) (problems []error) {
	o.noProxy = from.proxy == "" && flags.Changed("proxy")
	if flags.Changed("noproxy") {
		direct := parseDirectHosts(from.noProxy)
		o.direct = &direct
	}
	user, password, _ := strings.Cut(from.proxyUser, ":")
	redactor.Add(basicSecrets(user, password)...)
	if from.proxy == "" {
		if from.proxyUser != "" {
			problems = append(problems, errors.New("--proxy-user is given without --proxy"))
		}
		return problems
	}
	proxy, err := parseProxy(from.proxy)
	if err != nil {
		return []error{fmt.Errorf("--proxy: %w", err)}
	}
	if from.proxyUser != "" {
		proxy.User = url.UserPassword(user, password)
	}
	redactor.Add(urlSecrets(proxy.String())...)
	o.proxy = proxy
	return nil
}

// readConnection reads what a connection is like.
func (o *curlOptions) readConnection(from curlText, flags *pflag.FlagSet) (problems []error) {
	for _, entry := range from.resolve {
		problems = append(problems, o.resolve.add(entry))
	}
	switch {
	case from.ipv4 && from.ipv6:
		problems = append(problems, errors.New("--ipv4 and --ipv6 exclude each other: give one of them"))
	case from.ipv4:
		o.family = "4"
	case from.ipv6:
		o.family = "6"
	}
	if from.tls13 {
		o.leastTLS = tls.VersionTLS13
	}
	switch from.latestTLS {
	case "", "default", "1.3":
	case "1.2":
		o.latestTLS = tls.VersionTLS12
	default:
		problems = append(problems, errors.New("the value of --tls-max is none of default, 1.2 and 1.3"))
	}
	if o.latestTLS != 0 && o.latestTLS < o.leastTLS {
		problems = append(problems, errors.New("--tlsv1.3 and --tls-max leave no version of TLS"))
	}
	if o.mostRedirects < 0 {
		o.mostRedirects = mostRedirects
	}
	if flags.Changed("retry") && o.retries.most < 0 {
		problems = append(problems, errors.New("the value of --retry is less than 0"))
	}
	return problems
}

// readSchemes reads --proto and --proto-redir.
func (o *curlOptions) readSchemes(from curlText) (problems []error) {
	o.schemes = allowedSchemes(from.proto)
	o.redirectSchemes = allowedSchemes(from.protoRedirect)
	if len(o.schemes) == 0 {
		return []error{errors.New("--proto leaves neither http nor https")}
	}
	return nil
}

// allowedSchemes evaluates what curl calls protocols, of which only these two can be
// the list's; others may be named.
func allowedSchemes(text string) map[string]bool {
	allowed := map[string]bool{"http": true, "https": true}
	for item := range strings.SplitSeq(text, ",") {
		name := strings.TrimLeft(item, "+-=")
		modifiers := item[:len(item)-len(name)]
		if strings.Contains(modifiers, "=") {
			clear(allowed)
		}
		for _, scheme := range []string{"http", "https"} {
			switch {
			case !strings.EqualFold(name, scheme) && !strings.EqualFold(name, "all"):
			case strings.Contains(modifiers, "-"):
				delete(allowed, scheme)
			default:
				allowed[scheme] = true
			}
		}
	}
	return allowed
}

// check finds what does not go together, and values that ask for something else than
// the list as text.
func (o *curlOptions) check(from curlText) (problems []error) {
	if o.keyFile != "" && o.certFile == "" {
		problems = append(problems, errors.New("--key is given without --cert"))
	}
	for flag, kind := range map[string]string{"--cert-type": from.certificateKind, "--key-type": from.keyKind} {
		if kind != "" && !strings.EqualFold(kind, "PEM") {
			problems = append(problems, fmt.Errorf("the value of %s is not PEM, which alone is supported", flag))
		}
	}
	if from.method != http.MethodGet {
		problems = append(problems, errors.New("the value of --request is not GET, which a list is fetched with"))
	}
	if from.output != "-" {
		problems = append(problems, errors.New("--output is not supported: the list is not written to a file"))
	}
	return problems
}

// parseHeader reads "Name: value"; as curl has it, "Name:" stands for not sending what
// is sent by default, which gives no values, and "Name;" for sending it empty. What a
// header carries is a secret, but for a few that never do.
func parseHeader(line string, redactor *Redactor) (name string, values []string, err error) {
	name, value, found := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if bare, empty := strings.CutSuffix(line, ";"); !found && empty {
		name, found, values = bare, true, []string{""}
	}
	if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		redactor.Add(line)
		return "", nil, errors.New(`the value of --header is not of the form "Name: value"`)
	}
	name = http.CanonicalHeaderKey(name)
	if value == "" {
		if name == "Host" {
			return "", nil, errors.New("--header: a request without Host is none")
		}
		return name, values, nil
	}
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Host", "User-Agent":
	default:
		redactor.Add(value)
		// "Bearer 12345": the second half is secret without the first as well.
		if _, token, found := strings.Cut(value, " "); found {
			redactor.Add(strings.TrimSpace(token))
		}
	}
	return name, []string{value}, nil
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
