package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/inventory"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/web"
	"github.com/kubesync/kubesync/test/golden"
)

// get asks a handler for a path.
func get(t *testing.T, from http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer := httptest.NewRecorder()
	from.ServeHTTP(answer, request)
	return answer
}

// The golden files are the API's contract: a field that is there stays.
func TestAPI(t *testing.T) {
	t.Parallel()
	paths := map[string]string{
		"repos.json":    "/api/v1/repos",
		"repo.json":     "/api/v1/repos/cluster",
		"problems.json": "/api/v1/repos/billing",
		"history.json":  "/api/v1/repos/shop",
		"objects.json":  "/api/v1/repos/cluster/objects",
		"filtered.json": "/api/v1/repos/cluster/objects?state=conflict&kind=configmap&text=autoscaler",
		"missing.json":  "/api/v1/repos/nowhere",
		"slip.json":     "/api/v1/repos/cluster/objects?state=sinked",
		"slip2.json":    "/api/v1/repos/cluster/objects?stat=synced",
		"unknown.json":  "/api/v2/repos",
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // whose clock always says the same
				board, _ := example()
				answer := get(t, web.New(board), path)
				if kind := answer.Header().Get("Content-Type"); kind != "application/json" {
					t.Errorf("Content-Type %q", kind)
				}
				var indented bytes.Buffer
				if err := json.Indent(&indented, answer.Body.Bytes(), "", "  "); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, filepath.Join("testdata", name), fmt.Sprintf("%d\n%s", answer.Code, indented.String()))
			})
		})
	}
}

func TestWhatHasNotChangedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	board, _ := example()
	handler := web.New(board)
	for _, path := range []string{"/api/v1/repos", "/api/v1/repos/shop", "/api/v1/repos/shop/objects", "/assets/style.css"} {
		first := get(t, handler, path)
		tag := first.Header().Get("ETag")
		if again := get(t, handler, path, "If-None-Match", tag); tag == "" || again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s: ETag %q, then status %d with %d bytes", path, tag, again.Code, again.Body.Len())
		}
	}
	tag := get(t, handler, "/api/v1/repos").Header().Get("ETag")
	board.Observe(report("search", manifest.Application, 0, revision(7, "Search"), outcome(apply.Created, "ConfigMap", "a", "")))
	if now := get(t, handler, "/api/v1/repos", "If-None-Match", tag); now.Code != http.StatusOK {
		t.Errorf("what has changed is answered with status %d", now.Code)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	t.Parallel()
	board, _ := example()
	handler := web.New(board)
	for _, path := range []string{"/", "/repos/shop", "/api/v1/repos", "/api/v1/repos/shop", "/api/v1/repos/shop/objects", "/api/v1/events", "/assets/live.js"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			if answer.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, answer.Code)
			}
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodHead, path, nil))
		if answer.Code != http.StatusOK {
			t.Errorf("HEAD %s: status %d", path, answer.Code)
		}
	}
	for _, path := range []string{"/assets/", "/assets", "/templates/repo.html", "/repos/", "/repos/../etc"} {
		if answer := get(t, handler, path); answer.Code == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
}

// elements returns all elements of a page with a name; all of them for "".
func elements(t *testing.T, page string, name string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var found []*html.Node
	for node := range root.Descendants() {
		if node.Type == html.ElementNode && (name == "" || node.Data == name) {
			found = append(found, node)
		}
	}
	return found
}

// attribute returns an element's attribute.
func attribute(node *html.Node, name string) (string, bool) {
	at := slices.IndexFunc(node.Attr, func(a html.Attribute) bool { return a.Key == name })
	if at < 0 {
		return "", false
	}
	return node.Attr[at].Val, true
}

