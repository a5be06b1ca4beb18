package origin

import (
	"net/url"
	"strings"
)

// Same reports whether two URLs have one scheme, host and port. url.Parse makes schemes
// lower case.
func Same(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && Lower(a.Hostname()) == Lower(b.Hostname()) && Port(a) == Port(b)
}

// Port returns a URL's port, or that of its scheme.
func Port(u *url.URL) string {
	if port := strings.TrimLeft(u.Port(), "0"); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443", "ssh": "22"}[u.Scheme]
}

// Lower folds ASCII letters only: Unicode's folding takes names for one that DNS keeps
// apart.
func Lower(host string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, host)
}
