package repo

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubesync/kubesync/internal/origin"
)

const acceptedURLs = "accepted are https://, http:// and ssh:// URLs, git@host:path, and file:///path"

// URL is the address of a git repository. It keeps the credentials found in it
// apart and prints without them. URLs are comparable.
type URL struct {
	scheme string // http, https, ssh or file
	user   string // ssh only: who to log in as
	host   string // without brackets, lower case
	port   string // empty: the scheme's own
	path   string // http and https: escaped as on the wire; else as it is
	scp    bool   // was written as host:path; such a path may be relative

	credentials Credentials // http and https only
}

// ParseURL reads the address of a repository: https, http, ssh, file and the
// scp-like git@host:path. Its error never shows a password.
func ParseURL(s string) (URL, error) {
	u, err := parseURL(s)
	if err != nil {
		return URL{}, fmt.Errorf("git URL %q: %w", redactRaw(s), err)
	}
	return u, nil
}

func parseURL(s string) (URL, error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return URL{}, errors.New("it holds a control character or one that is no UTF-8")
	}
	scheme, _, found := strings.Cut(s, "://")
	if !found {
		return parseSCP(s)
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ssh", "file":
	default:
		return URL{}, errors.New(acceptedURLs)
	}
	raw, err := url.Parse(s)
	if err != nil {
		// The parser's error quotes what it could not read, which may be half of
		// a password.
		return URL{}, errors.New("it cannot be read; special characters in a user name or password must be percent-encoded (/ is %2F, @ is %40, # is %23, % is %25)")
	}
	if raw.RawQuery != "" || raw.ForceQuery || raw.Fragment != "" || strings.HasSuffix(s, "#") {
		return URL{}, errors.New("it has a ? or a #, which no git URL has; in a password write them as %3F and %23")
	}
	if raw.Scheme == "file" {
		return parseFile(raw)
	}
	return parseRemote(raw)
}

// parseSCP reads [user@]host:path. As in git the colon comes before any slash
// and an IPv6 host stands in brackets.
func parseSCP(s string) (URL, error) {
	u := URL{scheme: "ssh", scp: true}
	rest := s
	if at := strings.Index(rest, "@"); at >= 0 && !strings.ContainsAny(rest[:at], ":/[") {
		u.user, rest = rest[:at], rest[at+1:]
	}
	if strings.HasPrefix(rest, "[") {
		host, after, ok := strings.Cut(rest[1:], "]")
		if !ok || !strings.HasPrefix(after, ":") {
			return URL{}, errors.New(acceptedURLs)
		}
		u.host, u.path = host, after[1:]
	} else {
		host, after, ok := strings.Cut(rest, ":")
		if !ok || strings.Contains(host, "/") {
			if strings.HasPrefix(s, "/") {
				return URL{}, fmt.Errorf("a repository on disk is written file://%s", s)
			}
			return URL{}, errors.New(acceptedURLs)
		}
		u.host, u.path = host, after
	}
	if u.user == "" && strings.Contains(u.path, "@") {
		// user:password@host/path with its scheme forgotten reads as a path on
		// host "user", and would be printed as such.
		return URL{}, errors.New("it has an @ after the colon; " + acceptedURLs)
	}
	u.host = origin.Lower(u.host)
	if strings.HasPrefix(u.path, ":") { // ext::command and its like
		return URL{}, errors.New(acceptedURLs)
	}
	return u.checked()
}

func parseFile(raw *url.URL) (URL, error) {
	if raw.User != nil || (raw.Host != "" && raw.Host != "localhost") {
		return URL{}, errors.New("a file URL names no host: it begins file:/// and an absolute path follows")
	}
	return URL{scheme: "file", path: raw.Path}.checked()
}

