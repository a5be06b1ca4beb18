package curl

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpproxy"
)

// directHosts is what --noproxy says: hosts that are asked without a proxy.
type directHosts struct {
	all      bool
	names    []string // without a dot in front; they cover what is below them
	networks []netip.Prefix
}

// parseDirectHosts reads a list of names, addresses and networks, or "*". What is none
// of them matches nothing, as with curl.
func parseDirectHosts(text string) directHosts {
	if strings.TrimSpace(text) == "*" {
		return directHosts{all: true}
	}
	var direct directHosts
	for _, item := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		bare := strings.Trim(item, "[]")
		if network, err := netip.ParsePrefix(bare); err == nil {
			direct.networks = append(direct.networks, network.Masked())
		} else if address, err := netip.ParseAddr(bare); err == nil {
			direct.networks = append(direct.networks, netip.PrefixFrom(address, address.BitLen()))
		} else {
			direct.names = append(direct.names, strings.Trim(item, "."))
		}
	}
	return direct
}

// covers reports whether a host, without brackets, is asked without a proxy.
func (d directHosts) covers(host string) bool {
	if d.all {
		return true
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(d.networks, func(network netip.Prefix) bool { return network.Contains(address.Unmap()) })
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(d.names, func(name string) bool {
		return name != "" && (host == name || strings.HasSuffix(host, "."+name))
	})
}

// proxyOf returns the function that finds the proxy for a request, nil for none at all.
func (o Options) proxyOf() func(*http.Request) (*url.URL, error) {
	proxyFor := http.ProxyFromEnvironment
	switch {
	case o.noProxy:
		return nil
	case o.proxy != nil:
		proxyFor = http.ProxyURL(o.proxy)
	case o.direct != nil:
		// What the environment excepts from its proxies counts no more.
		environment := httpproxy.FromEnvironment()
		environment.NoProxy = ""
		find := environment.ProxyFunc()
		proxyFor = func(request *http.Request) (*url.URL, error) { return find(request.URL) }
	}
	if o.direct == nil {
		return proxyFor
	}
	return func(request *http.Request) (*url.URL, error) {
		if o.direct.covers(request.URL.Hostname()) {
			return nil, nil
		}
		return proxyFor(request)
	}
}

// resolved is what --resolve says: addresses by "host:port", where a host may be "*".
type resolved map[string][]string

// add reads one value of --resolve: [+]host:port:address[,address]…, or -host:port,
// which takes back one from before. The error says what is wrong with the value.
func (r *resolved) add(text string) error {
	malformed := errors.New("must be of the form host:port:address[,address]…")
	text, remove := strings.CutPrefix(text, "-")
	host, rest, found := strings.Cut(strings.TrimPrefix(text, "+"), ":")
	port, addresses, hasAddresses := strings.Cut(rest, ":")
	if number, err := strconv.ParseUint(port, 10, 16); !found || err != nil || number == 0 || host == "" || hasAddresses == remove {
		return malformed
	}
	key := net.JoinHostPort(strings.ToLower(host), port)
	if remove {
		delete(*r, key)
		return nil
	}
	var targets []string
	for address := range strings.SplitSeq(addresses, ",") {
		address = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
		if _, err := netip.ParseAddr(address); err != nil {
			return malformed
		}
		targets = append(targets, net.JoinHostPort(address, port))
	}
	if *r == nil {
		*r = resolved{}
	}
	(*r)[key] = targets
	return nil
}

// addresses returns where to connect to instead of host:port, nil for itself.
func (r resolved) addresses(address string) []string {
	if targets, found := r[strings.ToLower(address)]; found {
		return targets
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	return r[net.JoinHostPort("*", port)]
}

// dial connects as --resolve, -4 and -6 say. The first address that answers is taken.
func (o Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: o.connectTimeout}
	targets := o.resolve.addresses(address)
	if targets == nil {
		return dialer.DialContext(ctx, network+o.family, address)
	}
	var failure error
	for _, target := range targets {
		connection, err := dialer.DialContext(ctx, network, target)
		if err == nil {
			return connection, nil
		}
		failure = err
	}
	return nil, failure
}
