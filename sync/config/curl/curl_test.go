package curl

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// TestCurlFlagsAsTheScriptGaveThem has lines that curl takes, and that a Deployment of
// the shell script may have.
func TestCurlFlagsAsTheScriptGaveThem(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "joe" || password != "hunter22" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, r)
	})
	for _, options := range []string{
		"-s", "-sSf", "-sSfL", "-fsSL", "-v", "-#", "-sSkL", "-N", "--silent --show-error --fail --location", "--no-progress-meter", "--no-buffer", "--no-silent",
		"--fail-with-body", "--retry 3", "--retry 3 --retry-delay 2 --retry-max-time 30 --retry-connrefused", "--retry=3 -m10", "-m 10 --connect-timeout 5",
		"--compressed", "--no-compressed", "--tlsv1.2", "-1", "--tlsv1.3", "--tls-max 1.3", "--proto =http,https", "--proto '-all,http,https' --proto-redir =https",
		"-4", "--http1.1", "--http2", "--keepalive-time 60 --tcp-nodelay", "--no-keepalive", "-X GET", "-XGET", "--request GET", "-G", "-g", "-q", "--basic", "-o -",
		"--max-redirs 5", "--max-redirs -1", "--noproxy '*'", "--noproxy localhost,127.0.0.1", "-A kubesync/1", "--user-agent ''", "-e https://h/", "-b a=b", "-H 'Accept: text/plain'",
		"-sSf --retry 3 --compressed -A x --noproxy h --resolve h:443:10.0.0.1", "--cert-type PEM --key-type pem",
	} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			mustFetch(t, server.URL, options+" -u joe:hunter22")
			mustFetch(t, server.URL, "-ujoe:hunter22 "+options)
		})
	}
}

// TestIdleFlags wants each flag that is said to have no effect to be one of its own.
func TestIdleFlags(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&parser{flags: flags}).define()
	defineIdle(flags) // panics at a flag that there is already
	for _, unsafe := range []string{"location-trusted", "netrc", "anyauth", "digest", "ciphers", "pinnedpubkey", "crlfile", "cert-status", "insecure-proxy", "proxy-insecure"} {
		if flags.Lookup(unsafe) != nil {
			t.Errorf("--%s is accepted", unsafe)
		}
	}
}

func TestSwitchesOfCurl(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]bool{"": false, "-k": true, "-k --no-insecure": false, "--no-insecure -k": true, "--insecure=false": false, "-sk": true} {
		if got, problems := Parse(options, redact.New()); got.insecure != want || len(problems) > 0 {
			t.Errorf("%q: insecure %v, %v", options, got.insecure, problems)
		}
	}
}

func TestHeadersOfCurl(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]http.Header{
		"":                                {"User-Agent": {"kubesync"}, "Accept": {"application/json, application/yaml, */*;q=0.5"}},
		"-A mine/1":                       {"User-Agent": {"mine/1"}},
		"-A ''":                           {"User-Agent": nil},
		"-A mine/1 -H 'User-Agent: more'": {"User-Agent": {"more"}},
		"-H User-Agent: -H accept:":       {"User-Agent": nil, "Accept": nil},
		"-H 'X-Empty;'":                   {"X-Empty": {""}},
		"-b 'a=b; c=d'":                   {"Cookie": {"a=b; c=d"}},
		"-e 'https://h/;auto'":            {"Referer": {"https://h/"}},
		"--oauth2-bearer t0ken":           {"Authorization": {"Bearer t0ken"}},
		"--compressed":                    {"Accept-Encoding": {"gzip"}},
	} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for name, values := range want {
					if got := r.Header.Values(name); !slices.Equal(got, values) {
						t.Errorf("%s: got %q, want %q", name, got, values)
					}
				}
				answer(w, r)
			})
			mustFetch(t, server.URL, options)
		})
	}
}

// TestNoSecretOfCurlIsPrinted looks at what is said of options, right and wrong ones, and
// at what the redactor lets through.
func TestNoSecretOfCurlIsPrinted(t *testing.T) {
	t.Parallel()
	const secrets = "-u joe:hunter22 --oauth2-bearer hunter33 -b 'session=hunter44; x=hunter55' -H 'X-Token: hunter66' -x proxy:1 -U joe:hunter77 -e 'https://h/?token=hunter88'"
	redactor := redact.New()
	if _, problems := Parse(secrets, redactor); len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := redactor.String("hunter22 hunter33 hunter44 hunter55 hunter66 hunter77 hunter88"); strings.Contains(got, "hunter") {
		t.Errorf("after redaction: %s", got)
	}
	_, problems := Parse(secrets+" --frobnicate hunter99 -A 'hunter99\nx' --pass hunter99", redact.New())
	err := errors.Join(problems...)
	expect(t, err, "--frobnicate", "--user-agent", "--pass")
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("a secret stands in the error: %v", err)
	}
}

func TestCompressedList(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("compression is not asked for: %v", r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		size := 0
		if r.URL.Path == "/bomb" {
			size = 5 << 20
		}
		fmt.Fprint(packed, oneRepo, strings.Repeat(" ", size))
	})
	mustFetch(t, server.URL, "--compressed")
	expect(t, fetch(t, server.URL+"/bomb", "--compressed"), errTooLarge.Error())
}

