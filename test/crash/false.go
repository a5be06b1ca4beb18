package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	testlab "github.com/kubesync/kubesync/test/lab"
)

// The answer is false.
const (
	retry429  fate = "429-retry" // with Retry-After
	stall     fate = "stall"     // right, but half a minute late
	reset     fate = "reset"     // the connection breaks in the middle of it
	truncated fate = "truncated" // it ends in the middle, in good order
	other     fate = "other"     // it is one about another object
)

// stallTime is how late an answer is that stalls.
const stallTime = 30 * time.Second

// falseAnswers are the ways to be answered wrongly: HTTP statuses, and the above.
func falseAnswers() []fate {
	return []fate{"401", "403", "404", "409", "410", "422", "429", retry429, "500", "503", stall, reset, truncated, other}
}

// fits reports whether a request can be answered so: what a watch sends has no middle and
// no end, and what is no answer about one object is about no other.
func (f fate) fits(request string) bool {
	watch := strings.Contains(request, "watch=true")
	switch f {
	case truncated:
		return !watch
	case other:
		return !watch && (strings.HasPrefix(request, "git ") || aboutOne(strings.Fields(request)[2]))
	}
	return true
}

// aboutOne reports whether the path of an API request names one object.
func aboutOne(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		return len(parts[2:])%2 == 0
	case len(parts) > 3 && parts[0] == "apis":
		return len(parts[3:])%2 == 0
	}
	return false
}

// status is the HTTP status of a false answer that is one, else 0.
func (f fate) status() int {
	code, err := strconv.Atoi(strings.TrimSuffix(string(f), "-retry"))
	if err != nil {
		return 0
	}
	return code
}

// falsify returns what a point's request is answered.
func (t *tap) falsify(p point) fault {
	switch {
	case p.fate.status() != 0:
		return refuse(p)
	case p.fate == stall:
		return stallFor(stallTime)
	case p.fate == other:
		return t.another
	}
	return cut(p.fate)
}

// refuse answers with an error. Every other request is carried out all the same.
func refuse(p point) fault {
	hash := fnv.New32()
	_, _ = io.WriteString(hash, p.request)
	carriedOut := hash.Sum32()%2 == 1
	return func(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error) {
		if carriedOut {
			response, err := ask()
			if err != nil {
				return nil, err
			}
			_ = response.Body.Close() // a watch has no end to be read to
		}
		code := p.fate.status()
		body, kind := []byte("the proxy answers so\n"), "text/plain"
		if strings.HasPrefix(r.URL.Path, "/api") {
			var err error
			if body, err = statusObject(code, r.URL.Path); err != nil {
				return nil, err
			}
			kind = "application/json"
		}
		answer := &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}
		if p.fate == retry429 {
			answer.Header.Set("Retry-After", "1")
		}
		return answer, nil
	}
}

// statusObject is an error as the API server words it: one about an object names it.
func statusObject(code int, path string) ([]byte, error) {
	var details *metav1.StatusDetails
	if aboutOne(path) {
		details = &metav1.StatusDetails{Name: path[strings.LastIndex(path, "/")+1:]}
	}
	reasons := map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
		409: metav1.StatusReasonConflict, 410: metav1.StatusReasonExpired, 422: metav1.StatusReasonInvalid,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	}
	return json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reasons[code], Code: int32(code), Details: details, Message: fmt.Sprintf("the proxy answers %d", code),
	})
}

// stallFor asks, and keeps the answer back for a time.
func stallFor(late time.Duration) fault {
	return func(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error) {
		response, err := ask()
		if err != nil {
			return nil, err
		}
		if err := testlab.Sleep(r.Context(), late); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
		return response, nil
	}
}

// cut gives half of the answer. What a watch would send is cut before it comes.
func cut(how fate) fault {
	return func(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error) {
		response, err := ask()
		if err != nil {
			return nil, err
		}
		var body []byte
		if r.URL.Query().Get("watch") == "" {
			body, err = io.ReadAll(response.Body)
		}
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		half := io.Reader(bytes.NewReader(body[:len(body)/2]))
		if how == reset {
			response.Body = io.NopCloser(io.MultiReader(half, broken{}))
			return response, nil // with the length of the whole
		}
		response.Body, response.ContentLength = io.NopCloser(half), int64(len(body)/2)
		response.Header.Del("Content-Length")
		return response, nil
	}
}

// broken is where a connection breaks.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, errors.New("cut here") }

// answerKey is what answers have in common that can be taken for one another.
func answerKey(r *http.Request) string {
	return r.Method + " " + r.Header.Get("Accept") + " " + r.URL.Query().Get("service")
}

// keepAnswer remembers a good answer about one object, to be given for another.
func (t *tap) keepAnswer(r *http.Request, response *http.Response) (*http.Response, error) {
	git := !strings.HasPrefix(r.URL.Path, "/api")
	if response.StatusCode >= http.StatusMultipleChoices || r.URL.Query().Get("watch") != "" || !git && !aboutOne(r.URL.Path) {
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers = append(t.answers, answer{key: answerKey(r), path: r.URL.Path, header: response.Header.Clone(), status: response.StatusCode, body: body})
	return response, nil
}

// answer is one that was given.
type answer struct {
	key, path string
	header    http.Header
	status    int
	body      []byte
}

// another answers with what was said of another object; if there is none yet that
// could be taken for it, rightly.
func (t *tap) another(r *http.Request, ask func() (*http.Response, error)) (*http.Response, error) {
	response, err := ask()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.answers) - 1; i >= 0; i-- {
		a := t.answers[i]
		if a.key != answerKey(r) || a.path == r.URL.Path {
			continue
		}
		_ = response.Body.Close()
		response.Header, response.StatusCode, response.Status = a.header.Clone(), a.status, http.StatusText(a.status)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(a.body)), int64(len(a.body))
		response.Header.Del("Content-Length")
		return response, nil
	}
	return response, nil
}
