package server

import (
	"net/http"
	"net/http/pprof"
)

// Routes are the handlers that are served. What is nil is not there.
type Routes struct {
	Status  http.Handler // the page at / and the API at /api/; GET and HEAD only
	Metrics http.Handler // GET /metrics
	Health  http.Handler // GET /healthz
	Ready   http.Handler // GET /readyz
	Webhook http.Handler // POST /webhook; limits the bodies itself
}

// probes returns what PROBE_LISTEN serves. Metrics are guarded where they are not
// meant for other machines.
func (r Routes) probes(guard func(http.Handler) http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	route := func(pattern string, handler http.Handler) {
		if handler != nil {
			mux.Handle(pattern, handler)
		}
	}
	read := func(handler http.Handler) http.Handler {
		if handler == nil {
			return nil
		}
		return readOnly(handler)
	}
	route("/healthz", read(r.Health))
	route("/readyz", read(r.Ready))
	if r.Metrics != nil {
		route("/metrics", guard(read(r.Metrics)))
	}
	route("POST /webhook", r.Webhook)
	return mux
}

// all returns what LISTEN serves: guarded is asked for the token besides.
func (r Routes) all(debug bool, local, token func(http.Handler) http.Handler) *http.ServeMux {
	mux := r.probes(local)
	guarded := func(handler http.Handler) http.Handler { return local(token(readOnly(handler))) }
	if r.Status != nil {
		mux.Handle("/", guarded(r.Status))
	}
	if debug {
		mux.Handle("/debug/pprof/", guarded(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/profile", guarded(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/symbol", guarded(http.HandlerFunc(pprof.Symbol)))
		mux.Handle("/debug/pprof/trace", guarded(http.HandlerFunc(pprof.Trace)))
	}
	return mux
}
