package repo

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/repo/pack"
	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// answers is a git server that answers as a test says. What is nil is answered rightly,
// for a branch master with one commit, whose root holds "file".
type answers struct {
	greet, list, fetch func(http.ResponseWriter, *http.Request)
	right              gitbytes.Objects
	tip                plumbing.Hash
}

// answering starts a server that gives these answers, and returns a Repo that follows its branch.
func answering(t *testing.T, a answers, change ...func(*Options)) *Repo {
	t.Helper()
	a.right = gitbytes.Objects{}
	blob := a.right.Add(plumbing.BlobObject, []byte("right"))
	commit := a.right.Commit(a.right.Add(plumbing.TreeObject, append([]byte("100644 file\x00"), blob[:]...)))
	a.tip = commit.Hash
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		kind, answer, right := "result", a.fetch, a.fetchRightly
		switch {
		case r.Method == http.MethodGet:
			kind, answer, right = "advertisement", a.greet, a.greetRightly
		case bytes.Contains(body, []byte("command=ls-refs")):
			answer, right = a.list, a.listRightly
		}
		if answer == nil {
			answer = right
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return open(t, server.URL+"/site", "branch:master", change...)
}

func (a answers) greetRightly(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write(gitbytes.Packets("version 2", "ls-refs", "fetch=shallow filter", flushLine))
}

func (a answers) listRightly(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write(gitbytes.Packets(a.tip.String()+" refs/heads/master", flushLine))
}

func (a answers) fetchRightly(w http.ResponseWriter, r *http.Request) {
	hashes := []plumbing.Hash{}
	for hash := range a.right {
		hashes = append(hashes, hash)
	}
	data, err := pack.Write(r.Context(), a.right, hashes)
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(data.Reader())
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(append(append(gitbytes.Packets("packfile"), band(1, content)...), flushLine...))
}

// band is a packet of a side band.
func band(number byte, content []byte) []byte {
	return append(fmt.Appendf(nil, "%04x%c", len(content)+5, number), content...)
}

// endless sends a beginning, and then the same for ever.
func endless(beginning, rest []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write(beginning)
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(rest)
		}
	}
}

// slowly sends a beginning, and then the same now and then.
func slowly(beginning, rest []byte, pause time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write(beginning)
		for err == nil {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			_, err = w.Write(rest)
		}
	}
}

// always sends the same.
func always(answer []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }
}

// limited are options with these limits.
func limited(most map[limits.Limit]int64) func(*Options) {
	return func(o *Options) {
		for limit, value := range most {
			o.Limits = o.Limits.With(limit, value)
		}
	}
}

// quickSilence gives up a server that is silent for 300 ms.
func quickSilence(o *Options) { o.silence = 300 * time.Millisecond }

