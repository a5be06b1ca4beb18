package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/config/curl"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// listReader collects the entries of a list.
type listReader struct {
	*mistakes
	list     *List
	entries  []*entryReader // those with a URL
	repos    []Repo
	warnings []string
	names    map[string]string // which entry has a name: "entry 1 (url)"
}

// List is the list of repos in CONFIG.
type List struct {
	source   source
	defaults Repo                // what holds for entries that do not say otherwise
	taken    map[string]repo.URL // names of the repos in REPO
	redactor *redact.Redactor
	secrets  *secretFiles
	limits   limits.Limits
}

// Unreachable is the error of a list on a web server that could not be had: trying
// again may help. A list that could be had and is wrong is Errors, as is a file that
// cannot be read.
type Unreachable struct {
	Source string // without credentials
	Err    error
}

// Error says which list could not be had, and why.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("CONFIG: fetch %s: %v", u.Source, u.Err)
}

// Unwrap returns the reason.
func (u *Unreachable) Unwrap() error { return u.Err }

// newList returns the list at a source. A file must exist; a web server is not asked.
func newList(text string, options curl.Options, defaults Repo, others []Repo, bounds limits.Limits, redactor *redact.Redactor, secrets *secretFiles) (*List, error) {
	source, err := parseSource(text, options)
	if err != nil {
		return nil, err
	}
	defaults.Tier = manifest.Application
	defaults.FromList = true
	list := &List{source: source, defaults: defaults, taken: map[string]repo.URL{}, redactor: redactor, secrets: secrets, limits: bounds}
	for _, other := range others {
		list.taken[other.Name] = other.URL
	}
	if file, isFile := source.(fileSource); isFile {
		secrets.add(string(file))
		if err := checkFile(string(file)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// String returns where the list is, without credentials.
func (l *List) String() string { return l.source.String() }

// Read returns the repos that the list holds now, in its order, and what is worth a
// warning. The error is *Unreachable if a web server did not deliver the list, and
// Errors, with everything that is wrong, if the list is not valid.
func (l *List) Read(ctx context.Context) ([]Repo, []string, error) {
	content, err := l.source.read(ctx, l.limits)
	if err != nil {
		if _, isFile := l.source.(fileSource); isFile {
			return nil, nil, Errors{{Variable: "CONFIG", Text: err.Error()}}
		}
		return nil, nil, &Unreachable{Source: l.String(), Err: err}
	}
	return l.parse(content)
}

// parse reads a list.
func (l *List) parse(content []byte) ([]Repo, []string, error) {
	l.redactor.Add(redact.URLs(string(content))...)
	reader := &listReader{list: l, mistakes: &mistakes{}, names: map[string]string{}}
	for name, url := range l.taken {
		reader.names[name] = fmt.Sprintf("%s in REPO", url)
	}
	array, err := parseArray(content)
	if err != nil {
		reader.add("CONFIG", "%s: %v", l, err)
	} else {
		for i, node := range array.Content {
			reader.entry(i+1, node)
		}
		reader.finish()
	}
	if err := reader.err(l.redactor); err != nil {
		return nil, nil, err
	}
	for i := range reader.warnings {
		reader.warnings[i] = l.redactor.String(reader.warnings[i])
	}
	return reader.repos, reader.warnings, nil
}

// parseArray reads the outermost value of a JSON or YAML document.
func parseArray(content []byte) (*yaml.Node, error) {
	if json.Valid(content) {
		content = manifest.JSONAsYAML(content)
	}
	const wanted = "it must be an array of objects, each with a url"
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, next yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("empty: %s, or []", wanted)
	case err != nil:
		return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
	}
	root := document.Content[0]
	if root.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("not an array: %s", wanted)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one document: %s", wanted)
	}
	return root, nil
}
