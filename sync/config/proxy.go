package config

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kubesync/kubesync/sync/config/redact"
)

// proxyVariables are the names under which programs look for a proxy: kubesync itself
// the first four, as Go's net/http does, and what it starts, such as curl in a command,
// all of them.
func proxyVariables() []string {
	return []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}
}

// proxies checks the proxy variables. net/http takes one that it cannot read for none, and
// would contact the host directly, which its user does not want.
func (b *builder) proxies() {
	found := b.host.set
	for _, name := range proxyVariables() {
		value := found[name]
		if value == "" {
			continue
		}
		b.redactor.Add(redact.URLs(value + " http://" + value)...)
		schemes := []string{"http", "https", "socks5", "socks5h"}
		if strings.EqualFold(name, "ALL_PROXY") {
			schemes = append(schemes, "socks", "socks4", "socks4a") // curl knows these, too
		}
		if _, err := parseProxy(value, schemes...); err != nil {
			b.add(name, "%v", err)
		}
	}
	if unused := found["ALL_PROXY"] + found["all_proxy"]; unused != "" &&
		found["HTTPS_PROXY"]+found["https_proxy"]+found["HTTP_PROXY"]+found["http_proxy"] == "" {
		b.warn("ALL_PROXY: kubesync itself goes through no proxy because of it: set HTTPS_PROXY and HTTP_PROXY")
	}
}

// parseProxy reads the address of a proxy, "http://" being the default scheme. It refuses what net/http
// would take for no proxy, or for one that no one means. The error holds nothing of the text, as it may be
// a password that makes it unreadable.
func parseProxy(text string, schemes ...string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err == nil && proxy.Port() != "" {
		_, err = strconv.ParseUint(proxy.Port(), 10, 16)
	}
	switch {
	case err != nil || proxy.Hostname() == "" || strings.Trim(proxy.Path, "/") != "" || proxy.RawQuery != "" || proxy.Fragment != "":
		return nil, errors.New("not the address of a proxy: use [http://][user:password@]host[:port], special characters of a password percent-encoded")
	case !slices.Contains(schemes, proxy.Scheme): // url.Parse has made it lower case
		return nil, errors.New("the scheme must be one of " + strings.Join(schemes, ", "))
	}
	return proxy, nil
}
