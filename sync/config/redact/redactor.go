package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mask stands where a secret stood.
const mask = "***"

// shortestSecret is the length in bytes from which a secret is masked: to replace
// each "a" of a log would destroy the log, and give the secret away as well.
const shortestSecret = 4

// Redactor masks secrets in text. It is made for the boundary where a log leaves the
// process: whatever a library puts into an error, a password that kubesync knows
// does not get past it. It may be used concurrently.
type Redactor struct {
	mu       sync.RWMutex
	known    map[string]bool // the secrets as given
	forms    []string        // all spellings of them, longest first
	replacer *strings.Replacer
}

// New returns a redactor that knows these secrets.
func New(secrets ...string) *Redactor {
	r := &Redactor{known: map[string]bool{}, replacer: strings.NewReplacer()}
	r.Add(secrets...)
	return r
}

// Add makes further secrets known, for example the new content of a rotated file.
// What was known stays known. Secrets shorter than 4 bytes are left out.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := len(r.known)
	for _, secret := range secrets {
		if len(secret) >= shortestSecret && !r.known[secret] {
			r.known[secret] = true
			r.forms = append(r.forms, spellings(secret)...)
		}
	}
	if len(r.known) == count {
		return
	}
	// Where several match at one place, the replacer takes the first that it was given.
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(r.forms))
	for _, form := range r.forms {
		pairs = append(pairs, form, mask)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// String returns the text with every secret masked.
func (r *Redactor) String(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.replacer.Replace(text)
}

// Writer returns a writer that masks what goes through it to w. A secret is found if
// it arrives in one Write, which holds for zerolog: it writes a whole line at a time,
// the console format included. It must be the last writer before the stream, as
// formatting after it could not be seen through.
func (r *Redactor) Writer(w io.Writer) io.Writer { return redactingWriter{redactor: r, to: w} }

type redactingWriter struct {
	redactor *Redactor
	to       io.Writer
}

// Write implements io.Writer: it reports the length of what it was given, not of
// what it wrote.
func (w redactingWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.redactor.String(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// spellings returns the forms in which a secret may turn up: as it is, as part of a
// URL, encoded in a header, and each of these as Go and JSON would quote it.
func spellings(secret string) []string {
	plain := []string{
		secret,
		url.QueryEscape(secret),
		url.PathEscape(secret),
		url.User(secret).String(),
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
	if user, password, found := strings.Cut(secret, ":"); found {
		plain = append(plain, url.UserPassword(user, password).String())
	}
	all := map[string]bool{}
	for _, form := range plain {
		quoted := strconv.Quote(form)
		for _, text := range []string{form, quoted[1 : len(quoted)-1]} {
			all[text] = true
			all[jsonText(text, true)] = true
			all[jsonText(text, false)] = true
		}
	}
	forms := make([]string, 0, len(all))
	for form := range all {
		if len(form) >= shortestSecret {
			forms = append(forms, form)
		}
	}
	slices.Sort(forms)
	return forms
}

// jsonText returns a text as it stands inside a JSON string, with or without the
// escapes for HTML: encoding/json writes them and zerolog does not.
func jsonText(text string, html bool) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(text); err != nil {
		return text // not possible for a string
	}
	quoted := strings.TrimSuffix(buffer.String(), "\n")
	return quoted[1 : len(quoted)-1]
}
