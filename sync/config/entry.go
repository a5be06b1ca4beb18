package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// entry is an object of the list as it is written. A key that is missing or null leaves
// the default.
type entry struct {
	URL         *text     `yaml:"url"`
	Cmd         *text     `yaml:"cmd"`
	YMLDir      *text     `yaml:"ymldir"`
	Privileged  privilege `yaml:"privileged"`
	Name        *text     `yaml:"name"` // see nameEntries
	VersionMode *text     `yaml:"version_mode"`
	Interval    *scalar   `yaml:"interval"`
	CredsFile   *text     `yaml:"creds_file"`
	Namespace   *text     `yaml:"namespace"`
	Namespaces  names     `yaml:"namespaces"`
	Prune       boolean   `yaml:"prune"`
	Recursive   boolean   `yaml:"recursive"`
	Suspend     boolean   `yaml:"suspend"`
}

// entryReader reads one entry of a list into a Repo.
type entryReader struct {
	number int    // counted from 1
	label  string // "entry 2 (https://host/x, line 7)"
	to     Repo
	list   *listReader
}

// entry reads the entry of that number, counted from 1.
func (l *listReader) entry(number int, node *yaml.Node) {
	e := &entryReader{number: number, label: fmt.Sprintf("entry %d (line %d)", number, node.Line), to: l.list.defaults, list: l}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		e.mistake("not an object: it must be an object with a url")
		return
	}
	var values map[string]yaml.Node
	if err := node.Decode(&values); err != nil { // for example a key that is there twice
		e.mistake("%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
		return
	}
	written := entry{Prune: boolean(e.to.Prune)}
	fields := map[string]any{}
	for field, value := range reflect.ValueOf(&written).Elem().Fields() {
		fields[field.Tag.Get("yaml")] = value.Addr().Interface()
	}
	decode := func(key string) bool {
		value := values[key]
		err := value.Decode(fields[key])
		if err != nil {
			e.mistake("%s: %v", key, err)
		}
		return err == nil
	}
	hasURL := decode("url") && e.url(written.URL)
	if hasURL {
		e.label = fmt.Sprintf("entry %d (%s, line %d)", number, e.to.URL, node.Line)
	}
	delete(values, "url")
	delete(fields, "url")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch _, known := fields[key]; {
		case key == "priviliged":
			e.mistake(`unknown key "priviliged": did you mean "privileged"?`)
		case !known:
			e.warn("unknown key %q, ignored: the keys are url, %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		default:
			decode(key)
		}
	}
	e.fill(written)
	if hasURL {
		l.entries = append(l.entries, e)
	}
}

// url takes the entry's URL, and reports whether there is one to work with.
func (e *entryReader) url(written *text) bool {
	if written == nil {
		e.mistake("url: required")
		return false
	}
	return set(e, "url", written, &e.to.URL, trimmed(repo.ParseURL))
}

// fill takes what is written, with the meaning that it has.
func (e *entryReader) fill(written entry) {
	set(e, "cmd", written.Cmd, &e.to.Command, func(command string) (string, error) {
		return strings.TrimSpace(command), transform.ParseCommand(command)
	})
	set(e, "ymldir", written.YMLDir, &e.to.YMLDir, e.directory)
	set(e, "name", written.Name, &e.to.Name, orNone(parseRepoName))
	set(e, "version_mode", written.VersionMode, &e.to.Version, trimmed(repo.ParseVersion))
	set(e, "interval", written.Interval, &e.to.Interval, trimmed(parseDuration))
	set(e, "creds_file", written.CredsFile, &e.to.Credentials, e.credentials)
	set(e, "namespace", written.Namespace, &e.to.Namespace, orNone(parseNamespace))
	for _, name := range written.Namespaces {
		set(e, "namespaces", &name, new(string), parseNamespace)
	}
	e.to.Namespaces = written.Namespaces
	e.to.Prune, e.to.Recursive, e.to.Suspend = bool(written.Prune), bool(written.Recursive), bool(written.Suspend)
	if written.Privileged.granted {
		e.to.Tier = manifest.System
	}
	if word := written.Privileged.word; word != "" {
		e.warn("privileged: %s is read as %v: write %v, without quotes", word, written.Privileged.granted, written.Privileged.granted)
	}
}

