package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

const secret = "s3cr3t-p/w?"

// hasNoSecret expects that a text does not show the secret in any spelling.
func hasNoSecret(t testing.TB, text string) {
	t.Helper()
	for _, spelling := range []string{secret, "s3cr3t-p%2Fw%3F", "s3cr3t-p%2Fw?", "YW5uOnMzY3IzdC1wL3c/"} {
		if strings.Contains(text, spelling) {
			t.Errorf("shows the password: %s", text)
		}
	}
}

// TestCredentials tries all places they may come from.
func TestCredentials(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t, gitserver.WithBasicAuth("ann", secret))
	s := newSite(t, server.Dir(), "master")
	one := s.commit("one", file("1"))
	inURL := func(userinfo string) string {
		return strings.Replace(server.URL("site"), "//", "//"+userinfo+"@", 1)
	}
	escaped := "ann:s3cr3t-p%2Fw%3F"
	for name, test := range map[string]struct {
		url    string
		change func(*Options)
		fails  string
	}{
		"given":                           {server.URL("site"), with("ann", secret), ""},
		"in the URL":                      {inURL(escaped), func(*Options) {}, ""},
		"URL's password before given":     {inURL(escaped), with("ann", "wrong"), ""},
		"given before the URL's user":     {inURL("bob"), with("ann", secret), ""},
		"none":                            {server.URL("site"), func(*Options) {}, "wants credentials; set REPOCREDS"},
		"none this time":                  {server.URL("site"), func(o *Options) { o.Credentials = noCredentials }, "wants credentials; set REPOCREDS"},
		"wrong":                           {server.URL("site"), with("ann", secret+"x"), "not accepted; check REPOCREDS or REPOCREDS_FILE"},
		"a user alone":                    {inURL("ann"), func(*Options) {}, "not accepted; check REPOCREDS"},
		"wrong in the URL":                {inURL(escaped + "x"), func(*Options) {}, "not accepted"},
		"file of credentials that is off": {server.URL("site"), func(o *Options) { o.Credentials = brokenCredentials }, "credentials: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := open(t, test.url, "", test.change, func(o *Options) { o.Log = zerolog.New(&log) })
			if test.fails == "" {
				want(t, r, resolve(t, r), one, "refs/heads/master", "1")
				return
			}
			text := resolveFails(t, r, server.URL("site"), test.fails)
			hasNoSecret(t, text)
			hasNoSecret(t, log.String())
		})
	}
}

func noCredentials() (Credentials, bool, error) { return Credentials{}, false, nil }

func brokenCredentials() (Credentials, bool, error) {
	return Credentials{}, false, errors.New("no such file")
}

func TestRotatedCredentials(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t, gitserver.WithBasicAuth("ann", "old"))
	s := newSite(t, server.Dir(), "master")
	one := s.commit("one", file("1"))
	password := "old"
	r := open(t, server.URL("site"), "", func(o *Options) {
		o.Credentials = func() (Credentials, bool, error) { return Credentials{User: "ann", Password: password}, true, nil }
	})
	want(t, r, resolve(t, r), one, "refs/heads/master", "1")
	server.SetBasicAuth("ann", "new")
	two := s.commit("two", file("2"))
	resolveFails(t, r, "401", "not accepted")
	if got := content(t, r, Revision{ID: one}, "dir/file"); got != "1" {
		t.Errorf("the last good revision: got %q", got)
	}
	password = "new"
	want(t, r, resolve(t, r), two, "refs/heads/master", "2")
}

// elsewhere is a second server, which records what it is asked.
func elsewhere(t *testing.T, options ...gitserver.Option) (*gitserver.Server, string) {
	server := gitserver.Start(t, options...)
	return server, newSite(t, server.Dir(), "master").commit("elsewhere", file("elsewhere"))
}

