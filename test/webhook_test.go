package test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admission is an admission webhook: it allows everything, denies everything, or never
// answers.
type admission struct {
	server *httptest.Server

	mu      sync.Mutex     // guards what follows
	denial  *metav1.Status // nil to allow
	hanging chan struct{}  // closed when it hangs no more; nil if it does not
	asked   int
}

// ServeHTTP implements http.Handler.
func (a *admission) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	denial, hanging := a.denial, a.hanging
	a.asked++
	a.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-r.Context().Done():
			return
		}
	}
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(answer, "want an AdmissionReview", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: denial == nil, Result: denial}
	review.Request = nil
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(review) // a client that has gone away needs no answer
}

// be changes how the webhook behaves.
func (a *admission) be(denial *metav1.Status, hanging bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hanging != nil {
		close(a.hanging)
		a.hanging = nil
	}
	if a.denial = denial; hanging {
		a.hanging = make(chan struct{})
	}
}

func (a *admission) close() {
	a.be(nil, false)
	a.server.CloseClientConnections()
	a.server.Close()
}

// webhook starts admission webhooks and says how they behave.
func (s *scenario) webhook(args []string) error {
	usage := errors.New("want webhook start [NAME], webhook allow|hang [NAME] or webhook deny CODE MESSAGE [NAME]")
	if len(args) == 0 {
		return usage
	}
	verb, args := args[0], args[1:]
	var denial *metav1.Status
	if verb == "deny" {
		if len(args) < 2 {
			return usage
		}
		code, err := strconv.ParseInt(args[0], 10, 32)
		if err != nil {
			return err
		}
		denial = &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: args[1]}
		args = args[2:]
	}
	name, err := nameOr(args, "webhook")
	if err != nil {
		return err
	}
	if verb == "start" {
		return s.startWebhook(name)
	}
	a := s.webhooks[name]
	switch {
	case a == nil:
		return fmt.Errorf("there is no webhook %q", name)
	case verb == "allow", verb == "hang", verb == "deny":
		a.be(denial, verb == "hang")
		return nil
	}
	return usage
}

func (s *scenario) startWebhook(name string) error {
	a := &admission{}
	a.server = httptest.NewUnstartedServer(a)
	s.webhooks[name] = a
	if err := s.startHTTPS(name, a.server); err != nil {
		return err
	}
	certificate, err := os.ReadFile(s.ts.Getenv(name + "_ca"))
	if err != nil {
		return fmt.Errorf("CA of %s: %w", name, err)
	}
	s.set(name+"_bundle", base64.StdEncoding.EncodeToString(certificate))
	return nil
}