func TestRetry(t *testing.T) {
	t.Parallel()
	// failing answers so many times with the status, then with the list.
	failing := func(t *testing.T, times int32, status int) (*httptest.Server, *atomic.Int32) {
		var asked atomic.Int32
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) <= times {
				w.WriteHeader(status)
				return
			}
			answer(w, r)
		}), &asked
	}
	const quick = " --retry-delay 0.001"
	for name, test := range map[string]struct {
		times   int32
		status  int
		options string
		asked   int32
		want    string // empty: the list
	}{
		"none":         {1, 503, "", 1, "503 Service Unavailable"},
		"enough":       {2, 503, "--retry 2" + quick, 3, ""},
		"too few":      {3, 502, "--retry 2" + quick, 3, "502 Bad Gateway (after 3 tries)"},
		"for good":     {1, 404, "--retry 2" + quick, 1, "404 Not Found: check CONFIG"},
		"all errors":   {1, 404, "--retry 2 --retry-all-errors" + quick, 2, ""},
		"out of time":  {1, 503, "--retry 2 --retry-delay 60 --retry-max-time 30", 1, "503"},
		"not any more": {1, 503, "--retry 2 --retry 0" + quick, 1, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, asked := failing(t, test.times, test.status)
			err := fetch(t, server.URL, test.options)
			if test.want != "" {
				expect(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
			if got := asked.Load(); got != test.asked {
				t.Errorf("asked %d times, want %d", got, test.asked)
			}
		})
	}
	t.Run("given up at the end", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			cancel()
		})
		options, _ := Parse("--retry 5 --retry-delay 200", redact.New())
		target, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := options.Fetch(ctx, target, readAll); err == nil {
			t.Error("there is a file")
		}
	})
}

func TestRetryDecision(t *testing.T) {
	t.Parallel()
	status := func(code int) error {
		return fmt.Errorf("fetch: %w", &statusFailure{error: errors.New("x"), status: code})
	}
	timeout := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	lookup := &net.DNSError{IsNotFound: true}
	ten := retries{most: 10, maxTime: time.Hour}
	for name, test := range map[string]struct {
		retries retries
		retry   int
		passed  time.Duration
		failure error
		want    time.Duration // -1: none
	}{
		"not asked for":       {retries{maxTime: time.Hour}, 1, 0, status(503), -1},
		"first":               {ten, 1, 0, status(503), time.Second},
		"second":              {ten, 2, 0, status(503), 2 * time.Second},
		"tenth":               {ten, 10, 0, status(503), 512 * time.Second},
		"eleventh":            {ten, 11, 0, status(503), -1},
		"longest":             {retries{most: 99, maxTime: time.Hour}, 70, 0, status(503), 10 * time.Minute},
		"fixed":               {retries{most: 3, delay: 7 * time.Second, maxTime: time.Hour}, 3, 0, status(503), 7 * time.Second},
		"the server says":     {ten, 1, 0, &statusFailure{error: errors.New("x"), status: 429, retryAfter: time.Minute}, time.Minute},
		"time is up":          {retries{most: 3, maxTime: time.Minute}, 1, time.Minute, status(503), -1},
		"408":                 {ten, 1, 0, status(408), time.Second},
		"504":                 {ten, 1, 0, status(504), time.Second},
		"501":                 {ten, 1, 0, status(501), -1},
		"401":                 {ten, 1, 0, status(401), -1},
		"timeout":             {ten, 1, 0, timeout, time.Second},
		"max-time":            {ten, 1, 0, context.DeadlineExceeded, time.Second},
		"no such host":        {ten, 1, 0, lookup, time.Second},
		"refused":             {ten, 1, 0, refused, -1},
		"refused, asked for":  {retries{most: 1, maxTime: time.Hour, refused: true}, 1, 0, refused, time.Second},
		"broken":              {ten, 1, 0, io.ErrUnexpectedEOF, -1},
		"broken, all":         {retries{most: 1, maxTime: time.Hour, all: true}, 1, 0, io.ErrUnexpectedEOF, time.Second},
		"401, all":            {retries{most: 1, maxTime: time.Hour, all: true}, 1, 0, status(401), time.Second},
		"certificate is none": {ten, 1, 0, &tls.CertificateVerificationError{}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, again := test.retries.wait(test.retry, test.passed, test.failure)
			if again != (test.want >= 0) || again && got != test.want {
				t.Errorf("got %v, %v, want %v", got, again, test.want)
			}
		})
	}
}