func TestRedirectLosesCredentials(t *testing.T) {
	t.Parallel()
	second, hash := elsewhere(t)
	first := gitserver.Start(t, gitserver.WithBasicAuth("ann", secret))
	first.Behave(gitserver.RedirectTo(second.Base()))
	r := open(t, first.URL("site"), "", with("ann", secret))
	want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
	if first.Log.Requests()[0].Password != secret {
		t.Error("the first server got no credentials")
	}
	if second.Log.Count(gitserver.Fetch) == 0 {
		t.Error("the second server was not fetched from")
	}
	for _, request := range second.Log.Requests() {
		if request.User != "" || request.Password != "" {
			t.Errorf("the second server was sent credentials with %s", request.Path)
		}
	}
	second.SetBasicAuth("ann", secret)
	text := resolveFails(t, r, "redirects to "+second.Base(), "credentials are not sent", "give its URL instead")
	hasNoSecret(t, text)
}

// TestRedirectAndBack leads to another server, which leads back: what is asked
// for then is not what was asked for first.
func TestRedirectAndBack(t *testing.T) {
	t.Parallel()
	first, _ := elsewhere(t, gitserver.WithBasicAuth("ann", secret))
	second := gitserver.Start(t)
	first.Behave(func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/start.git/") {
				http.Redirect(w, r, second.Base()+r.URL.RequestURI(), http.StatusFound)
				return
			}
			right.ServeHTTP(w, r)
		})
	})
	second.Behave(gitserver.RedirectTo(strings.TrimSuffix(first.URL("site"), "/site.git") + "/site.git/x/.."))
	r := open(t, first.URL("start"), "", with("ann", secret))
	resolveFails(t, r, "401", "credentials are not sent")
	requests := first.Log.Requests()
	if len(requests) != 2 || requests[0].Password != secret || requests[1].Password != "" {
		t.Errorf("got %d requests", len(requests))
	}
}

func TestRedirectOnTheSameServerKeepsCredentials(t *testing.T) {
	t.Parallel()
	server, hash := elsewhere(t, gitserver.WithBasicAuth("ann", secret))
	server.Behave(func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path, old := strings.CutPrefix(r.URL.RequestURI(), "/old/"); old {
				http.Redirect(w, r, "/"+path, http.StatusMovedPermanently)
				return
			}
			right.ServeHTTP(w, r)
		})
	})
	r := open(t, server.Base()+"/old/site.git", "", with("ann", secret))
	want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
}

// TestRedirectRefused are redirects that lead nowhere good.
func TestRedirectRefused(t *testing.T) {
	t.Parallel()
	plain, _ := elsewhere(t)
	for name, test := range map[string]struct {
		to   func(server *gitserver.Server) string
		says string
	}{
		"https to http":    {func(*gitserver.Server) string { return plain.Base() + "/site.git/info/refs" }, "from https to http"},
		"another scheme":   {func(*gitserver.Server) string { return "file:///etc/passwd" }, "redirects to a file URL"},
		"in circles":       {func(s *gitserver.Server) string { return s.Base() + "/site.git/info/refs?service=git-upload-pack" }, "in circles"},
		"to another place": {func(s *gitserver.Server) string { return s.Base() + "/login" }, "no git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t, gitserver.WithTLS)
			to := test.to(server)
			server.Behave(func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/login" {
						w.Header().Set("Content-Type", "text/html")
						return
					}
					http.Redirect(w, r, to, http.StatusFound)
				})
			})
			r := open(t, server.URL("site"), "", with("ann", secret), func(o *Options) { o.CAFile = server.CAFile() })
			hasNoSecret(t, resolveFails(t, r, test.says))
		})
	}
	if plain.Log.Count() != 0 {
		t.Error("the redirect from https to http was followed")
	}
}

