package notify

import (
	"errors"
	"net/url"
	"strings"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// Address is where notifications are sent. Its path and query are often the only
// secret that the receiver asks for: printed in any way it shows scheme and host alone.
type Address struct {
	url   *url.URL // http or https
	slack bool
}

// Slack reports whether the receiver takes messages as Slack's incoming webhooks do.
func (n Address) Slack() bool { return n.slack }

// Secret returns the whole address, to send to and never to print.
func (n Address) Secret() string { return n.url.String() }

// String returns scheme and host.
func (n Address) String() string {
	text := n.url.Scheme + "://" + n.url.Host
	if n.slack {
		return slackPrefix + text
	}
	return text
}

// GoString returns String.
func (n Address) GoString() string { return n.String() }

// MarshalText returns String.
func (n Address) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// slackPrefix stands before the scheme of an address for Slack's messages.
const slackPrefix = "slack+"

// ParseAddress reads one address. The error shows nothing of it.
func ParseAddress(text string) (Address, error) {
	plain, slack := strings.CutPrefix(text, slackPrefix)
	parsed, err := url.Parse(plain)
	switch {
	case err != nil:
		return Address{}, errors.New("not a URL: it must start with https://, http://, slack+https:// or slack+http://")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return Address{}, errors.New("it must start with https://, http://, slack+https:// or slack+http://")
	case parsed.Hostname() == "":
		return Address{}, errors.New("no host")
	case parsed.Fragment != "":
		return Address{}, errors.New("# must be written as %23")
	}
	return Address{url: parsed, slack: slack}, nil
}

// longEnough is from how many characters on a part of a path is taken for a secret:
// Slack's, Discord's and their likes' have 24 and more, ordinary words do not.
const longEnough = 16

// Secrets returns what of an address must not be printed.
func (n Address) Secrets() []string {
	secrets := append(redact.URLs(n.url.String()), n.url.String())
	for part := range strings.SplitSeq(n.url.Path, "/") {
		if len(part) >= longEnough {
			secrets = append(secrets, part)
		}
	}
	for _, values := range n.url.Query() {
		for _, value := range values {
			if len(value) >= longEnough {
				secrets = append(secrets, value)
			}
		}
	}
	if path := n.url.EscapedPath(); len(path) >= longEnough {
		secrets = append(secrets, path)
	}
	return secrets
}
