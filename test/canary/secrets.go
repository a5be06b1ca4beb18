package canary

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Shortest is how many characters a secret has at least.
const Shortest = 8

// Kind says where a secret may be.
type Kind int

const (
	// Credential is a secret of kubesync's own: it may be nowhere.
	Credential Kind = iota
	// Data stands in a Secret that is in git: it may be among a repository's files.
	Data
)

// Secrets are values that must not be found. Safe for concurrent use.
type Secrets struct {
	mu       sync.Mutex // guards what follows
	known    map[string]secret
	searched Searched
}

// Searched is what a search has covered.
type Searched struct {
	Texts, Bytes, Secrets int
}

// Totals add up what several searches have covered. Safe for concurrent use.
type Totals struct {
	mu       sync.Mutex // guards what follows
	runs     int
	searched Searched
}

// Add adds a search.
func (t *Totals) Add(one Searched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.searched.Texts += one.Texts
	t.searched.Bytes += one.Bytes
	t.searched.Secrets += one.Secrets
}

// String is for the end of a suite.
func (t *Totals) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("secrets: %d runs searched for %d secrets in %d texts (%.1f MB)", t.runs, t.searched.Secrets, t.searched.Texts, float64(t.searched.Bytes)/1e6)
}

// secret is a value in all the forms in which it is searched for.
type secret struct {
	kind  Kind
	forms []form
}

// form is one way in which a secret may be written.
type form struct {
	name string
	text []byte
}

// Add makes a value a secret. Of a value of several lines each is one, if it is long
// enough. The error says that the value is too short.
func (s *Secrets) Add(kind Kind, value string) error {
	if len(value) < Shortest {
		return fmt.Errorf("a secret of less than %d characters is found everywhere", Shortest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]secret{}
	}
	for line := range strings.Lines(value) {
		line = strings.TrimRight(line, "\r\n")
		if _, known := s.known[line]; known || len(line) < Shortest || strings.HasPrefix(line, "-----") {
			continue
		}
		s.known[line] = secret{kind: kind, forms: forms(line)}
	}
	return nil
}

// Search looks for all secrets, or those of some kinds, in a text. The error tells
// which form of the how-manieth secret was found in what, and what stands around it.
func (s *Secrets) Search(what string, text []byte, kinds ...Kind) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.searched.Texts++
	s.searched.Bytes += len(text)
	for n, value := range slices.Sorted(maps.Keys(s.known)) {
		one := s.known[value]
		if len(kinds) > 0 && !slices.Contains(kinds, one.kind) {
			continue
		}
		for _, form := range one.forms {
			if at := bytes.Index(text, form.text); at >= 0 {
				return fmt.Errorf("%s holds secret %d (it begins with %.3q) %s, after %q", what, n+1, value, form.name, text[max(0, at-100):at])
			}
		}
	}
	return nil
}

// Covered tells what was searched so far, and for how many secrets.
func (s *Secrets) Covered() Searched {
	s.mu.Lock()
	defer s.mu.Unlock()
	covered := s.searched
	covered.Secrets = len(s.known)
	return covered
}

// forms returns the ways in which a secret may be written, each once.
func forms(value string) []form {
	var all []form
	add := func(name, text string) {
		if len(text) >= Shortest-2 && !slices.ContainsFunc(all, func(f form) bool { return string(f.text) == text }) {
			all = append(all, form{name, []byte(text)})
		}
	}
	add("as it is", value)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		add("in base64", encoding.EncodeToString([]byte(value)))
		for shift := range 3 {
			add("in base64", within(encoding, value, shift))
		}
	}
	add("escaped for a URL", url.QueryEscape(value))
	add("escaped for a URL", url.PathEscape(value))
	add("escaped for a URL", url.UserPassword("", value).String()[1:])
	add("escaped for JSON", escaped(value, true))
	add("escaped for JSON", escaped(value, false))
	quoted := strconv.Quote(value)
	add("quoted", quoted[1:len(quoted)-1])
	ascii := strconv.QuoteToASCII(value)
	add("quoted", ascii[1:len(ascii)-1])
	add("in hexadecimal", hex.EncodeToString([]byte(value)))
	return all
}

// within returns what of a value's base64 is the same whatever stands before it
// (shift bytes, by three) and after it.
func within(encoding *base64.Encoding, value string, shift int) string {
	text := encoding.EncodeToString(append(make([]byte, shift), value...))
	first := []int{0, 2, 3}[shift]        // digits that hold bits of what stands before
	whole := (shift + len(value)) * 8 / 6 // digits that hold no bit of what stands after
	return text[min(first, whole):whole]
}

// escaped returns a value as it stands between the quotes of JSON.
func escaped(value string, html bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(value); err != nil {
		return value // no string fails
	}
	text := strings.TrimSuffix(out.String(), "\n")
	return text[1 : len(text)-1]
}
