package transform

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/kubesync/kubesync/internal/limits"
)

// ignoreFile, at the root of a repository, names what is no manifest.
const ignoreFile = ".kubesyncignore"

// ignorer knows the patterns of .kubesyncignore. Its zero value ignores nothing.
type ignorer struct {
	text    string
	matcher gitignore.Matcher // nil for none
}

// readIgnore reads .kubesyncignore at the root of a tree. A tree without one
// ignores nothing.
func readIgnore(t tree) (ignorer, error) {
	resolved, err := t.resolve(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) {
		return ignorer{}, nil
	}
	if err != nil {
		return ignorer{}, fmt.Errorf("read %s: %w", ignoreFile, err)
	}
	data, err := t.readFile(resolved)
	if err == nil {
		err = t.limits.Check(limits.Ignore, "it is too large", int64(len(data)))
	}
	if err != nil {
		return ignorer{}, fmt.Errorf("read %s: %w", ignoreFile, err)
	}
	return parseIgnore(string(data)), nil
}

// parseIgnore parses the gitignore syntax. It knows no errors: like git, it takes a
// broken pattern for one that matches nothing.
func parseIgnore(text string) ignorer {
	var patterns []gitignore.Pattern
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		patterns = append(patterns, gitignore.ParsePattern(line, nil))
	}
	if len(patterns) == 0 {
		return ignorer{text: text}
	}
	return ignorer{text: text, matcher: gitignore.NewMatcher(patterns)}
}

// ignores reports whether a path of the repository is ignored, by itself or because
// a directory above it is.
func (i ignorer) ignores(name string, isDir bool) bool {
	if i.matcher == nil || name == "." {
		return false
	}
	parts := strings.Split(name, "/")
	for n := 1; n < len(parts); n++ {
		if i.matcher.Match(parts[:n], true) {
			return true
		}
	}
	return i.matcher.Match(parts, isDir)
}
