package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/test/lab/lines"
	"github.com/kubesync/kubesync/test/lab/pki"
)

// says returns a handler that answers with a word.
func says(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) })
}

// everything is all that can be served.
func everything() Routes {
	return Routes{Status: says("status"), Metrics: says("metrics"), Health: says("health"), Ready: says("ready"), Webhook: says("webhook")}
}

// anywhere is a free port of this machine.
func anywhere() Listen { return Listen{Network: "tcp", Address: "127.0.0.1:0"} }

// running is a server with what it logs.
type running struct {
	*Server
	log *lines.Log
}

// run starts a server that ends with the test.
func run(t *testing.T, options Options, limits limits) running {
	t.Helper()
	r := running{log: &lines.Log{}}
	options.Log = zerolog.New(r.log)
	server, err := start(options, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	r.Server = server
	return r
}

// at returns where a variable is served, from the log.
func (r running) at(t *testing.T, variable string) string {
	t.Helper()
	var found string
	eventually(t, variable+" is served", func() bool {
		for line := range strings.Lines(r.log.String()) {
			if _, rest, yes := strings.Cut(line, `"variable":"`+variable+`","address":"`); yes {
				found, _, _ = strings.Cut(rest, `"`)
			}
		}
		return found != ""
	})
	return strings.TrimSuffix(found, "/")
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ask makes a request and returns its answer with the body.
func ask(t *testing.T, client *http.Client, method, url string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestWhatIsServedWhere(t *testing.T) {
	t.Parallel()
	r := run(t, Options{Listen: anywhere(), ProbeListen: anywhere(), Routes: everything()}, usual())
	bare := run(t, Options{Listen: anywhere(), Routes: Routes{Health: says("health")}, Debug: true}, usual())
	for name, test := range map[string]struct {
		method, url string
		status      int
		body        string
	}{
		"page":                  {"GET", r.at(t, "LISTEN") + "/", 200, "status"},
		"API":                   {"GET", r.at(t, "LISTEN") + "/api/v1/repos", 200, "status"},
		"head":                  {"HEAD", r.at(t, "LISTEN") + "/", 200, ""},
		"page written to":       {"POST", r.at(t, "LISTEN") + "/", 405, "nothing can be changed"},
		"API written to":        {"DELETE", r.at(t, "LISTEN") + "/api/v1/repos", 405, "nothing can be changed"},
		"probe beside the page": {"GET", r.at(t, "LISTEN") + "/healthz", 200, "health"},
		"webhook beside it":     {"POST", r.at(t, "LISTEN") + "/webhook", 200, "webhook"},
		"metrics beside it":     {"GET", r.at(t, "LISTEN") + "/metrics", 200, "metrics"},
		"no profiles":           {"GET", r.at(t, "LISTEN") + "/debug/pprof/", 200, "status"},
		"probe":                 {"GET", r.at(t, "PROBE_LISTEN") + "/readyz", 200, "ready"},
		"probe written to":      {"PUT", r.at(t, "PROBE_LISTEN") + "/readyz", 405, ""},
		"webhook":               {"POST", r.at(t, "PROBE_LISTEN") + "/webhook", 200, "webhook"},
		"webhook read":          {"GET", r.at(t, "PROBE_LISTEN") + "/webhook", 405, ""},
		"metrics":               {"GET", r.at(t, "PROBE_LISTEN") + "/metrics", 200, "metrics"},
		"no page at the probes": {"GET", r.at(t, "PROBE_LISTEN") + "/", 404, ""},
		"no API at the probes":  {"GET", r.at(t, "PROBE_LISTEN") + "/api/v1/repos", 404, ""},
		"profiles":              {"GET", bare.at(t, "LISTEN") + "/debug/pprof/", 200, "goroutine"},
		"a heap":                {"GET", bare.at(t, "LISTEN") + "/debug/pprof/heap?debug=1", 200, "heap profile"},
		"nothing":               {"GET", bare.at(t, "LISTEN") + "/", 404, ""},
		"no webhook":            {"POST", bare.at(t, "LISTEN") + "/webhook", 404, ""},
		"no metrics":            {"GET", bare.at(t, "LISTEN") + "/metrics", 404, ""},
	} {
		answer, body := ask(t, http.DefaultClient, test.method, test.url, nil)
		if answer.StatusCode != test.status || !strings.Contains(body, test.body) {
			t.Errorf("%s: %s with %q, want %d with %q", name, answer.Status, body, test.status, test.body)
		}
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the headers are %v", name, answer.Header)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	token, problem := "first-token", error(nil)
	set := func(text string, err error) {
		mu.Lock()
		defer mu.Unlock()
		token, problem = text, err
	}
	r := run(t, Options{Listen: anywhere(), ProbeListen: anywhere(), Routes: everything(), Debug: true, Token: func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return token, problem
	}}, usual())
	bearer := func(text string) func(*http.Request) {
		return func(request *http.Request) { request.Header.Set("Authorization", text) }
	}
	expect := func(name, path string, change func(*http.Request), status int) {
		t.Helper()
		answer, _ := ask(t, http.DefaultClient, "GET", r.at(t, "LISTEN")+path, change)
		if answer.StatusCode != status {
			t.Errorf("%s: %s, want %d", name, answer.Status, status)
		}
		if challenges := answer.Header.Values("WWW-Authenticate"); status == 401 && len(challenges) != 2 {
			t.Errorf("%s: the challenges are %q", name, challenges)
		}
	}
	expect("none", "/", nil, 401)
	expect("none, API", "/api/v1/repos", nil, 401)
	expect("none, profiles", "/debug/pprof/", nil, 401)
	expect("none, probe", "/healthz", nil, 200)
	expect("none, metrics", "/metrics", nil, 200)
	expect("another", "/", bearer("Bearer first-tokem"), 401)
	expect("part", "/", bearer("Bearer first"), 401)
	expect("empty", "/", bearer("Bearer "), 401)
	expect("bare", "/", bearer("first-token"), 401)
	expect("bearer", "/", bearer("bearer first-token"), 200)
	expect("password", "/", func(request *http.Request) { request.SetBasicAuth("anybody", "first-token") }, 200)
	expect("name", "/", func(request *http.Request) { request.SetBasicAuth("first-token", "") }, 401)
	expect("another host", "/", func(request *http.Request) {
		request.Host = "status.example.com"
		request.SetBasicAuth("", "first-token")
	}, 200)
	set("second-token", nil)
	expect("rotated away", "/", bearer("Bearer first-token"), 401)
	expect("rotated", "/", bearer("Bearer second-token"), 200)
	set("", errors.New("the file is gone"))
	expect("unreadable", "/", bearer("Bearer "), 503)
	expect("unreadable again", "/", bearer("Bearer second-token"), 503)
	if logged := strings.Count(r.log.String(), "the file is gone"); logged != 1 {
		t.Errorf("it was logged %d times:\n%s", logged, r.log)
	}
}

// A web page whose name points to this machine must not get at what is here.
func TestNamesOfLoopback(t *testing.T) {
	t.Parallel()
	r := run(t, Options{Listen: anywhere(), ProbeListen: anywhere(), Routes: everything()}, usual())
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1:9797": 200, "127.1.2.3": 200, "[::1]:9797": 200, "[::1]": 200, "kubesync.localhost": 200, "localhost.": 200,
		"evil.example.com": 421, "evil.example.com:9797": 421, "localhost.example.com": 421, "127.0.0.1.example.com": 421, "10.0.0.1": 421,
	} {
		for _, path := range []string{"/", "/metrics"} {
			answer, _ := ask(t, http.DefaultClient, "GET", r.at(t, "LISTEN")+path, func(request *http.Request) { request.Host = host })
			if answer.StatusCode != status {
				t.Errorf("host %q, %s: %s, want %d", host, path, answer.Status, status)
			}
		}
		for _, url := range []string{r.at(t, "LISTEN") + "/healthz", r.at(t, "PROBE_LISTEN") + "/metrics"} {
			answer, _ := ask(t, http.DefaultClient, "GET", url, func(request *http.Request) { request.Host = host })
			if answer.StatusCode != 200 {
				t.Errorf("host %q, %s: %s, want 200", host, url, answer.Status)
			}
		}
	}
}

func TestTakenAddresses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := Listen{Network: "tcp", Address: taken.Addr().String()}
	_, err = Start(Options{Listen: anywhere(), ProbeListen: at, Routes: everything(), Log: zerolog.Nop()})
	if err == nil || !strings.HasPrefix(err.Error(), "PROBE_LISTEN: ") || !strings.HasSuffix(err.Error(), `in use: set it to an address of this machine that is free, or to "off"`) {
		t.Errorf("got %v", err)
	}

	at.Assumed = true
	quick := usual()
	quick.retry = time.Millisecond
	r := run(t, Options{ProbeListen: at, Routes: everything()}, quick)
	eventually(t, "the trouble is logged", func() bool { return strings.Contains(r.log.String(), "cannot serve") })
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if _, body := ask(t, http.DefaultClient, "GET", r.at(t, "PROBE_LISTEN")+"/healthz", nil); body != "health" {
		t.Errorf("got %q", body)
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kubesync") // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	options := Options{Listen: Listen{Network: "unix", Address: path}, Routes: everything(), Log: zerolog.Nop()}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}

	// One that a killed process has left behind.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	if _, body := ask(t, client, "GET", "http://any.name/", nil); body != "status" {
		t.Errorf("got %q", body)
	}
	if _, err := Start(options); err == nil || !strings.Contains(err.Error(), "LISTEN: another process listens on "+path) {
		t.Errorf("a live socket: %v", err)
	}
	server.Stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}

	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(options); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file: %v", err)
	}
	if content, err := os.ReadFile(path); string(content) != "precious" {
		t.Errorf("the file is %q, %v", content, err)
	}
	options.Listen.Address = filepath.Join(dir, "none", "s")
	if _, err := Start(options); err == nil || !strings.Contains(err.Error(), "its directory must be there") {
		t.Errorf("no directory: %v", err)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewAuthority("kubesync-test")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := KeyPair{CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key")}
	replace := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(name+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) {
		t.Helper()
		pair, err := ca.Server(name)
		if err != nil {
			t.Fatal(err)
		}
		replace(files.CertFile, pair.Cert)
		replace(files.KeyFile, pair.Key)
	}
	write("first")
	r := run(t, Options{Listen: anywhere(), Certificate: files, Routes: everything()}, usual())
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	expect := func(name string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		answer, body := ask(t, client, "GET", r.at(t, "LISTEN")+"/", nil)
		if got := answer.TLS.PeerCertificates[0].Subject.CommonName; got != name || body != "status" {
			t.Errorf("the certificate is %s's, want %s's", got, name)
		}
	}
	expect("first")
	write("second")
	expect("second")
	replace(files.KeyFile, []byte("half a key"))
	expect("second")
	expect("second")
	if logged := strings.Count(r.log.String(), "the last good one stays in force"); logged != 1 {
		t.Errorf("it was logged %d times:\n%s", logged, r.log)
	}
	write("third")
	expect("third")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	streaming := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		for r.Context().Err() == nil {
			fmt.Fprintln(w, "news")
			if control.Flush() != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a slip") })
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)
			return
		}
		_, _ = w.Write(body)
	})
	short := limits{header: 500 * time.Millisecond, read: 500 * time.Millisecond, write: time.Second, idle: 500 * time.Millisecond, retry: time.Second}
	r := run(t, Options{Listen: anywhere(), Routes: Routes{Status: streaming, Health: says("health"), Metrics: broken, Webhook: echo}}, short)
	url := r.at(t, "LISTEN")
	dial := func(send string) *bufio.Reader {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, send); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(conn)
	}

	// Each of these ends, or the test never would.
	if got, _ := io.ReadAll(dial("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")); strings.Contains(string(got), "200") {
		t.Errorf("half a header: %q", got)
	}
	if got, _ := io.ReadAll(dial("POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")); !strings.Contains(string(got), "408") {
		t.Errorf("half a body: %q", got)
	}
	if got, _ := io.ReadAll(dial("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")); !strings.Contains(string(got), "HTTP/1.1") {
		t.Errorf("an idle connection: %q", got)
	}
	answer, _ := ask(t, http.DefaultClient, "GET", url+"/healthz", func(request *http.Request) {
		request.Header.Set("X-Long", strings.Repeat("x", 2*mostHeader))
	})
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", answer.Status)
	}
	if answer, _ := ask(t, http.DefaultClient, "GET", url+"/metrics", nil); answer.StatusCode != 500 || !strings.Contains(r.log.String(), `"panic":"a slip"`) {
		t.Errorf("a panic: %s, log:\n%s", answer.Status, r.log)
	}

	// A handler may stream for longer than all limits together, until the server stops.
	stream := dial("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for begun := time.Now(); time.Since(begun) < short.header+short.write+short.read+short.idle; {
		if _, err := stream.ReadString('\n'); err != nil {
			t.Fatalf("the stream ended after %s: %v", time.Since(begun), err)
		}
	}
	r.Stop()
	if rest, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream ended with %v after %d more bytes", err, len(rest))
	}
	r.Stop()
	(*Server)(nil).Stop()
}
