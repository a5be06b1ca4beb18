package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// canary is a secret that no page may show.
const canary = "page-canary-7731"

// TestPage is one story: what a person at the page sees while things happen. Nothing in
// it reloads a page that is open, but where it says so.
func TestPage(t *testing.T) {
	l := newLab(t)
	files := map[string]string{
		"greeting.yaml": configMap("greeting", "hello"), "door.yaml": configMap("door", "open"), "key.yaml": secret("key", canary),
	}
	commit(t, l.site, "Open the door", files)
	thousand := map[string]string{}
	for i := range 1000 {
		name := fmt.Sprintf("object-%04d", i)
		thousand[name+".yaml"] = configMap(name, name)
	}
	commit(t, l.many, "A thousand", thousand)
	l.git.Behave(gitserver.Slow(2 * time.Second))
	l.start(t)
	up(t, l.url)
	b := newTab(t)
	b.become(t, forms()[0])

	t.Run("the first sync", func(t *testing.T) {
		b.open(t, l.url)
		b.sees(t, "site system", "many system", "waiting")
		b.do(t, call(runtime.Evaluate, runtime.EvaluateParams{Expression: "window.sameDocument = true"}))
		l.git.Behave(gitserver.Normal())
		b.sees(t, "All 2 repos are in sync", "Open the door", "3 synced", "1000 synced")
		if !evaluate[bool](t, b, "window.sameDocument === true") {
			t.Error("the page was loaded anew")
		}
		b.shoot(t, "overview")
	})

	t.Run("a failing rollout", func(t *testing.T) {
		b.do(t, chromedp.Click(chromedp.Search("//a[text()='site']")))
		b.sees(t, "ConfigMap default/greeting", "greeting.yaml:1")
		files["web.yaml"] = deployment("web", 2)
		commit(t, l.site, "Run the shop", files)
		b.sees(t, "Run the shop", "Deployment default/web", "in progress", "Available: 0/2")
		b.sees(t, "Progress deadline exceeded")
		if summary := b.text(t, "#summary"); !strings.Contains(summary, "✗ unhealthy") || !strings.Contains(summary, "1 failed") {
			t.Errorf("the summary does not tell of it: %s", summary)
		}
		b.shoot(t, "rollout")
	})

	t.Run("a diff of what changed last", func(t *testing.T) {
		files["greeting.yaml"], files["key.yaml"] = configMap("greeting", "good morning"), secret("key", canary+"-2")
		commit(t, l.site, "Greet by the hour", files)
		b.sees(t, "Greet by the hour", "2 changed")
		b.do(t, chromedp.Click(chromedp.CSS("#syncs details summary")))
		b.sees(t, "- text: hello", "+ text: good morning", "*** (after)")
		until(t, "the page was renewed", func(context.Context) bool { return renewed(t, b) })
		if !evaluate[bool](t, b, "document.querySelector('#syncs details').open") {
			t.Error("what a person had opened was closed")
		}
		if body := b.text(t, "body"); strings.Contains(body, canary) {
			t.Error("a secret is shown")
		}
		b.shoot(t, "diff")
	})

	t.Run("a prune that waits", func(t *testing.T) {
		revision := commit(t, l.site, "Leave nothing", map[string]string{"other.txt": "no manifest"})
		command := "kubesync.io/approve-prune=" + revision
		b.sees(t, "4 objects have left git and are still there", "declares no objects at all", command, "pruning waits")
		b.do(t,
			call(browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "clipboard-write"}, Setting: browser.PermissionSettingGranted}),
			chromedp.Focus(chromedp.CSS("#trouble button")), chromedp.KeyEvent(kb.Enter))
		b.sees(t, "Copied")
		b.shoot(t, "prune")
		commit(t, l.site, "Put it all back", files)
		b.sees(t, "Put it all back")
		until(t, "nothing waits any more", func(context.Context) bool { return !strings.Contains(b.text(t, "#summary"), "pruning waits") })
	})

	t.Run("a conflict", func(t *testing.T) {
		stop := l.conflict(t)
		b.sees(t, ".data.text by robot", "⇄ conflict")
		stop()
		b.shoot(t, "conflict")
	})

	t.Run("the API server goes away", func(t *testing.T) {
		b.open(t, l.url)
		b.sees(t, "2 repos")
		l.cluster.StopAPIServer()
		gone := time.Now()
		b.sees(t, "Stale since")
		if took := time.Since(gone); took > 5*time.Second {
			t.Errorf("it took %s to show as stale", took)
		}
		b.shoot(t, "stale")
		if err := l.cluster.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, "it recovers", func(context.Context) bool { return !strings.Contains(b.text(t, "body"), "Stale since") })
	})

	t.Run("a thousand objects", func(t *testing.T) {
		l.quickly(t, "/repos/many")
		b.open(t, l.url+"/repos/many")
		b.sees(t, "1000 objects")
		// By keyboard alone: the first stop leads past the header, the field takes text.
		b.do(t, chromedp.KeyEvent(kb.Tab))
		if first := evaluate[string](t, b, "document.activeElement.textContent"); first != "Skip to the content" {
			t.Errorf("the first stop of the keyboard is %q", first)
		}
		b.do(t, chromedp.Focus(chromedp.CSS("input[name=text]")), chromedp.KeyEvent("object-0777"+kb.Enter))
		b.sees(t, "1 of 1000 objects", "object-0777.yaml:1")
		until(t, "the filtered page was renewed", func(context.Context) bool { return renewed(t, b) })
		b.sees(t, "1 of 1000 objects")
		b.shoot(t, "filter")
	})

	t.Run("without a script", func(t *testing.T) {
		b.do(t, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
		b.open(t, l.url+"/repos/site")
		b.do(t, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})) // of the page; it stays as it was loaded
		b.sees(t, "Put it all back", "Deployment default/web", "Progress deadline exceeded")
	})
}

// up waits until the page is served.
func up(t *testing.T, url string) {
	t.Helper()
	until(t, "the page is served", func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// renewed reports whether the open page is another than at the last call: it says as of when
// it is.
func renewed(t *testing.T, b *tab) bool {
	t.Helper()
	return evaluate[bool](t, b, "(() => { const now = document.getElementById('asof').innerText, was = window.asOf; window.asOf = now; return was !== undefined && was !== now; })()")
}

// conflict changes an object again and again, until it is stopped.
func (l *lab) conflict(t *testing.T) (stop func()) {
	t.Helper()
	client, err := kubernetes.NewForConfig(l.cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "door", types.MergePatchType, []byte(`{"data":{"text":"robot"}}`), metav1.PatchOptions{FieldManager: "robot"})
			if err != nil && ctx.Err() == nil {
				t.Errorf("conflict: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// quickly asks for a page several times: its first byte comes within 50 ms when the
// machine has a moment for it.
func (l *lab) quickly(t *testing.T, path string) {
	t.Helper()
	var times []time.Duration
	for range 20 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		one := make([]byte, 1)
		if _, err := io.ReadFull(answer.Body, one); err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(began))
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	slices.Sort(times)
	t.Logf("first byte of %s: %s at best, %s in the middle", path, times[0], times[len(times)/2])
	if times[0] > 50*time.Millisecond {
		t.Errorf("the first byte of %s takes %s at best", path, times[0])
	}
}
