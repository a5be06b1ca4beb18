package gitserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
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

// Busy answers every request with an HTTP status, and when to come back, in the form
// of the header Retry-After.
func Busy(status int, retryAfter string) Behaviour {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "too much", status)
		})
	}
}

// Gzip answers rightly, compressed, to those who say that they understand it.
func Gzip() Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				right.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			right.ServeHTTP(answer, r)
			copyHeader(w, answer)
			w.Header().Del("Content-Length")
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(answer.Code)
			packed := gzip.NewWriter(w)
			_, _ = packed.Write(answer.Body.Bytes())
			_ = packed.Close()
		})
	}
}

// IgnoreFilter answers a partial fetch with everything, as a server does that
// promises filters and forgets them.
func IgnoreFilter() Behaviour {
	line := regexp.MustCompile("[0-9a-f]{4}filter [a-z0-9:]+\n")
	return rewrite(func(body []byte) []byte { return line.ReplaceAll(body, nil) })
}

// OnlyCommits refuses to hand out trees and files by their hashes, as servers do that
// let no one have what is not named.
func (s *Server) OnlyCommits() Behaviour {
	want := regexp.MustCompile("want ([0-9a-f]{40})")
	return refuse("not our ref", func(path string, body []byte) bool {
		dir := filepath.Join(s.dir, filepath.FromSlash(strings.TrimSuffix(path, "/git-upload-pack")))
		for _, match := range want.FindAllSubmatch(body, -1) {
			cmd := exec.Command("git", "cat-file", "-t", string(match[1]))
			cmd.Dir, cmd.Env = dir, s.environ()
			if kind, _ := cmd.Output(); string(kind) == "tree\n" || string(kind) == "blob\n" {
				return true
			}
		}
		return false
	})
}

// NoFilterLike refuses filters that a pattern matches, with an error.
func NoFilterLike(pattern string) Behaviour {
	filter := regexp.MustCompile("filter " + pattern)
	return refuse("filter not supported", func(_ string, body []byte) bool { return filter.Match(body) })
}

// refuse answers those requests to upload-pack that match with an error.
func refuse(reason string, match func(path string, body []byte) bool) Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // the log has it in memory
			if !match(r.URL.Path, body) {
				r.Body = io.NopCloser(bytes.NewReader(body))
				right.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			line := "ERR upload-pack: " + reason + "\n"
			_, _ = fmt.Fprintf(w, "%04x%s", len(line)+len("0000"), line)
		})
	}
}

// rewrite changes the bodies of requests.
func rewrite(change func(body []byte) []byte) Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // the log has it in memory
			body = change(body)
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			right.ServeHTTP(w, r)
		})
	}
}

// Instead answers whoever asks for objects with those of a commit, whatever they want.
func Instead(commit string) Behaviour {
	want := regexp.MustCompile("want [0-9a-f]{40}")
	return rewrite(func(body []byte) []byte { return want.ReplaceAll(body, []byte("want "+commit)) })
}

// Denying answers each request for objects with an error.
func Denying(reason string) Behaviour {
	want := regexp.MustCompile("want [0-9a-f]{40}")
	return refuse(reason, func(_ string, body []byte) bool { return want.Match(body) })
}

// Vanished lists refs, and denies what they name to whoever asks for it, as a server
// does when a branch was replaced in between.
func Vanished() Behaviour { return Denying("not our ref") }

func copyHeader(w http.ResponseWriter, from *httptest.ResponseRecorder) {
	for name, values := range from.Header() {
		w.Header()[name] = values
	}
}

// CorruptPack changes a bit in the middle of each pack.
func CorruptPack() Behaviour {
	return func(right http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			right.ServeHTTP(answer, r)
			copyHeader(w, answer)
			w.WriteHeader(answer.Code)
			body := answer.Body.Bytes()
			if pack := bytes.Index(body, []byte("PACK")); pack >= 0 {
				body[pack+(len(body)-pack)/2] ^= 0x10
			}
			_, _ = w.Write(body)
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
			copyHeader(w, answer)
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
