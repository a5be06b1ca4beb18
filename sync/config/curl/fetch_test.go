package curl

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// oneRepo is a list whose content tells that it was fetched.
const oneRepo = `[{"url": "https://h/fetched"}]`

// fetch gets the file at a URL with these CURL_OPTIONS, at most 4 MiB of it.
func fetch(t *testing.T, address, options string) error {
	t.Helper()
	parsed, problems := Parse(options, redact.New())
	target, err := url.Parse(address)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	content, err := parsed.Fetch(t.Context(), target, readAll)
	if err == nil && !strings.HasPrefix(string(content), oneRepo) {
		t.Errorf("got %q", content)
	}
	return err
}

// errTooLarge is the error of a reader that has had enough.
var errTooLarge = errors.New("too large")

func readAll(body io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, 4<<20))
	if len(content) == 4<<20 {
		return nil, errTooLarge
	}
	return content, err
}

// mustFetch is fetch where there must be no error.
func mustFetch(t *testing.T, url, options string) {
	t.Helper()
	if err := fetch(t, url, options); err != nil {
		t.Error(err)
	}
}

// expect checks that an error says all of what is wanted.
func expect(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error, want one with %q", wanted)
	}
	for _, want := range wanted {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in the error:\n%v", want, err)
		}
	}
}

// writeFile writes a file of the test and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve starts a web server.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// serveTLS starts a web server with TLS, and returns it with the file of its CA.
func serveTLS(t *testing.T, handler http.HandlerFunc, settings *tls.Config) (*httptest.Server, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = settings
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of the tests
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, writeFile(t, "ca.pem", pemOf("CERTIFICATE", server.Certificate().Raw))
}

func pemOf(kind string, content []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
}

// answer writes the list.
func answer(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, oneRepo) }

func TestFetch(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.RequestURI() != "/a%20b/list?x=1" || r.UserAgent() != "kubesync" || r.Header.Get("Authorization") != "" {
			t.Errorf("got %s %s, %v", r.Method, r.URL.RequestURI(), r.Header)
		}
		answer(w, r)
	})
	mustFetch(t, server.URL+"/a%20b/list?x=1", "")
}

func TestFetchOverTLS(t *testing.T) {
	t.Parallel()
	server, ca := serveTLS(t, answer, nil)
	other := writeFile(t, "other.pem", certificate(t).cert)
	directory := t.TempDir()
	content, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ca.0": string(content), "README": "no certificate"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, options := range map[string]string{
		"--cacert": "--cacert " + ca, "--cacert=": "--cacert=" + ca, "--capath": "--capath " + directory,
		"both": "--cacert " + other + " --capath " + directory, "-k": "-k", "--insecure": "--insecure",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustFetch(t, server.URL, options)
		})
	}
	for name, options := range map[string]string{"no CA": "", "another CA": "--cacert " + other} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, fetch(t, server.URL, options), "--cacert")
		})
	}
}

// pair is a certificate and its key in PEM form.
type pair struct{ cert, key string }

// certificate makes a certificate that is its own CA.
func certificate(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubesync"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert: pemOf("CERTIFICATE", raw), key: pemOf("PRIVATE KEY", der)}
}

func TestFetchWithAClientCertificate(t *testing.T) {
	t.Parallel()
	client := certificate(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(client.cert))
	server, ca := serveTLS(t, answer, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients})
	cert, key := writeFile(t, "cert.pem", client.cert), writeFile(t, "key.pem", client.key)
	both := writeFile(t, "both.pem", client.cert+client.key)

	mustFetch(t, server.URL, "--cacert "+ca+" --cert "+cert+" --key "+key)
	mustFetch(t, server.URL, "--cacert "+ca+" -E "+both)
	expect(t, fetch(t, server.URL, "--cacert "+ca), "certificate required")

	// A redirect to another server leads there without the certificate.
	asked := make(chan int, 1)
	elsewhere, _ := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- len(r.TLS.PeerCertificates)
		answer(w, r)
	}, &tls.Config{ClientAuth: tls.RequestClientCert})
	from, _ := serveTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			t.Error("the server in CONFIG did not get the certificate")
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}, &tls.Config{ClientAuth: tls.RequestClientCert})
	mustFetch(t, from.URL, "-Lk -E "+both)
	if n := <-asked; n != 0 {
		t.Errorf("the other server got %d certificates", n)
	}
}

