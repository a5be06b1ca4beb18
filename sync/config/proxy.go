package config

import (
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// proxyVariables are the names under which programs look for a proxy: kubesync itself
// the first four, as Go's net/http does, and what it starts, such as curl in a command,
// all of them.
func proxyVariables() []string {
	return []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}
}

// findProxies returns the proxy variables that are set.
func findProxies() map[string]string {
	found := map[string]string{}
	for _, name := range proxyVariables() {
		if value := os.Getenv(name); value != "" {
			found[name] = value
		}
	}
	return found
}

// proxies checks the proxy variables. net/http takes one that it cannot read for none, and
// would contact the host directly, which whoever set it wants least of all.
func (b *builder) proxies() {
	found := b.host.proxies
	for _, name := range proxyVariables() {
		value, set := found[name]
		if !set {
			continue
		}
		b.redactor.Add(urlSecrets(value + " http://" + value)...)
		schemes := []string{"http", "https", "socks5", "socks5h"}
		if strings.EqualFold(name, "ALL_PROXY") {
			schemes = append(schemes, "socks", "socks4", "socks4a") // curl knows these, too
		}
		if err := checkProxy(value, schemes); err != nil {
			b.add(name, "%v", err)
		}
	}
	if unused := found["ALL_PROXY"] + found["all_proxy"]; unused != "" &&
		found["HTTPS_PROXY"]+found["https_proxy"]+found["HTTP_PROXY"]+found["http_proxy"] == "" {
		b.warn("ALL_PROXY: kubesync itself goes through no proxy because of it: set HTTPS_PROXY and HTTP_PROXY")
	}
}

// checkProxy refuses what net/http would take for no proxy, or for one that nobody means: it
// puts "http://" before whatever it cannot read. The error holds nothing of the text, as
// it may be a password that makes it unreadable.
func checkProxy(text string, schemes []string) error {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err == nil && proxy.Port() != "" {
		_, err = strconv.ParseUint(proxy.Port(), 10, 16)
	}
	switch {
	case err != nil || proxy.Hostname() == "" || strings.Trim(proxy.Path, "/") != "" || proxy.RawQuery != "" || proxy.Fragment != "":
		return errors.New("it is no proxy's address, and would be ignored: want [http://][user:password@]host[:port], special characters of a password percent-encoded")
	case !slices.Contains(schemes, proxy.Scheme): // url.Parse has made it lower case
		return errors.New("its scheme is none of " + strings.Join(schemes, ", "))
	}
	return nil
}
