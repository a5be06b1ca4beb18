package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// harden sets the headers that hold for everything that is served: no script, style or
// image but those of this server, nothing inline, no framing, no guessing of types. A
// handler may replace them.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'; "+
			"base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// survive answers for a handler that panics, and says so.
func survive(log zerolog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			thrown := recover()
			if thrown == nil {
				return
			}
			if thrown == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				panic(thrown)
			}
			log.Error().Interface("panic", thrown).Str("path", r.URL.Path).Msg("panic while answering a request, please report it")
			log.Debug().Bytes("stack", debug.Stack()).Msg("where it happened")
			http.Error(w, "kubesync made a mistake here; its log says more", http.StatusInternalServerError)
		}()
		next.ServeHTTP(w, r)
	})
}

// inTime bounds how long a request's body may take. http.Server.ReadTimeout would do the
// same, and end the context of every answer that streams for longer.
func inTime(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // a server's writer can
		}
		next.ServeHTTP(w, r)
	})
}

// readOnly lets nothing through but what reads, and no body to speak of.
func readOnly(next http.Handler) http.Handler {
	const mostBody = 4 << 10 // bytes; no one has a reason to send any
	next = http.MaxBytesHandler(next, mostBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localNames answers only to names of this machine.
func localNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalName(r.Host) {
			http.Error(w, "this address answers to localhost only: set LISTEN_TOKEN_FILE, or LISTEN to another address, to use another name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalName reports whether a Host header means this machine, whatever DNS says.
func isLocalName(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// gate lets those in who know the token.
type gate struct {
	token func() (string, error)
	log   zerolog.Logger
	next  http.Handler

	mu   sync.Mutex // guards what follows
	said string     // the last problem
}

// ServeHTTP asks for the token: a program sends it as a bearer token, and a browser as
// the password that it asks its user for.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := g.token()
	g.logOnce(err)
	if err != nil {
		http.Error(w, "the token cannot be read; the log of kubesync says why", http.StatusServiceUnavailable)
		return
	}
	if !equal(credential(r), token) {
		w.Header().Add("WWW-Authenticate", `Bearer realm="kubesync"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="kubesync: the token as password"`)
		http.Error(w, "the token of LISTEN_TOKEN_FILE is wanted", http.StatusUnauthorized)
		return
	}
	g.next.ServeHTTP(w, r)
}

// logOnce logs a problem once.
func (g *gate) logOnce(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != g.said {
		g.log.Error().Err(err).Msg("LISTEN_TOKEN_FILE cannot be read: no one is let in to the status page and the API")
	}
	g.said = text
}

// credential returns what a request offers, "" if nothing.
func credential(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// equal compares in a time that depends on nothing, not even on the length.
func equal(offered, token string) bool {
	a, b := sha256.Sum256([]byte(offered)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
