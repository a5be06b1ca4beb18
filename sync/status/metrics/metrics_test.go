package metrics_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/health"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/test/golden"
)

// The program's metrics are a repo's meter.
var _ repo.Meter = metrics.Git{}

// lab is a board and metrics that observe the same.
type lab struct {
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	board    *status.Board
	sync.Observers
}

// blind is a cluster of which nothing has been seen since a time.
type blind struct{ since time.Time }

func (b blind) Blind() []inventory.Blind {
	if b.since.IsZero() {
		return nil
	}
	return []inventory.Blind{{What: "configmaps", Since: b.since, Err: errors.New("gone")}}
}

func (blind) Unlisted() []apply.Unlisted { return []apply.Unlisted{{Repo: "left"}} }

// patient is the health of all objects.
type patient map[manifest.ID]health.Health

func (p patient) Health(string) map[manifest.ID]health.Health { return p }

func newLab(options status.Options) lab {
	l := lab{registry: prometheus.NewRegistry(), board: status.NewBoard(options)}
	l.metrics = metrics.New(l.registry, "v1.2.3")
	l.registry.MustRegister(metrics.NewState(l.board))
	l.Observers = sync.Observers{l.board, l.metrics}
	l.board.Lead(true)
	return l
}

// gather returns what Prometheus would read.
func (l lab) gather(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(metrics.Handler(l.registry, zerolog.Nop()))
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", response.StatusCode, err, text)
	}
	return string(text)
}

// story has all happen that can.
func (l lab) story(start time.Time) {
	id := func(kind, name string) manifest.ID { return manifest.ID{Kind: kind, Namespace: "shop", Name: name} }
	l.board.List([]status.Listed{{Name: "site", Tier: manifest.System}, {Name: "waits", Tier: manifest.Application}}, nil)
	revision := repo.Revision{ID: "0123456789012345678901234567890123456789", Ref: "refs/heads/main", Subject: "Subject"}
	l.Begin(sync.Progress{Repo: "site", Stage: sync.Resolving, Began: start})
	report := sync.Report{
		Repo: "site", Tier: manifest.System, Revision: revision, Started: start, Finished: start.Add(time.Second), Next: start.Add(time.Minute),
		Stages: []sync.StageTime{{Stage: sync.Resolving, Duration: 3 * time.Millisecond}, {Stage: sync.Applying, Duration: 700 * time.Millisecond}},
		Result: apply.Result{
			Outcomes: []apply.Outcome{
				{ID: id("ConfigMap", "a"), Origin: manifest.Origin{File: "a.yaml", Line: 1}, Action: apply.Created},
				{ID: id("Secret", "b"), Origin: manifest.Origin{File: "b.yaml", Line: 1}, Action: apply.Unchanged},
				{ID: id("ConfigMap", "c"), Action: apply.Pruned},
				{ID: id("ConfigMap", "d"), Action: apply.Blocked, Reason: "waits for approval"},
			},
			PruneHeld: "canary: 3 objects",
		},
	}
	l.Observe(report)
	report.Started, report.Finished = start.Add(time.Minute), start.Add(61*time.Second)
	l.Observe(report)
	l.Observe(sync.Report{Repo: "waits", Tier: manifest.Application, FailedStage: sync.Resolving, Err: errors.New("no such host"), Failures: 3, Started: start, Finished: start.Add(time.Second)})
	l.Drift(apply.Drift{Repo: "site", ID: id("ConfigMap", "a"), What: "changed", Corrected: true})
	l.Drift(apply.Drift{Repo: "site", ID: id("ConfigMap", "a"), What: "changed", Corrected: true, Conflict: true})
	l.Drift(apply.Drift{Repo: "site", ID: id("Secret", "b"), What: "deleted", Err: errors.New("forbidden")})
	l.Drift(apply.Drift{Repo: "site", ID: manifest.ID{Group: "apps", Kind: "Deployment", Name: "d"}, What: "changed"})
	git := l.metrics.Git("site")
	git.Request(http.StatusOK, nil)
	git.Request(0, nil)
	git.Request(0, errors.New("refused"))
	git.Received(1000)
	git.Sent(100)
}

// What is exposed, with the values that differ from run to run made equal, and what the
// conventions have against it.
func TestExposition(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	l := newLab(status.Options{
		Cluster: blind{since: time.Now().Add(-time.Hour)},
		Health: patient{
			{Kind: "ConfigMap", Namespace: "shop", Name: "a"}: {State: health.Current},
			{Kind: "Secret", Namespace: "shop", Name: "b"}:    {State: health.InProgress},
		},
	})
	l.story(start)
	answers := []answer{{http.StatusOK, nil}, {http.StatusConflict, nil}, {0, errors.New("refused")}}
	for _, a := range answers {
		_, _ = l.metrics.APIRequests(a).RoundTrip(httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/shop/configmaps/a", nil))
	}
	text := l.gather(t)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("promlint: %s: %s", problem.Metric, problem.Text)
	}
	for _, secret := range []string{"shop", "no such host", "forbidden", "canary", "Subject"} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics have %q", secret)
		}
	}
	if staleness := regexp.MustCompile(`watch_staleness_seconds 36\d\d`); !staleness.MatchString(text) {
		t.Error("the staleness is not that of an hour")
	}
	golden.Check(t, "testdata/metrics.txt", normalised(text))
}

