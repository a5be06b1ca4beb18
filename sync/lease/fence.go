package lease

import (
	"fmt"
	"net/http"
	"time"
)

// Fence returns a transport that lets a write through only while the lease is
// known to be held. Contexts end when the lease is lost; the fence also stops
// what no context reaches in time, such as a process that was frozen and wakes
// up after another took over. It fits rest.Config.Wrap.
func (l *Lease) Fence(next http.RoundTripper) http.RoundTripper {
	return fence{lease: l, next: next}
}

type fence struct {
	lease *Lease
	next  http.RoundTripper
}

// RoundTrip refuses writes without the lease.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		if !f.lease.mayWrite() {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper must, even on errors
			}
			return nil, fmt.Errorf("%s not sent: this process does not hold %s", request.Method, f.lease)
		}
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }

func (l *Lease) mayWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading && time.Now().Before(l.validUntil)
}