func TestFetchWithCredentials(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "joe" || password != "p@ss word" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer(w, r)
	})
	address := strings.TrimPrefix(server.URL, "http://")
	for name, test := range map[string]struct{ url, options string }{
		"-u":         {server.URL, "-u 'joe:p@ss word'"},
		"attached":   {server.URL, `-ujoe:p@ss\ word`},
		"joined":     {server.URL, `-kLujoe:"p@ss word"`},
		"--user":     {server.URL, `--user "joe:p@ss word"`},
		"--user=":    {server.URL, `"--user=joe:p@ss word"`},
		"in the URL": {"http://joe:p%40ss%20word@" + address + "/x", ""},
		"-u wins":    {"http://jane:hunter22@" + address + "/x", `-u "joe:p@ss word"`},
		"-H":         {server.URL, "-H 'Authorization: Basic am9lOnBAc3Mgd29yZA=='"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustFetch(t, test.url, test.options)
		})
	}
	for name, test := range map[string]struct{ url, options string }{
		"none": {server.URL, ""}, "wrong": {server.URL, "-u joe:hunter22"}, "user alone": {server.URL, "-u joe"},
		"wrong in the URL": {"http://joe:hunter22@" + address + "/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fetch(t, test.url, test.options)
			expect(t, err, "401 Unauthorized: set credentials with -u or -H")
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("the password stands in the error: %v", err)
			}
		})
	}
}

func TestFetchWithHeaders(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values("X-Token"); len(got) != 2 || got[0] != "a: b" || got[1] != "c" || r.Host != "config.example.com" || r.UserAgent() != "mine" {
			t.Errorf("got host %s and %v", r.Host, r.Header)
		}
		answer(w, r)
	})
	mustFetch(t, server.URL, `-H "X-Token: a: b" --header X-Token:c -H'Host: config.example.com' -H "user-agent: mine"`)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "X-Token", "Referer", "Cookie"} {
			if r.Header.Get(name) != "" {
				t.Errorf("another server got the header %s", name)
			}
		}
		answer(w, r)
	})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "joe" || r.Header.Get("X-Token") != "t0ken" {
			t.Errorf("%s: the credentials are missing: %v", r.URL.Path, r.Header)
		}
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/list", http.StatusMovedPermanently)
		case "/other":
			http.Redirect(w, r, elsewhere.URL+"/list?sig=hunter22", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
		default:
			answer(w, r)
		}
	})
	const credentials = " -u joe:hunter22 -H 'X-Token: t0ken' -H 'Cookie: c=hunter22'"
	mustFetch(t, server.URL+"/same", credentials)
	mustFetch(t, server.URL+"/other?token=hunter22", "--location"+credentials)
	expect(t, fetch(t, server.URL+"/loop", "-L"+credentials), "more than 50 redirects")
	err := fetch(t, server.URL+"/other", "--max-redirs 0"+credentials)
	expect(t, err, "more than 0 redirects")
	if strings.Contains(err.Error(), "hunter22") {
		t.Errorf("a secret stands in the error: %v", err)
	}
}

func TestStatusCodes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		201: "201 Created", 204: "204 No Content", 304: "304 Not Modified", 400: "400 Bad Request", 403: "403 Forbidden: set credentials",
		404: "404 Not Found: check CONFIG", 407: "407 Proxy Authentication Required: set the proxy's credentials", 500: "500 Internal Server Error", 503: "503 Service Unavailable",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			expect(t, fetch(t, server.URL+"/x?token=hunter22", ""), want)
		})
	}
}

func TestALargeFileIsRefused(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		// The client hangs up at some point: that is no error of the test's.
		_, _ = w.Write(bytes.Repeat([]byte(" "), 4<<20+2))
	})
	if err := fetch(t, server.URL, ""); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestASlowServerIsGivenUp(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "[")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	start := time.Now()
	expect(t, fetch(t, server.URL, "-m 0.2"), "timed out after 200ms (--max-time")
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("that took %v", took)
	}

	options, _ := Parse("", redact.New())
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := options.Fetch(ctx, target, readAll); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	err = fetch(t, "http://joe:hunter22@"+address+"/x?token=hunter22", "--connect-timeout 5")
	expect(t, err, "connection refused")
	if strings.Contains(err.Error(), "hunter22") {
		t.Errorf("a secret stands in the error: %v", err)
	}
}

// TestProxy goes through a forward proxy, for http and by CONNECT for https.
func TestProxy(t *testing.T) {
	t.Parallel()
	plain := serve(t, answer)
	secure, ca := serveTLS(t, answer, nil)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic cHJveHk6aHVudGVyMjI=" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method == http.MethodConnect {
			tunnel(t, w, r.Host)
			return
		}
		if r.URL.Host != "config.example.com" {
			t.Errorf("asked for %s", r.URL)
		}
		answer(w, r)
	})
	address := strings.TrimPrefix(proxy.URL, "http://")
	with := "proxy:hunter22@" + address

	mustFetch(t, "http://config.example.com/list", "-x "+with)
	mustFetch(t, "http://config.example.com/list", "--proxy http://"+with)
	mustFetch(t, secure.URL, "-x"+with+" --cacert "+ca)
	mustFetch(t, plain.URL, "-x ''")

	for _, url := range []string{"http://config.example.com/list", secure.URL} {
		err := fetch(t, url, "-x proxy:hunter23@"+address)
		expect(t, err, "Proxy Authentication Required")
		if strings.Contains(err.Error(), "hunter23") {
			t.Errorf("a secret stands in the error: %v", err)
		}
	}
}