// TestSecretInTheServersWords has a server that sends back what it was sent.
func TestSecretInTheServersWords(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, words string){
		"body of an error":   func(w http.ResponseWriter, words string) { http.Error(w, words, http.StatusForbidden) },
		"content type":       func(w http.ResponseWriter, words string) { w.Header().Set("Content-Type", words) },
		"redirect":           func(w http.ResponseWriter, words string) { redirectTo(w, "https://ann:"+words+"@127.0.0.1:1/x") },
		"redirect to no one": func(w http.ResponseWriter, words string) { redirectTo(w, words+"://x") },
		"protocol error": func(w http.ResponseWriter, words string) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line := "ERR " + words
			_, _ = w.Write([]byte("00" + string("0123456789abcdef"[(len(line)+4)/16]) + string("0123456789abcdef"[(len(line)+4)%16]) + line))
		},
		"garbage": func(w http.ResponseWriter, words string) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte("0020" + words + strings.Repeat("x", 40)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, password, _ := r.BasicAuth()
				answer(w, password+" "+r.Header.Get("Authorization"))
			}))
			defer server.Close()
			r := open(t, server.URL+"/site.git", "", with("ann", secret))
			hasNoSecret(t, resolveFails(t, r, server.URL))
		})
	}
}

func redirectTo(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusFound)
}

func TestCertificateAuthorities(t *testing.T) {
	t.Parallel()
	one, _ := elsewhere(t, gitserver.WithTLS)
	two, _ := elsewhere(t, gitserver.WithTLS)
	dir := t.TempDir()
	copyTo(t, filepath.Join(dir, "any-name.pem"), one.CAFile())
	if err := os.Mkdir(filepath.Join(dir, "subdirectory"), 0o755); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	copyTo(t, empty, os.DevNull)
	for name, test := range map[string]struct {
		server    *gitserver.Server
		file, dir string
		fails     string
	}{
		"file":                {one, one.CAFile(), "", ""},
		"directory":           {one, "", dir, ""},
		"file and directory":  {two, two.CAFile(), dir, ""},
		"directory, not file": {one, two.CAFile(), dir, ""},
		"the system's":        {one, "", "", "authority that is not known here; put that authority's certificate into GIT_SSL_CAINFO"},
		"another file":        {one, two.CAFile(), "", "GIT_SSL_CAINFO"},
		"another directory":   {two, "", dir, "GIT_SSL_CAINFO"},
		"missing file":        {one, filepath.Join(dir, "missing"), "", "GIT_SSL_CAINFO: open"},
		"file of nothing":     {one, empty, "", "GIT_SSL_CAINFO: " + empty + " holds no certificate in PEM form"},
		"missing directory":   {one, "", filepath.Join(dir, "missing"), "GIT_SSL_CAPATH: open"},
		"directory of none":   {one, "", filepath.Join(dir, "subdirectory"), "GIT_SSL_CAPATH: " + filepath.Join(dir, "subdirectory") + " holds no certificate in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, test.server.URL("site"), "", func(o *Options) { o.CAFile, o.CADir = test.file, test.dir })
			if test.fails == "" {
				resolve(t, r)
			} else {
				resolveFails(t, r, test.fails)
			}
		})
	}
}

