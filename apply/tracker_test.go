package apply

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// answers is a transport whose API server answers without being asked twice.
type answers func(*http.Request) (status int, body string)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	status, body := a(request)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// TestForbiddenAtOnce has what may not be seen refused as soon as it is asked for, often
// before the tracker has gone on to anything else: that view ends, and nothing else.
func TestForbiddenAtOnce(t *testing.T) {
	t.Parallel()
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	refusing, err := newClient(&rest.Config{Host: "http://api.invalid", QPS: -1}, &http.Client{
		Transport: answers(func(*http.Request) (int, string) { return http.StatusForbidden, forbidden }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &sight{ctx: ctx, own: refusing, limited: refusing, log: zerolog.Nop(), blind: map[string]Blind{}}
	secrets := schema.GroupKind{Kind: "Secret"}
	k := &kinds{
		served: map[schema.GroupVersionKind]servedKind{
			secrets.WithVersion("v1"): {GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespaced: true},
		},
		preferred: map[schema.GroupKind]schema.GroupVersionKind{secrets: secrets.WithVersion("v1")},
	}
	tracked := newTracker(s, nil, func(ID, metav1.Object) {})
	tracked.use(&Set{}, k, map[schema.GroupKind]bool{secrets: true})
	for range 500 {
		if err := tracked.view(secrets, "shop", true).Await(ctx, time.Minute, apierrors.IsForbidden); !apierrors.IsForbidden(err) {
			t.Fatalf("got %v", err)
		}
	}
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("what was forbidden is still being asked for")
	}
	cancel()
}
