package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// screenshots is a flag as `go test` has them, which must exist before it parses any.
var screenshots = flag.String("screenshots", "", "folder for the screenshots (a temporary one by default)")

// tab is a tab of a browser.
type tab struct {
	ctx   context.Context
	shots string

	mu         sync.Mutex // guards what follows
	complaints []string
}

// newTab starts a browser with one tab, which ends with the test. What the page's
// script throws, and what the browser forbids the page, fails the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: apt-get install chromium", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WSURLReadTimeout(time.Minute))
	for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(name, true))
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	b := &tab{shots: *screenshots}
	if b.shots == "" {
		b.shots = t.TempDir()
	}
	if err := os.MkdirAll(b.shots, 0o755); err != nil {
		t.Fatal(err)
	}
	b.ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Listen(b.ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.do(t, call(log.Enable, cdp.Empty{}))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, complaint := range b.complaints {
			t.Errorf("the browser complains: %s", complaint)
		}
	})
	return b
}

// hear keeps what the browser complains of, but for servers that are away, which
// they are for a while.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	}
}

// call is a command of the browser's protocol whose answer does not matter.
func call[P, R any](command cdp.Command[P, R], parameters P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, parameters)
		return err
	})
}

// do has the browser do something.
func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// open shows a page.
func (b *tab) open(t *testing.T, url string) {
	t.Helper()
	b.do(t, chromedp.Navigate(url))
}

// evaluate returns the value of an expression.
func evaluate[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// text returns what a person reads in an element, in one line.
func (b *tab) text(t *testing.T, selector string) string {
	t.Helper()
	return strings.Join(strings.Fields(evaluate[string](t, b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}

// sees waits until all the texts are to be read on the page that is open.
func (b *tab) sees(t *testing.T, texts ...string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("the page says:\n%s", last)
		}
	}()
	until(t, fmt.Sprintf("the page says %q", texts), func(context.Context) bool {
		last = b.text(t, "body")
		for _, text := range texts {
			if !strings.Contains(last, text) {
				return false
			}
		}
		return true
	})
}

// form is what a browser is like.
type form struct {
	name          string
	width, height int64
	dark          bool
}

// forms are those that the page is made for.
func forms() []form {
	return []form{{"wide-light", 1280, 480, false}, {"wide-dark", 1280, 480, true}, {"phone-light", 390, 844, false}, {"phone-dark", 390, 844, true}}
}

// become makes the browser like that.
func (b *tab) become(t *testing.T, f form) {
	t.Helper()
	scheme := "light"
	if f.dark {
		scheme = "dark"
	}
	b.do(t,
		chromedp.EmulateViewport(f.width, f.height, chromedp.EmulateScale(1)),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
	)
}

// shoot takes pictures of the page in all forms, and looks at what can be measured of
// them: nothing is wider than the screen, and no text too faint.
func (b *tab) shoot(t *testing.T, name string) {
	t.Helper()
	for _, f := range forms() {
		b.become(t, f)
		if wide := evaluate[int64](t, b, "document.documentElement.scrollWidth"); wide > f.width {
			t.Errorf("%s, %s: the page is %d pixels wide", name, f.name, wide)
		}
		for _, faint := range evaluate[[]string](t, b, faintTexts) {
			t.Errorf("%s, %s: too faint: %s", name, f.name, faint)
		}
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.shots, name+"-"+f.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.become(t, forms()[0])
}

// faintTexts lists the texts whose contrast to their ground is below 4.5 to 1, which
// WCAG 2.2 (1.4.3) asks for.
const faintTexts = `(() => {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const rgba = parse(getComputedStyle(e).backgroundColor);
      if (rgba.length === 3 || rgba[3] > 0) return rgba;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || ["SCRIPT", "OPTION"].includes(element.tagName)) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(contrast.toFixed(2) + ": " + walker.currentNode.textContent.trim().slice(0, 40));
  }
  return found;
})()`