func copyTo(t *testing.T, to, from string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReposShareNothing has two with different authorities and credentials, at
// the same time, each of which would fail with what the other has.
func TestReposShareNothing(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for _, user := range []string{"ann", "bob"} {
		server, hash := elsewhere(t, gitserver.WithTLS, gitserver.WithBasicAuth(user, user))
		for range 3 {
			r := open(t, server.URL("site"), "", with(user, user), func(o *Options) { o.CAFile = server.CAFile() })
			group.Go(func() {
				for range 3 {
					if rev, err := r.Resolve(t.Context()); err != nil || rev.ID != hash {
						t.Errorf("%s: got %s, %v", user, rev.ID, err)
					}
				}
			})
		}
	}
	group.Wait()
}

func TestWrongPort(t *testing.T) {
	t.Parallel()
	secure, _ := elsewhere(t, gitserver.WithTLS)
	plain, _ := elsewhere(t)
	resolveFails(t, open(t, strings.Replace(secure.URL("site"), "https", "http", 1), ""), "400 Bad Request")
	resolveFails(t, open(t, strings.Replace(plain.URL("site"), "http", "https", 1), ""), "does not speak TLS")
	resolveFails(t, open(t, plain.URL("other"), ""), "404", "no such repository")
	resolveFails(t, open(t, plain.URL("other"), "", with("ann", secret)), "404", "or the credentials may not see it")
}

// TestServerTrouble is what a server can do to a poll. The last good revision
// outlives all of it.
func TestServerTrouble(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		behaviour gitserver.Behaviour
		says      string
	}{
		"unauthorized": {gitserver.Unauthorized(), "wants credentials"},
		"forbidden":    {gitserver.Failing(http.StatusForbidden), "403 Forbidden"},
		"not found":    {gitserver.Failing(http.StatusNotFound), "no such repository, or it is not for everyone"},
		"failing":      {gitserver.Failing(http.StatusBadGateway), "502 Bad Gateway: the server has a problem"},
		"cut in pack":  {gitserver.CutInPack(), "broke off in the middle"},
		"no git":       {page, "no git repository"},
		"cut at once":  {abort, "broke off in the middle"},
		"slow":         {gitserver.Slow(time.Hour), "not done after 2s; if the repository is that large or the network that slow, raise TIMEOUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := gitserver.Start(t)
			s := newSite(t, server.Dir(), "master")
			one := s.commit("one", file("1"))
			r := open(t, server.URL("site"), "")
			patience := r.options.Timeout
			rev := resolve(t, r)
			want(t, r, rev, one, "refs/heads/master", "1")
			two := s.commit("two", file(gitbytes.Noise(100_000)))
			server.Behave(test.behaviour)
			if name == "slow" { // only now: the machine may be as slow as the server is
				r.options.Timeout = 2 * time.Second
			}
			resolveFails(t, r, server.URL("site"), test.says)
			r.options.Timeout = patience
			want(t, r, rev, one, "refs/heads/master", "1")
			server.Behave(gitserver.Normal())
			want(t, r, resolve(t, r), two, "refs/heads/master", gitbytes.Noise(100_000))
		})
	}
}

// page answers as a login page or a captive portal does.
func page(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
}

func abort(http.Handler) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	server, hash := elsewhere(t)
	r := open(t, server.URL("site"), "")
	resolve(t, r)
	server.Down()
	resolveFails(t, r, "connection refused", "is the server up")
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
	resolveFails(t, open(t, "https://no-such-host.invalid/app", ""), "no-such-host.invalid", "name")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	server, _ := elsewhere(t)
	asked := make(chan struct{}, 1)
	server.Behave(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := open(t, server.URL("site"), "").Resolve(ctx)
	says(t, err, "stopped")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it does not wrap context.Canceled: %v", err)
	}
}

// TestMovedWhileFetched moves the branch between the listing and the fetch, as a
// server shows it that hands out nothing but what refs point at.
func TestMovedWhileFetched(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		moves int
		says  string
	}{"once": {1, ""}, "always": {1000, "changed while it was being fetched"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newSite(t, dir, "master")
			s.commit("one", file("1"))
			moves := test.moves
			server := &upstream{dir: s.Bare, advertised: func() {
				if moves--; moves >= 0 {
					s.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "moved")
					s.git("push", "--quiet", "--force", "origin", "HEAD")
				}
			}}
			r := open(t, server.start(t), "")
			if test.says != "" {
				resolveFails(t, r, test.says)
			} else if rev := resolve(t, r); rev.Subject != "moved" {
				t.Errorf("got %q", rev.Subject)
			}
		})
	}
}

