package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/test/lab/lines"
)

// receiver is a server that takes notifications.
type receiver struct {
	*httptest.Server
	status chan int // the next answers; 200 if empty

	mu       stdsync.Mutex // guards what follows
	requests []request
}

type request struct {
	path, contentType, agent string
	body                     []byte
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: make(chan int, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		body, err := io.ReadAll(got.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, request{got.URL.String(), got.Header.Get("Content-Type"), got.UserAgent(), body})
		select {
		case status := <-r.status:
			w.Header().Set("Location", "https://elsewhere.example/")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		default:
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// got returns the requests so far.
func (r *receiver) got() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// address makes an address as a user gives it.
func address(t *testing.T, text string) Address {
	t.Helper()
	parsed, err := ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// notifier returns a notifier that runs until the test ends, and its log.
func notifier(t *testing.T, waits *pauses, addresses ...Address) (*Notifier, *lines.Log) {
	t.Helper()
	log := &lines.Log{}
	n := New(Options{
		Addresses: addresses, Source: "/kubesync/kube-system/kubesync-site", UserAgent: "kubesync/test",
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter22", "***") },
		Log:    zerolog.New(log), sleep: waits.wait,
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return n, log
}

// pauses are the waits between two tries.
type pauses struct {
	mu  stdsync.Mutex
	all []time.Duration
}

func (p *pauses) wait(ctx context.Context, d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, d)
	return ctx.Err() == nil
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// report makes a report of a revision.
func report(revision string, failures int, err error, outcomes ...apply.Outcome) sync.Report {
	return sync.Report{
		Repo: "site", URL: "https://git.example.com/site", Err: err, FailedStage: sync.Resolving, Failures: failures,
		Revision: repo.Revision{ID: revision, Ref: "refs/heads/main", Subject: "Next & <last>", Author: "Jane <jane@example.com>"},
		Result:   apply.Result{Outcomes: outcomes},
		Finished: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// kinds returns in short what was received.
func kinds(t *testing.T, r *receiver) string {
	t.Helper()
	var all []string
	for _, got := range r.got() {
		var event Event
		if err := json.Unmarshal(got.body, &event); err != nil {
			t.Fatal(err)
		}
		kind := string(event.Type)
		all = append(all, kind[strings.LastIndex(kind, ".")+1:]+" "+event.Data.Revision)
	}
	return strings.Join(all, ", ")
}

func TestTransitions(t *testing.T) {
	created := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, Action: apply.Created}
	same := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, Action: apply.Unchanged}
	failed := errors.New("no route to host")
	held := func(revision, approve string) sync.Report {
		r := report(revision, 0, nil, same)
		r.Result.PruneHeld, r.Result.Approve = "12 objects would go", approve
		return r
	}
	interrupted := report("a1", 3, context.Canceled)
	interrupted.Interrupted = true
	for name, test := range map[string]struct {
		reports []sync.Report
		want    string
	}{
		"a first sync that changes something": {[]sync.Report{report("a1", 0, nil, created)}, "synced a1"},
		"one that changes nothing":            {[]sync.Report{report("a1", 0, nil, same), report("a1", 0, nil, same)}, ""},
		"a new revision":                      {[]sync.Report{report("a1", 0, nil, same), report("b2", 0, nil, same), report("b2", 0, nil, same)}, "synced b2"},
		"drift corrected at an interval":      {[]sync.Report{report("a1", 0, nil, same), report("a1", 0, nil, created)}, ""},
		"a hiccup":                            {[]sync.Report{report("a1", 0, nil, same), report("", 1, failed), report("a1", 0, nil, same)}, ""},
		"a failure": {[]sync.Report{report("a1", 0, nil, same), report("", 1, failed), report("", 2, failed), report("", 3, failed),
			report("a1", 0, nil, same), report("a1", 0, nil, same)}, "failing , recovered a1"},
		"a failure that a revision mends": {[]sync.Report{report("a1", 1, failed), report("a1", 2, failed), report("b2", 0, nil, created)}, "failing a1, recovered b2, synced b2"},
		"interrupted":                     {[]sync.Report{report("a1", 0, nil, same), interrupted, report("a1", 0, nil, same)}, ""},
		"a held prune":                    {[]sync.Report{held("a1", "approve a1"), held("a1", "approve a1"), held("b2", "approve b2"), report("b2", 0, nil, same), held("b2", "approve b2")}, "held a1, synced b2, held b2, held b2"},
		"a held prune and a hiccup":       {[]sync.Report{held("a1", "approve a1"), report("", 1, failed), held("a1", "approve a1")}, "held a1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			var waits pauses
			n, _ := notifier(t, &waits, address(t, r.URL))
			for _, report := range test.reports {
				n.Observe(report)
			}
			n.send("io.kubesync.test.end", time.Now(), Data{})
			eventually(t, "all is sent", func() bool { return strings.HasSuffix(kinds(t, r), "end ") })
			if got := strings.TrimSuffix(strings.TrimSuffix(kinds(t, r), "end "), ", "); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestConflictsAreReportedOnce(t *testing.T) {
	r := receive(t)
	var waits pauses
	n, _ := notifier(t, &waits, address(t, r.URL))
	conflict := apply.Drift{Repo: "site", ID: manifest.ID{Kind: "Deployment", Namespace: "web", Name: "site"}, What: "changed", Fields: []string{".spec.replicas"}, Managers: []string{"scaler"}, Conflict: true}
	calm := conflict
	calm.Conflict = false
	for _, drift := range []apply.Drift{calm, conflict, conflict, calm, conflict} {
		n.Drift(drift)
	}
	n.about("site").conflicts[conflict.ID] = time.Now().Add(-conflictAgain)
	n.Drift(conflict)
	n.Unlist("site")
	n.Drift(conflict)
	eventually(t, "three are sent", func() bool { return len(r.got()) == 3 })
	var event Event
	if err := json.Unmarshal(r.got()[0].body, &event); err != nil {
		t.Fatal(err)
	}
	if event.Type != Conflict || event.Data.Object != conflict.ID.String() || event.Data.Message != "changed: .spec.replicas by scaler" {
		t.Errorf("got %+v", event)
	}
}

func TestWhatIsSent(t *testing.T) {
	plain, slack := receive(t), receive(t)
	var waits pauses
	n, _ := notifier(t, &waits, address(t, plain.URL+"/hook?token=tok"), address(t, "slack+"+slack.URL+"/services/x"))
	broken := report("abcdef0123456789", 2, errors.New("bad <password> & hunter22"))
	n.Observe(broken)
	eventually(t, "both are sent", func() bool { return len(plain.got()) == 1 && len(slack.got()) == 1 })

	got := plain.got()[0]
	if got.path != "/hook?token=tok" || got.contentType != "application/cloudevents+json" || got.agent != "kubesync/test" {
		t.Errorf("got %+v", got)
	}
	var event map[string]any
	if err := json.Unmarshal(got.body, &event); err != nil {
		t.Fatal(err)
	}
	for attribute, want := range map[string]any{
		"specversion": "1.0", "type": "io.kubesync.repo.failing", "source": "/kubesync/kube-system/kubesync-site", "subject": "site",
		"time": "2026-01-02T03:04:05Z", "datacontenttype": "application/json",
	} {
		if event[attribute] != want {
			t.Errorf("%s is %v, want %v", attribute, event[attribute], want)
		}
	}
	data, _ := event["data"].(map[string]any)
	if data["message"] != "site: resolve abcdef0: bad <password> & ***" || data["revision"] != "abcdef0123456789" || data["failures"] != 2.0 || event["id"] == "" {
		t.Errorf("data is %v", event)
	}

	got = slack.got()[0]
	var message map[string]string
	if err := json.Unmarshal(got.body, &message); err != nil {
		t.Fatal(err)
	}
	want := ":red_circle: *site* fails\n`abcdef0` Next &amp; &lt;last&gt;\nsite: resolve abcdef0: bad &lt;password&gt; &amp; ***"
	if got.path != "/services/x" || got.contentType != "application/json" || message["text"] != want {
		t.Errorf("got %+v, text\n%s", got, message["text"])
	}
}

func TestTriesAgain(t *testing.T) {
	busy, gone, moved := receive(t), receive(t), receive(t)
	down := receive(t)
	down.Close()
	var waits, others pauses
	n, log := notifier(t, &waits, address(t, busy.URL))
	for _, status := range []int{500, 429, 503, 408} {
		busy.status <- status
	}
	n.Observe(report("a1", 2, errors.New("broken")))
	n.Observe(report("a1", 0, nil))
	eventually(t, "it arrives", func() bool {
		return kinds(t, busy) == strings.Repeat("failing a1, ", 5)+"recovered a1" || len(busy.got()) > 6
	})
	if !bytes.Equal(busy.got()[0].body, busy.got()[4].body) {
		t.Error("another event is sent when it is tried again")
	}
	waits.mu.Lock()
	defer waits.mu.Unlock()
	for i, want := range []time.Duration{7 * time.Second, 7 * time.Second, 8 * time.Second, 16 * time.Second} { // 7 s is what it asks for
		if waits.all[i] != want {
			t.Errorf("wait %d is %s, want %s", i, waits.all[i], want)
		}
	}
	if logged := strings.Count(log.String(), "retrying"); logged != 1 {
		t.Errorf("logged %d times:\n%s", logged, log)
	}

	n, log = notifier(t, &others, address(t, gone.URL+"/hunter22"), address(t, moved.URL), address(t, down.URL+"/hunter22"))
	gone.status <- http.StatusNotFound
	moved.status <- http.StatusFound
	n.Observe(report("a1", 2, errors.New("broken")))
	eventually(t, "all are lost", func() bool { return strings.Count(log.String(), "notification dropped") == 3 })
	for _, want := range []string{"404 Not Found", "redirects are not followed", "connection refused (tried 8 times)", `"notify":"` + gone.URL + `"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not logged:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "hunter22") {
		t.Errorf("an address is logged:\n%s", log)
	}
	if len(gone.got()) != 1 || len(moved.got()) != 1 {
		t.Error("what is final is tried again")
	}
}

// A server that never answers keeps no one waiting.
func TestNothingWaits(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer slow.Close()
	defer close(release)
	var waits pauses
	n, log := notifier(t, &waits, address(t, slow.URL))
	for i := range 2 * longestQueue {
		n.Observe(report(string(rune('a'+i)), 0, nil, apply.Outcome{Action: apply.Created}))
	}
	if lost := strings.Count(log.String(), "the queue is full"); lost < longestQueue-1 {
		t.Errorf("%d are lost", lost)
	}
}
