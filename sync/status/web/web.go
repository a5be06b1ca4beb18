package web

import (
	"net/http"

	"github.com/kubesync/kubesync/sync/status"
)

// Board is what is shown.
type Board interface {
	Overview() status.Overview
	Repo(name string) (status.Detail, bool)
	Objects(name string, filter status.Filter) ([]status.Object, bool)
	Subscribe() (events <-chan status.Event, stop func(), ok bool)
	Freshness() *status.Stale
}

// policy is the content security policy of the pages.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// server answers requests.
type server struct {
	board Board
}

// New returns what serves the pages and the API.
func New(board Board) http.Handler {
	s := &server{board: board}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.overviewPage)
	mux.HandleFunc("GET /repos/{name}", s.repoPage)
	mux.HandleFunc("GET /api/v1/repos", s.overview)
	mux.HandleFunc("GET /api/v1/repos/{name}", s.repo)
	mux.HandleFunc("GET /api/v1/repos/{name}/objects", s.objects)
	mux.HandleFunc("GET /api/v1/events", s.events)
	mux.HandleFunc("/api/", apiNotFound)
	for name, asset := range loadAssets() {
		mux.Handle("GET /assets/"+name, asset)
	}
	return guarded(mux)
}

// guarded sets the headers that keep browsers to what the pages need.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache") // ask whether it is still so
		next.ServeHTTP(w, r)
	})
}