// normalised replaces what time and toolchain make of values.
func normalised(text string) string {
	text = regexp.MustCompile(`goversion="[^"]*"`).ReplaceAllString(text, `goversion="GO"`)
	text = regexp.MustCompile(`(?m)^(kubesync_watch_staleness_seconds|kubesync_api_request_duration_seconds_sum\{.*\}) .*$`).ReplaceAllString(text, "$1 N")
	return text
}

// answer is a server that gives one.
type answer struct {
	status int
	err    error
}

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: http.NoBody}, nil
}

// A repo that left the list leaves no series.
func TestUnlist(t *testing.T) {
	t.Parallel()
	l := newLab(status.Options{})
	l.story(time.Now())
	if text := l.gather(t); !strings.Contains(text, `repo="site"`) {
		t.Fatalf("there is nothing of the repo:\n%s", text)
	}
	l.board.List([]status.Listed{{Name: "waits"}}, nil)
	l.Unlist("site")
	if text := l.gather(t); strings.Contains(text, `repo="site"`) || !strings.Contains(text, `repo="waits"`) {
		t.Errorf("after the repo has left:\n%s", text)
	}
}

// A standby exposes that it is one, and no repo's state.
func TestStandby(t *testing.T) {
	t.Parallel()
	l := newLab(status.Options{})
	l.story(time.Now())
	l.board.Lead(false)
	text := l.gather(t)
	if !strings.Contains(text, "kubesync_leading 0") || strings.Contains(text, "kubesync_repo_info") || strings.Contains(text, "kubesync_last_success") {
		t.Errorf("a standby exposes:\n%s", text)
	}
}

// A prune that waits counts once a revision.
func TestPruneHeldOnce(t *testing.T) {
	t.Parallel()
	l := newLab(status.Options{})
	for _, id := range []string{"a", "a", "b", "b"} {
		l.Observe(sync.Report{Repo: "site", Revision: repo.Revision{ID: id}, Result: apply.Result{PruneHeld: "waits"}})
	}
	want := "# HELP kubesync_prunes_held_total Revisions whose prune was refused until a person approves it.\n" +
		"# TYPE kubesync_prunes_held_total counter\nkubesync_prunes_held_total{repo=\"site\"} 2\n"
	if err := testutil.GatherAndCompare(l.registry, bytes.NewBufferString(want), "kubesync_prunes_held_total"); err != nil {
		t.Error(err)
	}
}

// Verbs are those of the API server's audit log.
func TestVerbs(t *testing.T) {
	t.Parallel()
	for request, verb := range map[string]string{
		"GET /api/v1/namespaces":                       "list",
		"GET /api/v1/namespaces/shop":                  "get",
		"GET /api/v1/namespaces/shop/pods":             "list",
		"GET /api/v1/namespaces/apis/pods/api":         "get",
		"GET /apis/apps/v1/deployments?limit=500":      "list",
		"GET /apis/apps/v1/deployments?watch=true":     "watch",
		"GET /apis/apps/v1/namespaces/a/deployments/b": "get",
		"GET /behind/a/proxy/apis/apps/v1/deployments": "list",
		"GET /apis":                                  "get",
		"GET /apis/apps/v1":                          "get",
		"GET /version":                               "get",
		"POST /api/v1/namespaces":                    "create",
		"PUT /api/v1/namespaces/a":                   "update",
		"PATCH /api/v1/namespaces/a?fieldManager=me": "patch",
		"PATCH /api/v1/namespaces/a?dryRun=All":      "dryrun-patch",
		"DELETE /api/v1/namespaces/a":                "delete",
		"PROPFIND /api/v1/namespaces/a":              "other",
	} {
		l := newLab(status.Options{})
		method, target, _ := strings.Cut(request, " ")
		response, err := l.metrics.APIRequests(answer{299, nil}).RoundTrip(httptest.NewRequest(method, target, nil))
		if err != nil || response.StatusCode != 299 {
			t.Fatal(response, err)
		}
		if want := `kubesync_api_requests_total{code="299",verb="` + verb + `"} 1`; !strings.Contains(l.gather(t), want) {
			t.Errorf("%s: there is no %s", request, want)
		}
	}
}

// The runtime's and the process's metrics are exposed too.
func TestRegistry(t *testing.T) {
	t.Parallel()
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, family := range families {
		found[family.GetName()] = true
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if !found[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
