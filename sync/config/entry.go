package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// listReader collects the entries of a list.
type listReader struct {
	*mistakes
	list     *List
	entries  []*entryReader // those with a URL
	repos    []Repo
	warnings []string
	names    map[string]string // who has a name: "entry 1 (url)"
}

// entryReader reads one entry of a list into a Repo.
type entryReader struct {
	number int    // counted from 1
	label  string // "entry 2 (https://host/x, line 7)"
	to     Repo
	list   *listReader
}

// entryKeys returns what an entry may hold, by key. Each function reads a value that
// is not null.
func entryKeys() map[string]func(*entryReader, *yaml.Node) error {
	return map[string]func(*entryReader, *yaml.Node) error{
		"url":          func(*entryReader, *yaml.Node) error { return nil }, // read first, see entry
		"cmd":          (*entryReader).cmd,
		"ymldir":       (*entryReader).directory,
		"privileged":   (*entryReader).privileged,
		"name":         text(func(e *entryReader) *string { return &e.to.Name }, parseRepoName), // see names
		"version_mode": (*entryReader).version,
		"interval":     (*entryReader).interval,
		"creds_file":   (*entryReader).credentials,
		"namespace":    text(func(e *entryReader) *string { return &e.to.Namespace }, parseNamespace),
		"namespaces":   (*entryReader).namespaces,
		"prune":        boolean(func(e *entryReader) *bool { return &e.to.Prune }),
		"recursive":    boolean(func(e *entryReader) *bool { return &e.to.Recursive }),
		"suspend":      boolean(func(e *entryReader) *bool { return &e.to.Suspend }),
	}
}

// entry reads the entry of that number, counted from 1.
func (l *listReader) entry(number int, node *yaml.Node) {
	reader := &entryReader{number: number, label: fmt.Sprintf("entry %d (line %d)", number, node.Line), to: l.list.defaults, list: l}
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		reader.mistake("it is no object: want one with a url")
		return
	}
	var values map[string]yaml.Node
	if err := node.Decode(&values); err != nil {
		reader.mistake("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
		return
	}
	url, ok := reader.url(values)
	if ok {
		reader.label = fmt.Sprintf("entry %d (%s, line %d)", number, url, node.Line)
		reader.to.URL = url
	}
	keys := entryKeys()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		found := values[key]
		value := resolve(&found)
		read, known := keys[key]
		switch {
		case key == "priviliged":
			reader.mistake(`"priviliged" is misspelt: write "privileged"`)
		case !known:
			reader.warn("the key %q is not known, and ignored", key)
		case value.ShortTag() != "!!null":
			if err := read(reader, value); err != nil {
				reader.mistake("%s: %v", key, err)
			}
		}
	}
	if ok {
		l.entries = append(l.entries, reader)
	}
}

// finish takes the entry into the list, unless another has its name.
func (e *entryReader) finish() {
	if err := e.to.check(); err != nil {
		e.mistake("%v", err)
		return
	}
	if other, taken := e.list.names[e.to.Name]; taken {
		e.mistake(`it is called %q, and so is %s: give one of them another "name"`, e.to.Name, other)
		return
	}
	e.list.names[e.to.Name] = fmt.Sprintf("entry %d (%s)", e.number, e.to.URL)
	e.list.repos = append(e.list.repos, e.to)
}

// warn notes something about the entry that is worth a line in the log.
func (e *entryReader) warn(format string, args ...any) {
	e.list.warnings = append(e.list.warnings, fmt.Sprintf("CONFIG: %s: %s", e.label, fmt.Sprintf(format, args...)))
}

// mistake notes what is wrong with the entry.
func (e *entryReader) mistake(format string, args ...any) {
	e.list.add("CONFIG", "%s: %s: %s", e.list.list, e.label, fmt.Sprintf(format, args...))
}

// url returns the entry's URL, false if it has none to work with.
func (e *entryReader) url(values map[string]yaml.Node) (repo.URL, bool) {
	found, given := values["url"]
	node := resolve(&found)
	if !given || node.ShortTag() == "!!null" {
		e.mistake("it has no url")
		return repo.URL{}, false
	}
	text, err := scalar(node)
	if err != nil {
		e.mistake("url: %v", err)
		return repo.URL{}, false
	}
	url, err := repo.ParseURL(strings.TrimSpace(text))
	if err != nil {
		e.mistake("url: %v", err)
		return repo.URL{}, false
	}
	return url, true
}

func (e *entryReader) cmd(node *yaml.Node) error {
	command, err := scalar(node)
	if err != nil {
		return err
	}
	e.to.Command = strings.TrimSpace(command)
	return transform.ParseCommand(command)
}