func TestDirectHosts(t *testing.T) {
	t.Parallel()
	for list, hosts := range map[string]map[string]bool{
		"":                         {"h": false, "127.0.0.1": false},
		"*":                        {"h": true, "127.0.0.1": true},
		"local.com":                {"local.com": true, "LOCAL.com.": true, "www.local.com": true, "notlocal.com": false, "com": false},
		".local.com, other":        {"local.com": true, "www.local.com": true, "other": true, "another": false},
		"192.168.0.0/16,10.0.0.1":  {"192.168.7.7": true, "192.169.0.1": false, "10.0.0.1": true, "10.0.0.10": false},
		"[::1],fd00::/8,127.0.0.1": {"::1": true, "fd12::3": true, "fe80::1": false, "127.0.0.1": true},
		",.,":                      {"h": false},
		"a*":                       {"ab": false},
	} {
		direct := parseDirectHosts(list)
		for host, want := range hosts {
			if got := direct.covers(host); got != want {
				t.Errorf("%q covers %q: %v", list, host, got)
			}
		}
	}
}

// TestProxyOf asks which proxy is used; the one in the environment is tried in a process
// of its own by the scenarios, as net/http reads it once.
func TestProxyOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ options, url, want string }{
		"none":            {"", "http://h/", ""},
		"proxy":           {"-x p:1", "http://h/", "http://p:1"},
		"not for it":      {"-x p:1 --noproxy h", "http://h/", ""},
		"not for a part":  {"-x p:1 --noproxy h", "http://www.h/", ""},
		"for others":      {"-x p:1 --noproxy h", "http://other/", "http://p:1"},
		"for none":        {"-x p:1 --noproxy '*'", "http://other/", ""},
		"for this host":   {"-x p:1 --noproxy h", "http://127.0.0.1/", "http://p:1"},
		"for all":         {"-x p:1 --noproxy ''", "http://h/", "http://p:1"},
		"with user":       {"-x p:1 -U joe:a@b", "http://h/", "http://joe:a%40b@p:1"},
		"only exceptions": {"--noproxy h", "http://other/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options, problems := Parse(test.options, redact.New())
			target, err := url.Parse(test.url)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			got := ""
			if find := options.proxyOf(); find != nil {
				proxy, err := find(&http.Request{URL: target})
				if err != nil {
					t.Fatal(err)
				}
				if proxy != nil {
					got = proxy.String()
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values  []string
		address string
		want    []string
	}{
		"none":      {nil, "h:80", nil},
		"one":       {[]string{"H:80:10.0.0.1"}, "h:80", []string{"10.0.0.1:80"}},
		"port":      {[]string{"h:80:10.0.0.1"}, "h:443", nil},
		"several":   {[]string{"h:80:10.0.0.1,::1,[::2]"}, "h:80", []string{"10.0.0.1:80", "[::1]:80", "[::2]:80"}},
		"last wins": {[]string{"h:80:10.0.0.1", "+h:80:10.0.0.2"}, "h:80", []string{"10.0.0.2:80"}},
		"any":       {[]string{"*:80:10.0.0.1"}, "x:80", []string{"10.0.0.1:80"}},
		"any last":  {[]string{"*:80:10.0.0.1", "h:80:10.0.0.2"}, "h:80", []string{"10.0.0.2:80"}},
		"removed":   {[]string{"h:80:10.0.0.1", "-h:80"}, "h:80", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all resolved
			for _, value := range test.values {
				if err := all.add(value); err != nil {
					t.Fatal(err)
				}
			}
			if got := all.addresses(test.address); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Host, "config.invalid:") {
			t.Errorf("asked as %s", r.Host)
		}
		answer(w, r)
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	// The first address has no server.
	mustFetch(t, "http://config.invalid:"+port, "-6 --resolve config.invalid:"+port+":127.0.0.2,127.0.0.1")
}

func TestAllowedSchemes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "http https", "=https": "https", "-http": "https", "=https,+http": "http https", "-all": "", "-all,https": "https", "=HTTPS": "https", "-ftp": "http https", "=ftp": "", "all": "http https",
	} {
		var got []string
		for scheme := range allowedSchemes(text) {
			got = append(got, scheme)
		}
		slices.Sort(got)
		if !reflect.DeepEqual(strings.Join(got, " "), want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestRedirectsLeadWhereTheyMay(t *testing.T) {
	t.Parallel()
	plain := serve(t, answer)
	secure, ca := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusFound)
	}, nil)
	mustFetch(t, secure.URL, "--cacert "+ca)
	for _, options := range []string{"--proto =https", "--proto-redir =https", "-sSf --proto '=https' --tlsv1.2"} {
		expect(t, fetch(t, secure.URL, options+" --cacert "+ca), "a redirect leads to http, which --proto or --proto-redir does not allow")
	}
}

func TestVersionsOfTLS(t *testing.T) {
	t.Parallel()
	old, ca := serveTLS(t, answer, &tls.Config{MaxVersion: tls.VersionTLS12})
	mustFetch(t, old.URL, "--tlsv1.2 --cacert "+ca)
	expect(t, fetch(t, old.URL, "--tlsv1.3 --cacert "+ca), "protocol version")
	recent, ca := serveTLS(t, answer, &tls.Config{MinVersion: tls.VersionTLS13})
	mustFetch(t, recent.URL, "--tlsv1.2 --cacert "+ca)
	expect(t, fetch(t, recent.URL, "--tls-max 1.2 --cacert "+ca), "protocol version")
}
