package config

import (
	"errors"
	"net/url"
	"strings"
)

// NotifyURL is where notifications are sent. Its path and query are often the only
// secret that the receiver asks for: printed in any way it shows scheme and host alone.
type NotifyURL struct {
	url   *url.URL // http or https
	slack bool
}

// Slack tells whether the receiver takes messages as Slack's incoming webhooks do.
func (n NotifyURL) Slack() bool { return n.slack }

// Secret returns the whole address, to send to and never to print.
func (n NotifyURL) Secret() string { return n.url.String() }

// String returns scheme and host.
func (n NotifyURL) String() string {
	text := n.url.Scheme + "://" + n.url.Host
	if n.slack {
		return slackPrefix + text
	}
	return text
}

// GoString returns String.
func (n NotifyURL) GoString() string { return n.String() }

// MarshalText returns String.
func (n NotifyURL) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// slackPrefix stands before the scheme of an address for Slack's messages.
const slackPrefix = "slack+"

// parseNotifyURL reads one address. The error shows nothing of it.
func parseNotifyURL(text string) (NotifyURL, error) {
	plain, slack := strings.CutPrefix(text, slackPrefix)
	parsed, err := url.Parse(plain)
	switch {
	case err != nil:
		return NotifyURL{}, errors.New("it cannot be read as a URL: want https://, http://, slack+https:// or slack+http://")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return NotifyURL{}, errors.New("its scheme is none of https://, http://, slack+https:// and slack+http://")
	case parsed.Hostname() == "":
		return NotifyURL{}, errors.New("it names no host")
	case parsed.Fragment != "":
		return NotifyURL{}, errors.New("it has a #, which no server would see: write %23")
	}
	return NotifyURL{url: parsed, slack: slack}, nil
}

// longEnough is from how many characters on a part of a path is taken for a secret:
// Slack's, Discord's and their likes' have 24 and more, ordinary words do not.
const longEnough = 16

// secrets returns what of an address must not be printed.
func (n NotifyURL) secrets() []string {
	secrets := append(urlSecrets(n.url.String()), n.url.String())
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