// textOf returns the text of a page with single spaces.
func textOf(t *testing.T, page string) string {
	t.Helper()
	var text strings.Builder
	for _, body := range elements(t, page, "body") {
		for node := range body.Descendants() {
			if node.Type == html.TextNode {
				text.WriteString(node.Data)
			}
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

func TestPagesKeepToTheirPolicy(t *testing.T) {
	t.Parallel()
	board, _ := example()
	handler := web.New(board)
	for _, path := range []string{"/", "/repos/cluster", "/repos/shop", "/repos/billing", "/repos/search", "/repos/nowhere"} {
		answer := get(t, handler, path)
		if policy := answer.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		ids := map[string]bool{}
		for _, element := range elements(t, answer.Body.String(), "") {
			for _, a := range element.Attr {
				switch {
				case a.Key == "style", strings.HasPrefix(a.Key, "on"):
					t.Errorf("%s: <%s> has %s=%q", path, element.Data, a.Key, a.Val)
				case (a.Key == "src" || a.Key == "href") && strings.Contains(a.Val, ":"):
					t.Errorf("%s: refers to %s", path, a.Val)
				case a.Key == "id" && ids[a.Val]:
					t.Errorf("%s: two elements are called %s", path, a.Val)
				case a.Key == "id":
					ids[a.Val] = true
				}
			}
			if _, live := attribute(element, "data-live"); live {
				if id, _ := attribute(element, "id"); id == "" {
					t.Errorf("%s: a live part has no id", path)
				}
			}
			_, linked := attribute(element, "src")
			if element.Data == "style" || element.Data == "script" && !linked {
				t.Errorf("%s: an inline %s", path, element.Data)
			}
		}
	}
}

// hostile is a text that would leave its place on a page that does not escape it.
const hostile = `javascript:alert(1)"'><script src=x></script><img onerror=alert(1) style=x>`

// hostileBoard answers with values all of whose texts are hostile.
type hostileBoard struct{ web.Board }

func (hostileBoard) Overview() (o status.Overview)         { return *fill(&o) }
func (hostileBoard) Repo(string) (d status.Detail, _ bool) { return *fill(&d), true }
func (hostileBoard) Objects(string, status.Filter) ([]status.Object, bool) {
	return *fill(new([]status.Object)), true
}

// fill gives every field a value, and every text the hostile one.
func fill[T any](value *T) *T {
	fillValue(reflect.ValueOf(value).Elem())
	return value
}

func fillValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillValue(v.Index(0))
		fillValue(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key)
		fillValue(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillValue(v.Field(i))
			}
		}
	}
}

func TestPagesEscapeEveryText(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/repos/" + url.PathEscape(hostile), "/repos/x?text=" + url.QueryEscape(hostile), "/repos/x?state=" + url.QueryEscape(hostile)} {
		page := get(t, web.New(hostileBoard{}), path).Body.String()
		if text := textOf(t, page); strings.Contains(path, "repos/x?text") && strings.Count(text, hostile) < 20 || !strings.Contains(text, "javascript:alert(1)") {
			t.Errorf("%s: the texts are not shown as they are:\n%s", path, text)
		}
		for _, element := range elements(t, page, "") {
			for _, a := range element.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || (a.Key == "src" || a.Key == "href") && strings.Contains(strings.SplitN(a.Val, "/", 2)[0], ":") {
					t.Errorf("%s: <%s> has %s=%q", path, element.Data, a.Key, a.Val)
				}
			}
		}
		if scripts := elements(t, page, "script"); len(scripts) != 1 {
			t.Errorf("%s: %d scripts, want the page's own alone", path, len(scripts))
		}
	}
}

// Screen readers find their way by titles, headings, captions and labels.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	board, _ := example()
	handler := web.New(board)
	for _, path := range []string{"/", "/repos/cluster", "/repos/shop", "/repos/nowhere"} {
		page := get(t, handler, path).Body.String()
		if headings := elements(t, page, "h1"); len(headings) != 1 {
			t.Errorf("%s: %d main headings", path, len(headings))
		}
		root := elements(t, page, "html")[0]
		if language, _ := attribute(root, "lang"); language == "" {
			t.Errorf("%s: no language", path)
		}
		if captions, tables := elements(t, page, "caption"), elements(t, page, "table"); len(captions) != len(tables) {
			t.Errorf("%s: %d tables, %d captions", path, len(tables), len(captions))
		}
		for _, header := range elements(t, page, "th") {
			if scope, _ := attribute(header, "scope"); scope == "" {
				t.Errorf("%s: a header cell without scope", path)
			}
		}
		for _, name := range []string{"input", "select"} {
			for _, control := range elements(t, page, name) {
				if control.Parent.Data != "label" {
					t.Errorf("%s: <%s> has no label", path, name)
				}
			}
		}
		for _, image := range elements(t, page, "img") {
			if _, described := attribute(image, "alt"); !described {
				t.Errorf("%s: an image without a text", path)
			}
		}
	}
}

