package gitserver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Behaviour is a way to answer requests, given the right answer.
type Behaviour func(right http.Handler) http.Handler

// Normal answers rightly.
func Normal() Behaviour { return func(right http.Handler) http.Handler { return right } }

// Slow answers rightly, after a delay or never, if the client gives up before.
func Slow(delay time.Duration) Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(delay):
				right.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
	}
}

// Unauthorized refuses everybody, whatever their password.
func Unauthorized() Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { unauthorized(w) })
	}
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
	http.Error(w, "authentication required", http.StatusUnauthorized)
}

// Failing answers every request with an HTTP status, 503 for example.
func Failing(status int) Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, fmt.Sprintf("this server answers %d to everything", status), status)
		})
	}
}

// RedirectTo sends clients to the same path under base, the URL of another
// server.
func RedirectTo(base string) Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, base+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		})
	}
}

// CutInPack answers rightly until the objects come: it breaks the connection in
// the middle of the pack.
func CutInPack() Behaviour {
	return inPack(func(*http.Request) {})
}

// StallInPack answers rightly until the objects come: in the middle of the pack it
// falls silent, until the client gives up.
func StallInPack() Behaviour {
	return inPack(func(r *http.Request) { <-r.Context().Done() })
}

// inPack sends half of a pack, does what is to be done then, and breaks the
// connection.
func inPack(then func(*http.Request)) Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
				right.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			right.ServeHTTP(answer, r)
			for name, values := range answer.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(answer.Code)
			body := answer.Body.Bytes()
			pack := bytes.Index(body, []byte("PACK"))
			if pack < 0 { // it lists refs, or says there is nothing new
				_, _ = w.Write(body)
				return
			}
			_, _ = w.Write(body[:pack+(len(body)-pack)/2])
			_ = http.NewResponseController(w).Flush()
			then(r)
			panic(http.ErrAbortHandler)
		})
	}
}
