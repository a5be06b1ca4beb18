// Package docs_test keeps the documentation true: links lead somewhere, names and paths
// exist, commands parse, and every message of the troubleshooting page is one that
// kubesync has.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository, from here.
const root = ".."

// page is one document in Markdown.
type page struct {
	path  string // from root, with slashes
	lines []line
}

// line is one line of a page.
type line struct {
	number int
	text   string
	fence  string // the language of the block of code that it is in, "text" if none is named; "" outside
	opens  bool   // it opens or closes a block of code
}

// pages reads the documents whose style, names and commands are checked.
func pages(t *testing.T) []page {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no pages in docs/: %v", err)
	}
	for _, name := range []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		paths = append(paths, filepath.Join(root, name))
	}
	read := make([]page, len(paths))
	for i, path := range paths {
		relative, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		read[i] = readPage(t, relative)
	}
	return read
}

// readPage reads the document at a path from root.
func readPage(t *testing.T, path string) page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	read := page{path: filepath.ToSlash(path)}
	fence := ""
	for i, text := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		language, marked := strings.CutPrefix(strings.TrimSpace(text), "```")
		read.lines = append(read.lines, line{number: i + 1, text: text, fence: fence, opens: marked})
		switch {
		case !marked:
		case fence != "":
			fence = ""
		case language == "":
			fence = "text"
		default:
			fence = language
		}
	}
	return read
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// spans returns the code between backticks in a line of prose.
func (l line) spans() []string {
	if l.fence != "" || l.opens {
		return nil
	}
	var spans []string
	for _, match := range codeSpan.FindAllStringSubmatch(l.text, -1) {
		spans = append(spans, strings.ReplaceAll(match[1], `\|`, "|"))
	}
	return spans
}

// words returns what a line has of names: its code, or all of it inside a block of
// shell commands.
func (l line) words() []string {
	if l.fence == "sh" && !l.opens {
		command, _, _ := strings.Cut(l.text, " #")
		return strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t'\"{}()$;,", r) })
	}
	return l.spans()
}

// cells returns the cells of a row of a table, nil for any other line.
func (l line) cells() []string {
	if l.fence != "" || !strings.HasPrefix(l.text, "|") {
		return nil
	}
	text := strings.ReplaceAll(strings.Trim(strings.TrimSpace(l.text), "|"), `\|`, "\x00")
	cells := strings.Split(text, "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, "\x00", `\|`))
	}
	return cells
}

// tables calls each for every row of the tables whose first heading is given.
func (p page) tables(heading string, each func(l line, cells []string)) {
	inside := false
	for i, l := range p.lines {
		cells := l.cells()
		switch {
		case cells == nil:
			inside = false
		case i > 0 && p.lines[i-1].cells() == nil:
			inside = cells[0] == heading
		case inside && !strings.HasPrefix(cells[0], "---"):
			each(l, cells)
		}
	}
}

var headingMark = regexp.MustCompile(`^#{1,6} `)

// anchors returns the anchors that GitHub gives the headings of the page.
func (p page) anchors() []string {
	var anchors []string
	for _, l := range p.lines {
		if l.fence != "" || !headingMark.MatchString(l.text) {
			continue
		}
		heading := strings.ToLower(headingMark.ReplaceAllString(l.text, ""))
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, heading)
		anchors = append(anchors, anchor)
	}
	return anchors
}

// Markdown wraps at 120 columns; only the rows of tables, which cannot wrap, and not even
// these in the README, which is read on a terminal.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, l := range p.lines {
			if n := len([]rune(l.text)); n > 120 && (p.path == "README.md" || l.cells() == nil) {
				t.Errorf("%s:%d: %d columns, want at most 120", p.path, l.number, n)
			}
		}
		if p.path == "README.md" && len(p.lines) > 200 {
			t.Errorf("%s: %d lines, want at most 200: move something into docs/", p.path, len(p.lines))
		}
	}
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	image = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)
)

// Every relative link leads to a file, and to a heading of it where it names one.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	all := append(pages(t), readPage(t, "sync/status/web/API.md"), readPage(t, "scripts/example/README.md"))
	for _, p := range all {
		for _, l := range p.lines {
			if l.fence != "" {
				continue
			}
			for _, match := range append(link.FindAllStringSubmatch(l.text, -1), image.FindAllStringSubmatch(l.text, -1)...) {
				checkLink(t, p, l, match[1])
			}
		}
	}
}

func checkLink(t *testing.T, p page, l line, target string) {
	t.Helper()
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return
	}
	path, anchor, _ := strings.Cut(target, "#")
	to := p.path
	if path != "" {
		to = filepath.Join(filepath.Dir(p.path), path)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		t.Errorf("%s:%d: the link %s leads to no file", p.path, l.number, target)
		return
	}
	if anchor != "" && !slices.Contains(readPage(t, to).anchors(), anchor) {
		t.Errorf("%s:%d: the link %s leads to no heading", p.path, l.number, target)
	}
}

// Every page in docs/ is found by links from the README, over other pages or at once.
func TestPagesAreFound(t *testing.T) {
	t.Parallel()
	found, next := map[string]bool{}, []string{"README.md"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if found[path] || !strings.HasSuffix(path, ".md") || !exists(path) {
			continue
		}
		found[path] = true
		for _, l := range readPage(t, path).lines {
			for _, match := range link.FindAllStringSubmatch(l.text, -1) {
				to, _, _ := strings.Cut(match[1], "#")
				next = append(next, filepath.Join(filepath.Dir(path), to))
			}
		}
	}
	for _, p := range pages(t) {
		if !found[p.path] {
			t.Errorf("no link leads to %s", p.path)
		}
	}
}