// set parses the value of a key, if the entry has it, and reports whether it is right.
func set[V ~string, T any](e *entryReader, key string, written *V, to *T, parse func(string) (T, error)) bool {
	if written == nil {
		return true
	}
	value, err := parse(string(*written))
	if err != nil {
		e.mistake("%s: %v", key, err)
		return false
	}
	*to = value
	return true
}

// trimmed returns a parser that ignores white space at the ends.
func trimmed[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) { return parse(strings.TrimSpace(text)) }
}

// orNone returns a parser to which an empty text is as good as none.
func orNone(parse func(string) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return parse(text)
	}
}

// directory takes a path with a slash in front as well, as the shell script put it
// behind the path of its clone.
func (e *entryReader) directory(value string) (string, error) {
	relative, rooted := insideRepo(value)
	directory, err := transform.ParseDir(relative)
	if err == nil && rooted {
		e.warn("ymldir: %q is taken relative to the root of the repo: write %q", value, directory)
	}
	return directory, err
}

// credentials does not look whether the file is there: it may come with the next
// rotation, and until then only this repo fails.
func (e *entryReader) credentials(name string) (Credentials, error) {
	if !filepath.IsAbs(name) {
		return Credentials{}, fmt.Errorf("%q is not an absolute path", name)
	}
	e.list.list.secrets.add(name)
	return Credentials{file: name, redactor: e.list.list.redactor}, nil
}

// finish takes the entry into the list, unless another has its name.
func (e *entryReader) finish() {
	if err := e.to.check(); err != nil {
		e.mistake("%v", err)
		return
	}
	if other, taken := e.list.names[e.to.Name]; taken {
		e.mistake(`the name %q is that of %s, too: give one of them another "name"`, e.to.Name, other)
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

// scalar is a text or a number, as it is written.
type scalar string

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *scalar) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return errors.New("must be a text, not an array or an object")
	}
	*s = scalar(node.Value)
	return nil
}

// text is a text. A number is refused: other readers of the list take 0123 and 1_000 for
// something else than what is written.
type text string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *text) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.ShortTag() != "!!str" {
		return fmt.Errorf("must be a text: write %s", strconv.Quote(node.Value))
	}
	return (*scalar)(t).UnmarshalYAML(node)
}

// names is an array of texts, or a text as in NAMESPACES. An empty one allows no
// namespace, nil all.
type names []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (n *names) UnmarshalYAML(node *yaml.Node) error {
	*n = names{}
	if node.Kind == yaml.SequenceNode {
		var elements []text
		err := node.Decode(&elements)
		for _, element := range elements {
			*n = append(*n, string(element))
		}
		return err
	}
	var list text
	err := list.UnmarshalYAML(node)
	*n = append(*n, splitList(string(list))...)
	return err
}

// boolean is true or false. Texts are refused: whether "false" is meant as it looks is
// nothing to guess where it is about privileges or deletion.
type boolean bool

// UnmarshalYAML implements yaml.Unmarshaler.
func (b *boolean) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!bool" {
		return errors.New("must be true or false, without quotes")
	}
	return node.Decode((*bool)(b))
}

// privilege is what an entry says about its privileges. The shell script took an entry for
// privileged with true, yes, y or on (to the YAML reader that it used these are one) and
// with the text "true". Words that cannot be taken for their opposite are read as they
// look; numbers and all else are refused, so that no right is given by guessing.
type privilege struct {
	granted bool
	word    string // in quotes, if it is not plainly true or false
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *privilege) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return (*boolean)(&p.granted).UnmarshalYAML(node)
	}
	p.word = strconv.Quote(node.Value)
	switch strings.ToLower(strings.TrimSpace(node.Value)) {
	case "true", "yes", "y", "on":
		p.granted = true
	case "false", "no", "n", "off", "":
	default:
		return fmt.Errorf("%s must be true or false, without quotes", p.word)
	}
	return nil
}