// tunnel connects a proxy's client with a host.
func tunnel(t *testing.T, w http.ResponseWriter, host string) {
	to, err := net.Dial("tcp", host)
	if err != nil {
		t.Error(err)
		return
	}
	w.WriteHeader(http.StatusOK)
	from, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		defer from.Close()
		defer to.Close()
		// Either side may hang up first.
		_, _ = io.Copy(from, to)
	}()
	// What the client has sent by now was read by the server.
	go func() { _, _ = io.Copy(to, early) }()
}

func TestCurlMistakes(t *testing.T) {
	t.Parallel()
	client := certificate(t)
	cert := writeFile(t, "cert.pem", client.cert)
	empty := writeFile(t, "empty.pem", "")
	for name, test := range map[string]struct{ options, want string }{
		"unknown":          {"--frobnicate", "the flag --frobnicate is not supported; accepted are --cacert"},
		"cacert":           {"--cacert /no/file", "--cacert: open /no/file"},
		"cacert empty":     {"--cacert " + empty, "holds no certificate"},
		"capath":           {"--capath /no/dir", "--capath: open /no/dir"},
		"capath empty":     {"--capath " + filepath.Dir(empty), "holds no certificate"},
		"cert":             {"--cert /no/file --key /no/key", "--cert: open /no/file"},
		"cert without key": {"--cert " + cert, "--cert: "},
		"key without cert": {"--key " + cert, "--key needs --cert"},
		"cert password":    {"--cert " + cert + ":hunter22", cert + " with a password behind it is not supported"},
		"header":           {"-H hunter22", `the value of --header must be of the form "Name: value"`},
		"no host":          {"-H Host:", "the value of --header takes Host away"},
		"location-trusted": {"--location-trusted", "the flag --location-trusted is not supported: it would send credentials"},
		"netrc":            {"-sn", "the flag -n is not supported: write the credentials as -u"},
		"digest":           {"--digest -u joe:hunter22", "the flag --digest is not supported: only basic"},
		"ciphers":          {"--ciphers hunter22", "the flag --ciphers is not supported: the connection would be less safe"},
		"pass":             {"--pass hunter22", "the flag --pass is not supported: decrypt the key"},
		"cookie jar":       {"-b hunter22", "--cookie does not read files"},
		"agent":            {"-A 'x\nhunter22'", "the value of --user-agent holds a control character"},
		"method":           {"-X POST", "the value of --request must be GET"},
		"output":           {"-o hunter22", "the value of --output must be -"},
		"retry":            {"--retry hunter22", "the value of --retry must be a number, 0 or more"},
		"retry below 0":    {"--retry=-1", "the value of --retry must be a number, 0 or more"},
		"retry-delay":      {"--retry-delay 1m", "the value of --retry-delay is not a number of seconds"},
		"resolve":          {"--resolve h:443:hunter22", "the value of --resolve must be of the form"},
		"resolve port":     {"--resolve h:0:10.0.0.1", "the value of --resolve must be of the form"},
		"resolve host":     {"--resolve h", "the value of --resolve must be of the form"},
		"proxy user":       {"-U joe:hunter22", "--proxy-user needs --proxy"},
		"both families":    {"-46", "--ipv4 and --ipv6 exclude each other"},
		"proto":            {"--proto =ftp", "--proto leaves neither http nor https"},
		"tls-max":          {"--tls-max 1.1", "the value of --tls-max must be"},
		"tls range":        {"--tlsv1.3 --tls-max 1.2", "--tlsv1.3 and --tls-max leave no version"},
		"DER":              {"--cert-type DER", "the value of --cert-type must be PEM"},
		"header file":      {"-H @/etc/passwd", `the value of --header must be of the form "Name: value"`},
		"header lines":     {"-H 'A: b\nhunter22: c'", `the value of --header must be of the form "Name: value"`},
		"max-time":         {"-m 5m", "the value of --max-time is not a number of seconds"},
		"connect-timeout":  {"--connect-timeout -1", "the value of --connect-timeout is not a number of seconds"},
		"proxy scheme":     {"-x ftp://joe:hunter22@h", "the value of --proxy must have the scheme"},
		"proxy":            {"-x http://joe:hun%ter22@h", "the value of --proxy must be"},
		"word":             {"hunter22", "an argument is not a flag"},
		"no value":         {"-u", "the flag --user needs a value"},
		"quote":            {"-u 'joe:hunter22", "a quote is not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := Parse(test.options, redact.New())
			err := errors.Join(problems...)
			expect(t, err, test.want)
			if strings.Contains(err.Error(), "hunter22") {
				t.Errorf("a secret stands in the error: %v", err)
			}
		})
	}
}

func TestCurlDefaults(t *testing.T) {
	t.Parallel()
	options, problems := Parse("-m 0 --connect-timeout 2.5 -x proxy", redact.New())
	if len(problems) > 0 || options.maxTime != defaultMaxTime || options.connectTimeout != 2500*time.Millisecond || options.proxy.String() != "http://proxy:1080" {
		t.Errorf("got %+v, %v", options, problems)
	}
}