// TestProxy runs itself as another process, since net/http reads the proxy
// variables once.
func TestProxy(t *testing.T) {
	t.Parallel()
	if target := os.Getenv("KUBESYNC_TEST_PROXIED"); target != "" {
		rev := resolve(t, open(t, target, "", with("ann", secret)))
		t.Log("resolved " + rev.ID)
		return
	}
	server, hash := elsewhere(t, gitserver.WithBasicAuth("ann", secret))
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		r.URL.Host, r.RequestURI = strings.TrimPrefix(server.Base(), "http://"), ""
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = response.Body.Close() }()
		for name, values := range response.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}))
	defer proxy.Close()
	for name, test := range map[string]struct{ proxy, says string }{
		"through": {proxy.URL, "resolved " + hash},
		"down":    {"http://ann:" + url.QueryEscape(secret) + "@127.0.0.1:1", "(the proxy of HTTPS_PROXY or HTTP_PROXY)"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestProxy$", "-test.v")
		cmd.Env = append(os.Environ(), "HTTP_PROXY="+test.proxy, "KUBESYNC_TEST_PROXIED=http://git.example.com/site.git")
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), test.says) {
			t.Errorf("%s: got %s", name, out)
		}
		hasNoSecret(t, string(out))
	}
	asked = slices.Compact(asked)
	if !slices.Equal(asked, []string{"git.example.com"}) {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

// TestNoOneAccepts has a port that takes connections and says nothing, which
// only the time limit ends.
func TestNoOneAccepts(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, scheme := range []string{"http", "https", "ssh"} {
		t.Run(scheme, func(t *testing.T) {
			r := open(t, scheme+"://"+listener.Addr().String()+"/site", "", sshFiles(t), func(o *Options) { o.Timeout = 300 * time.Millisecond })
			resolveFails(t, r, "not done after 300ms", "TIMEOUT")
		})
	}
}

// TestProxyTunnel goes through a proxy to https, which sees the host and no more. As
// TestProxy, it runs itself.
func TestProxyTunnel(t *testing.T) {
	t.Parallel()
	if target := os.Getenv("KUBESYNC_TEST_TUNNELLED"); target != "" {
		r := open(t, target, "", with("ann", secret), func(o *Options) { o.CAFile = os.Getenv("KUBESYNC_TEST_CA") })
		rev := resolve(t, r)
		t.Log("read " + content(t, r, rev, "dir/file"))
		return
	}
	server, _ := elsewhere(t, gitserver.WithTLS, gitserver.WithBasicAuth("ann", secret))
	asked := make(chan *http.Request, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		to, err := net.Dial("tcp", strings.TrimPrefix(server.Base(), "https://"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = to.Close() }()
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = from.Close() }()
		_, _ = from.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(to, buffered) }()
		_, _ = io.Copy(from, to)
	}))
	defer proxy.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestProxyTunnel$", "-test.v")
	// The server's certificate has this name.
	cmd.Env = append(os.Environ(), "HTTPS_PROXY="+proxy.URL, "KUBESYNC_TEST_CA="+server.CAFile(), "KUBESYNC_TEST_TUNNELLED=https://kubernetes/site.git")
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "read elsewhere") {
		t.Errorf("got %s", out)
	}
	hasNoSecret(t, string(out))
	if r := <-asked; r.Method != http.MethodConnect || r.Host != "kubernetes:443" || r.Header.Get("Authorization") != "" {
		t.Errorf("the proxy was asked to %s %s with %v", r.Method, r.Host, r.Header)
	}
}

// TestRedirectRemembered has a move for ever, which is asked about once, and one
// for the time being.
func TestRedirectRemembered(t *testing.T) {
	t.Parallel()
	for code, again := range map[int]int{http.StatusMovedPermanently: 0, http.StatusPermanentRedirect: 0, http.StatusFound: 1, http.StatusTemporaryRedirect: 1} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			second, hash := elsewhere(t)
			first := gitserver.Start(t)
			first.Behave(func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, second.Base()+r.URL.RequestURI(), code)
				})
			})
			r := open(t, first.URL("site"), "", with("ann", secret))
			want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
			first.Log.Reset()
			want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
			if got := first.Log.Count(); got != again {
				t.Errorf("the first server was asked %d times", got)
			}
			for _, request := range second.Log.Requests() {
				if request.User != "" || request.Password != "" {
					t.Errorf("the second server was sent credentials with %s", request.Path)
				}
			}
			// Gone from there, the first one is asked where it is now.
			second.Behave(gitserver.Failing(http.StatusNotFound))
			first.Log.Reset()
			resolveFails(t, r, "404")
			if first.Log.Count() != 1 {
				t.Error("the first server was not asked again")
			}
			third, hash := elsewhere(t)
			first.Behave(gitserver.RedirectTo(third.Base()))
			want(t, r, resolve(t, r), hash, "refs/heads/master", "elsewhere")
		})
	}
}
