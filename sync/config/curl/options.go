package curl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"

	"github.com/kubesync/kubesync/sync/config/flags"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// Options is what CURL_OPTIONS says.
type Options struct {
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
	// defaultMaxTime bounds a fetch without -m: curl would wait for ever.
	defaultMaxTime = time.Minute
	// mostRedirects is curl's own limit, for which --max-redirs -1 stands here, too:
	// there is no such thing as no limit.
	mostRedirects = 50
)

// Allows reports whether --proto allows a scheme.
func (o Options) Allows(scheme string) bool { return o.schemes[strings.ToLower(scheme)] }

// KeyFiles returns the files of the client certificate and its key; empty names for none.
func (o Options) KeyFiles() []string { return []string{o.certFile, o.keyFile} }

// parser reads options. Besides them it holds the values that are looked at after all flags were read.
type parser struct {
	Options
	flags    *pflag.FlagSet
	redactor *redact.Redactor
	problems []error

	agent, referer, cookie, bearer string
	proxyURL, proxyUser, directTo  string
	tls13, ipv4, ipv6              bool
}

// Parse reads CURL_OPTIONS the way curl does: short flags may be joined (-kL) and may have
// their value attached (-uuser:password). Beyond curl, a long flag may have its value
// behind a "=". The secrets among them are made known to the redactor, and stand in no
// error.
func Parse(text string, redactor *redact.Redactor) (Options, []error) {
	p := &parser{
		Options: Options{
			headers: http.Header{}, schemes: allowedSchemes(""), redirectSchemes: allowedSchemes(""),
			maxTime: defaultMaxTime, retries: retries{maxTime: longestRetrying},
		},
		flags: pflag.NewFlagSet("CURL_OPTIONS", pflag.ContinueOnError), redactor: redactor,
	}
	p.define()
	defineIdle(p.flags)
	problems := flags.Parse(p.flags, text)
	advise(problems)
	p.problems = append(problems, p.problems...)
	user, password, _ := strings.Cut(p.user, ":")
	redactor.Add(redact.Basic(user, password)...)
	redactor.Add(redact.URLs(p.proxyURL + " " + p.referer)...)
	redactor.Add(p.bearer)
	p.headersByFlag()
	p.proxies()
	p.together()
	if len(p.problems) == 0 {
		if _, _, err := p.transports(); err != nil {
			p.problem("%w", err)
		}
	}
	return p.Options, p.problems
}

// problem notes what is wrong.
func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf(format, args...))
}

// define adds the flags that have an effect.
func (p *parser) define() {
	f := p.flags
	f.StringVar(&p.caFile, "cacert", "", "")
	f.StringVar(&p.caDir, "capath", "", "")
	f.StringVarP(&p.certFile, "cert", "E", "", "")
	f.StringVar(&p.keyFile, "key", "", "")
	f.StringVarP(&p.user, "user", "u", "", "")
	f.StringVar(&p.bearer, "oauth2-bearer", "", "")
	f.StringVarP(&p.agent, "user-agent", "A", "", "")
	f.StringVarP(&p.referer, "referer", "e", "", "")
	f.StringVarP(&p.cookie, "cookie", "b", "", "")
	f.StringVarP(&p.proxyURL, "proxy", "x", "", "")
	f.StringVarP(&p.proxyUser, "proxy-user", "U", "", "")
	f.StringVar(&p.directTo, "noproxy", "", "")
	f.IntVar(&p.mostRedirects, "max-redirs", mostRedirects, "")
	f.BoolVar(&p.tls13, "tlsv1.3", false, "")
	f.BoolVarP(&p.ipv4, "ipv4", "4", false, "")
	f.BoolVarP(&p.ipv6, "ipv6", "6", false, "")
	f.BoolVar(&p.http1, "http1.1", false, "")
	defineSwitch(f, &p.insecure, "insecure", "k")
	defineSwitch(f, &p.compressed, "compressed", "")
	defineSwitch(f, &p.retries.refused, "retry-connrefused", "")
	defineSwitch(f, &p.retries.all, "retry-all-errors", "")
	p.value("connect-timeout", "", seconds(&p.connectTimeout, 0))
	p.value("max-time", "m", seconds(&p.maxTime, defaultMaxTime))
	p.value("retry-delay", "", seconds(&p.retries.delay, 0))
	p.value("retry-max-time", "", seconds(&p.retries.maxTime, longestRetrying))
	p.value("retry", "", p.retry)
	p.value("header", "H", p.header)
	p.value("resolve", "", p.resolve.add)
	p.value("tls-max", "", p.tlsMax)
	p.value("proto", "", func(text string) error { p.schemes = allowedSchemes(text); return nil })
	p.value("proto-redir", "", func(text string) error { p.redirectSchemes = allowedSchemes(text); return nil })
	p.value("cert-type", "", only("PEM"))
	p.value("key-type", "", only("PEM"))
	p.value("request", "X", only(http.MethodGet))
	p.value("output", "o", only("-"))
}

// value adds a flag whose value is read by a function, which says what is wrong with the value without
// showing it.
func (p *parser) value(name, short string, read func(string) error) {
	p.flags.VarP(value(func(text string) {
		if err := read(text); err != nil {
			p.problem("the value of --%s %w", name, err)
		}
	}), name, short, "")
}

// value is a pflag.Value that takes every text, so that all mistakes are found and not only the first one.
type value func(string)

func (v value) String() string        { return "" }
func (v value) Type() string          { return "value" }
func (v value) Set(text string) error { v(text); return nil }