func parseRemote(raw *url.URL) (URL, error) {
	u := URL{
		scheme: raw.Scheme,
		host:   origin.Lower(raw.Hostname()),
		port:   raw.Port(),
		path:   raw.Path,
	}
	if raw.User == nil && (u.port != "" || strings.HasSuffix(raw.Host, ":")) && strings.Contains(raw.EscapedPath(), "@") {
		// https://user:12/34@host/ reads as host "user", port 12: the password
		// would end up in the path, and with it in every message.
		return URL{}, errors.New("it has an @ after the host: if that ends a password, write the password's / as %2F; if it belongs to the path, write it as %40")
	}
	if u.scheme == "ssh" {
		// A password is of no use to ssh, which works with SSH_KEY_FILE.
		u.user = raw.User.Username()
		return u.checked()
	}
	u.path = raw.EscapedPath()
	u.credentials.User = raw.User.Username()
	u.credentials.Password, _ = raw.User.Password()
	return u.checked()
}

// checked refuses a URL that names no host or no repository. A slash at the end, which
// git reads over, is taken off: with and without it the URL is the same.
func (u URL) checked() (URL, error) {
	if address, err := netip.ParseAddr(u.host); !u.IsFile() && (err != nil || address.Zone() != "") &&
		(u.host == "" || strings.HasPrefix(u.host, "-") || strings.ContainsAny(u.host, "%:@/\\[]<>\"' ")) {
		return URL{}, errors.New("it names no host; " + acceptedURLs)
	}
	if u.Name() == "" {
		return URL{}, errors.New("it names no repository: the path is missing")
	}
	u.path = strings.TrimRight(u.path, "/")
	return u, nil
}

// String returns the URL without credentials, which is the only form to print.
// For ssh the user is kept: it is "git" for everyone and no secret.
func (u URL) String() string {
	switch {
	case u.scheme == "":
		return ""
	case u.scheme == "file":
		return (&url.URL{Scheme: "file", Path: u.path}).String()
	case u.scp:
		host := u.authority()
		if u.user != "" {
			host = u.user + "@" + host
		}
		return host + ":" + u.path
	case u.scheme == "ssh":
		out := url.URL{Scheme: "ssh", Host: u.authority(), Path: u.path}
		if u.user != "" {
			out.User = url.User(u.user)
		}
		return out.String()
	default:
		return u.scheme + "://" + u.authority() + u.path
	}
}

// GoString returns String, so that %#v prints no password either.
func (u URL) GoString() string { return u.String() }

// MarshalText returns String.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// authority is host[:port] as a URL has it.
func (u URL) authority() string {
	host := u.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.port != "" {
		host += ":" + u.port
	}
	return host
}

// Name returns the last element of the path without .git, which is what a
// repository is called unless it is given a name.
func (u URL) Name() string {
	p := strings.Trim(u.path, "/")
	if u.scheme == "http" || u.scheme == "https" {
		if plain, err := url.PathUnescape(p); err == nil {
			p = strings.Trim(plain, "/")
		}
	}
	// The .git of a clone is called what the clone is called.
	p = strings.TrimSuffix(p, "/.git")
	name := strings.TrimSuffix(path.Base("/"+p), ".git")
	if name == "/" || name == "." || name == ".." || name == "~" {
		return ""
	}
	return name
}

// IsFile reports whether the repository lies on this machine's disk.
func (u URL) IsFile() bool { return u.scheme == "file" }

// Credentials returns those that were written into the URL, false if there were
// none. They are what a redactor of log lines has to look for.
func (u URL) Credentials() (Credentials, bool) {
	return u.credentials, u.credentials != Credentials{}
}

// onServer is the URL of a repository on a server, without a password.
func (u URL) onServer() (*url.URL, error) {
	if u.scheme == "ssh" {
		return &url.URL{Scheme: u.scheme, User: url.User(u.user), Host: u.authority(), Path: u.path}, nil
	}
	return url.Parse(u.String())
}

// redactRaw returns what may be shown of text that could not be parsed as a URL:
// where a secret may hide, it is cut.
func redactRaw(s string) string {
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		scheme, rest = "", s
	} else {
		scheme += "://"
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "…" + rest[at:]
	} else if before, _, port := strings.Cut(rest, ":"); port && found {
		rest = before + ":…"
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end+1] + "…"
	}
	return scheme + rest
}