// privileged takes what says true or false beyond doubt; see privilegeOf.
func (e *entryReader) privileged(node *yaml.Node) error {
	privileged, plain, err := privilegeOf(node)
	if err != nil {
		return err
	}
	if privileged {
		e.to.Tier = apply.System
	}
	if !plain {
		e.warn("privileged: %s is read as %v: write %v, without quotes", strconv.Quote(node.Value), privileged, privileged)
	}
	return nil
}

// directory takes a path with a slash in front as well, as the shell script put it
// behind the path of its clone.
func (e *entryReader) directory(node *yaml.Node) error {
	value, err := scalar(node)
	if err != nil {
		return err
	}
	relative, rooted := insideRepo(value)
	if e.to.YMLDir, err = transform.ParseDir(relative); err != nil {
		return err
	}
	if rooted {
		e.warn("ymldir: %q is taken relative to the root of the repo: write %q", value, e.to.YMLDir)
	}
	return nil
}

func (e *entryReader) version(node *yaml.Node) error {
	mode, err := scalar(node)
	if err == nil {
		e.to.Version, err = repo.ParseVersion(strings.TrimSpace(mode))
	}
	return err
}

// interval takes a number as well, which need not be quoted.
func (e *entryReader) interval(node *yaml.Node) (err error) {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("want seconds or a duration such as %q", "5m")
	}
	e.to.Interval, err = parseDuration(strings.TrimSpace(node.Value))
	return err
}

// credentials does not look whether the file is there: it may come with the next
// rotation, and until then only this repo fails.
func (e *entryReader) credentials(node *yaml.Node) error {
	name, err := scalar(node)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(name) {
		return fmt.Errorf("%q is no absolute path", name)
	}
	e.list.list.secrets.add(name)
	e.to.Credentials = Credentials{file: name, redactor: e.list.list.redactor}
	return nil
}

// namespaces takes an array, or a text as in NAMESPACES.
func (e *entryReader) namespaces(node *yaml.Node) error {
	var names []string
	if node.Kind == yaml.SequenceNode {
		for _, element := range node.Content {
			name, err := scalar(resolve(element))
			if err != nil {
				return err
			}
			names = append(names, name)
		}
	} else {
		text, err := scalar(node)
		if err != nil {
			return err
		}
		names = splitList(text)
	}
	for _, name := range names {
		if _, err := parseNamespace(name); err != nil {
			return err
		}
	}
	// An empty list allows no namespace; without the key all are allowed.
	e.to.Namespaces = append([]string{}, names...)
	return nil
}

// resolve returns what a YAML alias stands for, and any other value as it is.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// text returns a function that reads a value with a parser. An empty text is as good
// as none.
func text(field func(*entryReader) *string, parser func(string) (string, error)) func(*entryReader, *yaml.Node) error {
	return func(e *entryReader, node *yaml.Node) error {
		value, err := scalar(node)
		if err != nil || value == "" {
			return err
		}
		parsed, err := parser(value)
		if err == nil {
			*field(e) = parsed
		}
		return err
	}
}

// boolean returns a function that reads true or false.
func boolean(field func(*entryReader) *bool) func(*entryReader, *yaml.Node) error {
	return func(e *entryReader, node *yaml.Node) (err error) {
		*field(e), err = truthOf(node)
		return err
	}
}

// scalar returns the text of a value. Numbers are refused, as YAML would have read
// 0123 and 1_000 as something else than what is written.
func scalar(node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode {
		return "", errors.New("want a text, not an array or an object")
	}
	if node.ShortTag() != "!!str" {
		return "", fmt.Errorf("%s is no text: write %s", node.Value, strconv.Quote(node.Value))
	}
	return node.Value, nil
}

// privilegeOf returns what an entry says about its privileges, and whether it says so
// plainly. The shell script took an entry for privileged with true, yes, y or on (to the
// YAML reader that it used these are one) and with the text "true". Words that cannot be
// taken for their opposite are read as they look; numbers and all else are refused, so
// that no right is given by guessing.
func privilegeOf(node *yaml.Node) (privileged, plain bool, err error) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		switch strings.ToLower(strings.TrimSpace(node.Value)) {
		case "true", "yes", "y", "on":
			return true, false, nil
		case "false", "no", "n", "off", "":
			return false, false, nil
		}
		return false, false, fmt.Errorf("%s is neither: want true or false, without quotes", strconv.Quote(node.Value))
	}
	privileged, err = truthOf(node)
	return privileged, true, err
}

// truthOf returns a truth value. Texts are refused: whether "false" is meant as it
// looks is nothing to guess where it is about privileges or deletion.
func truthOf(node *yaml.Node) (bool, error) {
	var value bool
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!bool" {
		return false, errors.New("want true or false, without quotes")
	}
	if err := node.Decode(&value); err != nil {
		return false, fmt.Errorf("want true or false: %w", err)
	}
	return value, nil
}