func TestPagesTellWhatIsTrue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path   string
		change func(*status.Board, *cluster)
		status int
		want   []string // in this order
		not    []string
	}{
		"all repos": {"/", nil, 200, []string{
			"2 of 4 repos need attention",
			"cluster system", "partial", "pruning waits", "Take the backups out <again>", "1 failed", "3 failures in a row",
			"kubernetes/dns.yaml:1: Service/shop/dns: failed", "pruning 1 object waits for approval",
			"shop application", "synced", "1 in progress", "1 current",
			"billing", "failed", "transform since", "the cluster has",
			"search", "waiting", "Unlisted repos", "kubesync.io/delete=old",
		}, []string{"Stale since"}},
		"a repo that needs attention": {"/repos/cluster", nil, 200, []string{
			"Not everything could be applied, 3 times in a row", "1 object has left git", "CronJob/shop/backup: pruning waits for approval",
			"kubectl annotate configmap --namespace kube-system kubesync-cluster --overwrite kubesync.io/approve-prune=",
			"Service shop/dns", "failed", "kubernetes/dns.yaml:1", "ConfigMap shop/limits", ".data.cpu by vertical-autoscaler", "conflict",
			"waits for the CRD of kind Certificate", "pending",
		}, nil},
		"a diff": {"/repos/shop", nil, 200, []string{
			"Available: 1/3", "configured", "Deployment/shop/front", "- replicas: 2", "+ replicas: 3",
		}, []string{"Warnings"}},
		"mistakes": {"/repos/billing", nil, 200, []string{
			"Nothing of the revision was applied", "kubernetes/rates.yaml:4", `unknown field "dato"`, "refused", "Unprivileged repo requires privilege",
			"The cluster has", "ConfigMap shop/rates",
		}, nil},
		"before the first sync": {"/repos/search", nil, 200, []string{"waiting", "No objects yet"}, nil},
		"filtered":              {"/repos/cluster?state=pending", nil, 200, []string{"1 of 5 objects", "Certificate shop/wild"}, []string{"Service shop/dns"}},
		"no match":              {"/repos/cluster?text=xyz", nil, 200, []string{"None of the 5 objects matches"}, nil},
		"a slip":                {"/repos/cluster?state=x", nil, 400, []string{`there is no state "x"`}, nil},
		"no such repo":          {"/repos/nowhere", nil, 404, []string{"No such repo"}, nil},
		"stale": {"/", func(_ *status.Board, c *cluster) {
			c.blind = []inventory.Blind{{What: "configmaps", Since: time.Now().Add(-4 * time.Second), Err: errors.New("connection refused")}}
		}, 200, []string{"What is shown is stale", "Stale since 4 s ago", "configmaps: connection refused"}, nil},
		"on standby": {"/repos/shop", func(b *status.Board, _ *cluster) { b.Lead(false) }, 200, []string{"stale", "this process is on standby"}, nil},
		"no list": {"/", func(b *status.Board, _ *cluster) { b.List(nil, errors.New("lists.example: 503")) }, 200,
			[]string{"The list of repos cannot be read since", "lists.example: 503"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				board, cluster := example()
				if test.change != nil {
					test.change(board, cluster)
				}
				answer := get(t, web.New(board), test.path)
				if answer.Code != test.status {
					t.Errorf("status %d, want %d", answer.Code, test.status)
				}
				text := textOf(t, answer.Body.String())
				rest := text
				for _, want := range test.want {
					_, after, found := strings.Cut(rest, want)
					if !found {
						t.Fatalf("there is no %q after what is before it in\n%s", want, text)
					}
					rest = after
				}
				for _, not := range test.not {
					if strings.Contains(text, not) {
						t.Errorf("there is %q in\n%s", not, text)
					}
				}
			})
		})
	}
}

func TestALongPageNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	board, _ := example()
	var many []apply.Outcome
	for i := range 1500 {
		many = append(many, outcome(apply.Unchanged, "ConfigMap", fmt.Sprintf("object-%04d", i), ""))
	}
	board.Observe(report("search", manifest.Application, 0, revision(7, "Search"), many...))
	text := textOf(t, get(t, web.New(board), "/repos/search").Body.String())
	if !strings.Contains(text, "1000 of 1500 objects; 500 more match") || strings.Contains(text, "object-1200") {
		t.Error("the page does not stop at 1000 objects, or does not say so")
	}
	if text = textOf(t, get(t, web.New(board), "/repos/search?text=object-1200").Body.String()); !strings.Contains(text, "1 of 1500 objects") {
		t.Error("the filter does not find what was left out")
	}
}

func TestEventsArriveAtOnce(t *testing.T) {
	t.Parallel()
	board, _ := example()
	server := httptest.NewServer(web.New(board))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("Content-Type %q", kind)
	}
	lines := bufio.NewScanner(answer.Body)
	until := func(prefix string) string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("the events ended before %q: %v", prefix, lines.Err())
		return ""
	}
	until("retry:")
	board.Observe(report("search", manifest.Application, 0, revision(7, "Search"), outcome(apply.Created, "ConfigMap", "a", "")))
	until("id: ")
	until("event: sync")
	var got struct {
		Repo    string
		State   string
		Changes []struct{ Object string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(until("data: "), "data: ")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Repo != "search" || got.State != "synced" || len(got.Changes) != 1 {
		t.Errorf("got %+v", got)
	}
	board.Lead(false)
	until("event: stale")
	if data := until("data: "); !strings.Contains(data, "is on standby") {
		t.Errorf("stale: %s", data)
	}
}

func TestTooManyReadersAreTurnedAway(t *testing.T) {
	t.Parallel()
	board, _ := example()
	for {
		if _, _, ok := board.Subscribe(); !ok {
			break
		}
	}
	if answer := get(t, web.New(board), "/api/v1/events"); answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, headers %v", answer.Code, answer.Header())
	}
}