// TestFalseAnswers has servers say what no honest one does. Each false answer is an error that names
// what is wrong, and nothing that is said gets at whoever reads the error on a
// terminal.
func TestFalseAnswers(t *testing.T) {
	t.Parallel()
	noise := []byte(gitbytes.Noise(60_000))
	ref := plumbing.NewHash(hash).String()
	other := gitbytes.Objects{}
	otherTip := other.Commit(other.Tree())
	packFrom := func(f gitbytes.Objects, hashes ...plumbing.Hash) []byte {
		data, err := pack.Write(t.Context(), f, hashes)
		must(t, err)
		content, err := io.ReadAll(data.Reader())
		must(t, err)
		return append(append(gitbytes.Packets("packfile"), band(1, content)...), flushLine...)
	}
	small := limited(map[limits.Limit]int64{limits.Pack: 1 << 20, limits.Refs: 64 << 10, limits.Objects: 1000, limits.Inflated: 64 << 20})
	impatient := func(o *Options) { o.Timeout = time.Second }
	for name, test := range map[string]struct {
		answers
		change func(*Options)
		wants  []string
	}{
		"endless pack":             {answers{fetch: endless(gitbytes.Packets("packfile"), band(1, noise))}, small, []string{"the server sends too much", "more than 1 MiB", "LIMITS=pack=2Mi"}},
		"endless progress":         {answers{fetch: endless(gitbytes.Packets("packfile"), band(2, noise))}, small, []string{"LIMITS=pack=2Mi"}},
		"endless keeping alive":    {answers{fetch: endless(gitbytes.Packets("packfile"), bytes.Repeat(band(1, nil), 1000))}, small, []string{"LIMITS=pack=2Mi"}},
		"endless shallow commits":  {answers{fetch: endless(nil, gitbytes.Packets("shallow "+ref))}, small, []string{"LIMITS=pack=2Mi"}},
		"endless acknowledgments":  {answers{fetch: endless(gitbytes.Packets("acknowledgments"), gitbytes.Packets("ACK "+ref))}, small, []string{"LIMITS=pack=2Mi"}},
		"endless list":             {answers{list: endless(nil, gitbytes.Packets(ref+" refs/heads/x"))}, small, []string{"list of branches and tags is too long", `the limit "refs"`}},
		"endless greeting":         {answers{greet: endless(gitbytes.Packets("version 2"), gitbytes.Packets("x=y"))}, small, []string{`the limit "refs"`}},
		"endless greeting, gzip":   {answers{greet: zipped(gitbytes.Packets("version 2"), 200_000)}, small, []string{`the limit "refs"`}},
		"endless version 0":        {answers{greet: endless(gitbytes.Packets(ref+" HEAD\x00shallow"), gitbytes.Packets(ref+" refs/heads/x"))}, small, []string{`the limit "refs"`}},
		"endless header":           {answers{greet: header("X-Long", strings.Repeat("x", 80_000))}, small, []string{"headers exceeded 65536 bytes"}},
		"a byte now and then":      {answers{fetch: slowly(append(gitbytes.Packets("packfile"), "fff0\x01PACK"...), []byte("\x00"), 50*time.Millisecond)}, impatient, []string{"not done after 1s", "raise TIMEOUT"}},
		"silence in the pack":      {answers{fetch: slowly(gitbytes.Packets("packfile"), nil, time.Minute)}, quickSilence, []string{"the server does not answer: it sent nothing for 300ms"}},
		"silence in the greeting":  {answers{greet: slowly([]byte("000eversion 2\n"), nil, time.Minute)}, quickSilence, []string{"nothing for 300ms"}},
		"silence":                  {answers{list: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}, quickSilence, []string{"nothing for 300ms"}},
		"another commit":           {answers{fetch: always(packFrom(other, otherTip.Hash, otherTip.TreeHash))}, nil, []string{"object not found"}},
		"no commit":                {answers{fetch: always(packFrom(other, otherTip.TreeHash))}, nil, []string{"object not found"}},
		"an empty pack":            {answers{fetch: always(packFrom(other))}, nil, []string{"object not found"}},
		"a page":                   {answers{greet: loginPage}, nil, []string{"no git repository", `"text/html"`}},
		"a page as a list":         {answers{list: loginPage}, nil, []string{"no git repository", `"text/html"`}},
		"a page as a pack":         {answers{fetch: loginPage}, nil, []string{"no git repository", `"text/html"`}},
		"a page in disguise":       {answers{greet: always([]byte("<!DOCTYPE html><title>Log in"))}, nil, []string{`no git repository served over http: its answer cannot be read at "<!DOCTYPE html`}},
		"a page for a list":        {answers{list: always([]byte("<!DOCTYPE html><title>Log in"))}, nil, []string{"broke off"}},
		"a page for a pack":        {answers{fetch: always([]byte("<!DOCTYPE html><title>Log in"))}, nil, []string{"broke off"}},
		"a bogus line":             {answers{list: always(gitbytes.Packets("bogus", flushLine))}, nil, []string{`cannot be read at "bogus"`}},
		"an escape in a line":      {answers{list: always(gitbytes.Packets("\x1b[2Jgone\r\nlevel=info all is well", flushLine))}, nil, []string{`\x1b[2Jgone`}},
		"an escape in a name":      {answers{list: always(gitbytes.Packets(ref+" refs/heads/\x1b[2J", flushLine))}, nil, []string{"cannot be read at"}},
		"a NUL in a name":          {answers{list: always(gitbytes.Packets(ref+" refs/heads/a\x00b", flushLine))}, nil, []string{"cannot be read at"}},
		"an escape in a link":      {answers{list: always(gitbytes.Packets(ref+" HEAD symref-target:refs/heads/\x07", flushLine))}, nil, []string{"cannot be read at"}},
		"an escape in version 0":   {answers{greet: always(gitbytes.Packets(ref+" HEAD\x00shallow", ref+" refs/heads/\x1b[2J", flushLine))}, nil, []string{"cannot be read at"}},
		"an endless name":          {answers{list: always(gitbytes.Packets(ref+" refs/heads/"+strings.Repeat("x", 5000), flushLine))}, nil, []string{"cannot be read at"}},
		"an escape in an error":    {answers{list: always(gitbytes.Packets("ERR \x1b[31mred\nlevel=info all is well"))}, nil, []string{"the server says: \uFFFD[31mred level=info"}},
		"an escape in a band":      {answers{fetch: always(append(gitbytes.Packets("packfile"), band(3, []byte("\x1b]0;title\x07"))...))}, nil, []string{"the server says: \uFFFD]0;title"}},
		"an unknown band":          {answers{fetch: always(append(gitbytes.Packets("packfile"), band(9, []byte("\x1b]0;title\x07"))...))}, nil, []string{"unknown channel"}},
		"a long error":             {answers{list: always(gitbytes.Packets("ERR " + strings.Repeat("x", 60_000)))}, nil, []string{"xxx…"}},
		"no fetch":                 {answers{greet: always(gitbytes.Packets("version 2", "ls-refs", flushLine))}, nil, []string{"does not know fetch"}},
		"other hashes":             {answers{greet: always(gitbytes.Packets("version 2", "ls-refs", "fetch", "object-format=\x1b[2J", flushLine))}, nil, []string{"only sha1 is known"}},
		"a wrong length of a line": {answers{list: always([]byte("0003"))}, nil, []string{"broke off"}},
		"a redirect of a request":  {answers{fetch: location("http://elsewhere.invalid/")}, with("ann", secret), []string{"answers 307"}},
		"a redirect with escapes":  {answers{greet: location("file:///\x1b[2J")}, nil, []string{"malformed MIME header"}},
		"redirects for ever":       {answers{greet: location("/site/info/refs?again")}, nil, []string{"redirects in circles"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := test.change
			if change == nil {
				change = func(*Options) {}
			}
			r := answering(t, test.answers, change)
			text := resolveFails(t, r, test.wants...)
			hasNoSecret(t, text)
			if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("there is a control character in %q", text)
			}
			if len(text) > 3*maxText/2 {
				t.Errorf("the error has %d bytes", len(text))
			}
		})
	}
}

func loginPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!DOCTYPE html><title>Log in</title>")
}

func header(name, value string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(name, value) }
}

func location(where string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", where)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// zipped sends a beginning and then the same packet so many times, compressed.
func zipped(beginning []byte, times int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = packed.Write(beginning)
		_, _ = packed.Write(bytes.Repeat(gitbytes.Packets("x=y"), times))
		_ = packed.Close()
	}
}

// TestTrueAnswers checks that the server of these tests is one when its answers are true.
func TestTrueAnswers(t *testing.T) {
	t.Parallel()
	r := answering(t, answers{})
	if got := content(t, r, resolve(t, r), "file"); got != "right" {
		t.Errorf("got %q", got)
	}
}

// TestFalseAfterTrueAnswers keeps the last good revision when a server begins to answer
// falsely, and takes what it says when it stops.
func TestFalseAfterTrueAnswers(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t)
	s := newSite(t, server.Dir(), "master")
	one := s.commit("one", file("1"))
	r := open(t, server.URL("site"), "branch:master")
	want(t, r, resolve(t, r), one, "refs/heads/master", "1")
	two := s.commit("two", file("2"))
	server.Behave(gitserver.CorruptPack())
	resolveFails(t, r, "does not match its checksum")
	if got := content(t, r, Revision{ID: one}, "dir/file"); got != "1" {
		t.Errorf("the last good revision: got %q", got)
	}
	server.Behave(gitserver.Normal())
	want(t, r, resolve(t, r), two, "refs/heads/master", "2")
}

// TestRedirectThroughClearText leads from https over http back to https: it ends where
// anyone on the way could change it.
func TestRedirectThroughClearText(t *testing.T) {
	t.Parallel()
	asked := 0
	clearText := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(clearText.Close)
	first := gitserver.Start(t, gitserver.WithTLS, gitserver.WithBasicAuth("ann", secret))
	first.Behave(gitserver.RedirectTo(clearText.URL))
	r := open(t, first.URL("site"), "", with("ann", secret), func(o *Options) { o.CAFile = first.CAFile() })
	hasNoSecret(t, resolveFails(t, r, "redirects from https to http://"))
	if asked > 0 {
		t.Error("it was followed")
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"", 10, ""},
		{"größe 漢字", 100, "größe 漢字"},
		{"two\nlines\tmore", 100, "two lines more"},
		{"\x1b[2J\x00\r\x7f", 100, "\uFFFD[2J\uFFFD\uFFFD\uFFFD"},
		{"\xff\u202e\u0085", 100, "\uFFFD\uFFFD\uFFFD"},
		{"1234567890", 10, "1234567890"},
		{"12345678901", 10, "1234567890…"},
		{"123456789é", 10, "123456789…"},
	} {
		if got := brief(test.text, test.most); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}