// seconds reads a time as curl does, in seconds with an optional fraction; 0 is the default.
func seconds(to *time.Duration, byDefault time.Duration) func(string) error {
	return func(text string) (err error) {
		if strings.Trim(text, "0123456789.") != "" {
			return errors.New("is not a number of seconds")
		}
		if *to, err = time.ParseDuration(text + "s"); err != nil {
			return errors.New("is not a number of seconds")
		}
		if *to == 0 {
			*to = byDefault
		}
		return nil
	}
}

// only accepts one value, in any case of letters: another would ask for something else than the file as text.
func only(accepted string) func(string) error {
	return func(text string) error {
		if !strings.EqualFold(text, accepted) {
			return fmt.Errorf("must be %s", accepted)
		}
		return nil
	}
}

func (p *parser) retry(text string) (err error) {
	if p.retries.most, err = strconv.Atoi(text); err != nil || p.retries.most < 0 {
		return errors.New("must be a number, 0 or more")
	}
	return nil
}

func (p *parser) tlsMax(text string) error {
	switch text {
	case "default", "1.3":
		p.latestTLS = 0
	case "1.2":
		p.latestTLS = tls.VersionTLS12
	default:
		return errors.New("must be default, 1.2 or 1.3")
	}
	return nil
}

// header reads "Name: value"; as curl has it, "Name:" stands for not sending what is sent
// by default, which gives no values, and "Name;" for sending it empty. What a header
// carries is a secret, but for a few that never do.
func (p *parser) header(line string) error {
	name, value, found := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	var values []string
	if bare, empty := strings.CutSuffix(line, ";"); !found && empty {
		name, found, values = bare, true, []string{""}
	}
	if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		p.redactor.Add(line)
		return errors.New(`must be of the form "Name: value"`)
	}
	name = http.CanonicalHeaderKey(name)
	switch {
	case value == "" && name == "Host":
		return errors.New("takes Host away, which a request cannot do without")
	case value != "":
		values = []string{value}
	}
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Host", "User-Agent":
	default:
		// "Bearer 12345": the second half is secret without the first as well.
		_, token, _ := strings.Cut(value, " ")
		p.redactor.Add(value, strings.TrimSpace(token))
	}
	p.headers[name] = append(p.headers[name], values...)
	return nil
}

// headersByFlag reads the flags that stand for a header. A header that is given by name
// goes before the flag for it, as curl has it.
func (p *parser) headersByFlag() {
	byFlag := func(flag, name, value string) {
		if _, given := p.headers[name]; given || !p.flags.Changed(flag) {
			return
		}
		p.headers[name] = nil
		if value != "" {
			p.headers[name] = []string{value}
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			p.problem("the value of --%s holds a control character", flag)
		}
	}
	byFlag("user-agent", "User-Agent", p.agent)
	byFlag("referer", "Referer", strings.TrimSuffix(p.referer, ";auto"))
	byFlag("oauth2-bearer", "Authorization", "Bearer "+p.bearer)
	p.redactor.Add(cookieSecrets(p.cookie)...)
	if p.flags.Changed("cookie") && !strings.Contains(p.cookie, "=") {
		p.problem("--cookie does not read files: write --cookie name=value")
		return
	}
	byFlag("cookie", "Cookie", p.cookie)
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

// proxies reads which way the request goes.
func (p *parser) proxies() {
	p.noProxy = p.proxyURL == "" && p.flags.Changed("proxy")
	if p.flags.Changed("noproxy") {
		direct := parseDirectHosts(p.directTo)
		p.direct = &direct
	}
	user, password, _ := strings.Cut(p.proxyUser, ":")
	p.redactor.Add(redact.Basic(user, password)...)
	if p.proxyURL == "" {
		if p.proxyUser != "" {
			p.problem("--proxy-user needs --proxy")
		}
		return
	}
	proxy, err := parseProxy(p.proxyURL)
	if err != nil {
		p.problem("the value of --proxy %w", err)
		return
	}
	if p.proxyUser != "" {
		proxy.User = url.UserPassword(user, password)
	}
	p.redactor.Add(redact.URLs(proxy.String())...)
	p.proxy = proxy
}

// together looks at flags that depend on one another.
func (p *parser) together() {
	switch {
	case p.ipv4 && p.ipv6:
		p.problem("--ipv4 and --ipv6 exclude each other: give one of them")
	case p.ipv4:
		p.family = "4"
	case p.ipv6:
		p.family = "6"
	}
	if p.tls13 {
		p.leastTLS = tls.VersionTLS13
	}
	if p.latestTLS != 0 && p.latestTLS < p.leastTLS {
		p.problem("--tlsv1.3 and --tls-max leave no version of TLS")
	}
	if p.mostRedirects < 0 {
		p.mostRedirects = mostRedirects
	}
	if len(p.schemes) == 0 {
		p.problem("--proto leaves neither http nor https")
	}
	if p.keyFile != "" && p.certFile == "" {
		p.problem("--key needs --cert")
	}
}

// allowedSchemes evaluates what curl calls protocols, of which only http and https can be
// used; others may be named.
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

// parseProxy reads a proxy as curl does: http and port 1080, unless it says otherwise.
// The error holds nothing of it.
func parseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil || proxy.Hostname() == "" {
		return nil, errors.New("must be [user:password@]host[:port], special characters of a password percent-encoded")
	}
	switch proxy.Scheme { // url.Parse has made it lower case
	case "http", "socks5", "socks5h":
		if proxy.Port() == "" {
			proxy.Host += ":1080"
		}
	case "https":
	default:
		return nil, errors.New("must have the scheme http, https, socks5 or socks5h")
	}
	return proxy, nil
}
