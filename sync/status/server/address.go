package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// Listen is an address to serve on. The zero value serves nothing.
type Listen struct {
	Network string // "tcp" or "unix"
	Address string // "host:port", the host may be empty; or a socket's absolute path
	// Assumed says that this is the default address. If another process uses it, kubesync starts anyway.
	Assumed bool
}

// Off reports whether nothing is served.
func (l Listen) Off() bool { return l == Listen{} }

// Public reports whether other machines may reach the address.
func (l Listen) Public() bool {
	if l.Network != "tcp" {
		return false
	}
	host, _, err := net.SplitHostPort(l.Address)
	ip := net.ParseIP(host)
	return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Same reports whether two addresses are one.
func (l Listen) Same(other Listen) bool {
	return l.Network == other.Network && l.Address == other.Address
}

// String returns the address as it is written in the configuration.
func (l Listen) String() string {
	switch l.Network {
	case "":
		return "off"
	case "unix":
		return "unix:" + l.Address
	default:
		return l.Address
	}
}

// longestSocket is what fits into the kernel's sockaddr_un, less the final zero.
const longestSocket = 107

// ParseListen reads "host:port", "unix:/path" (or unix:///path) or "off".
func ParseListen(text string) (Listen, error) {
	if strings.EqualFold(text, "off") {
		return Listen{}, nil
	}
	if socket, found := strings.CutPrefix(text, "unix:"); found {
		if path, authority := strings.CutPrefix(socket, "//"); authority {
			socket = path
		}
		if !filepath.IsAbs(socket) {
			return Listen{}, fmt.Errorf("%q is not an absolute path of a socket: write unix:/path", text)
		}
		if len(socket) > longestSocket {
			return Listen{}, fmt.Errorf("%q is too long: the system allows %d bytes", text, longestSocket)
		}
		return Listen{Network: "unix", Address: filepath.Clean(socket)}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Listen{}, fmt.Errorf(`%q is neither "host:port", nor "unix:/path", nor "off"`, text)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Listen{}, fmt.Errorf("%q must have a port from 0 to 65535", text)
	} else if strings.ContainsAny(host, " /@") {
		return Listen{}, fmt.Errorf("%q names no host", text)
	} else {
		return Listen{Network: "tcp", Address: net.JoinHostPort(host, strconv.FormatUint(number, 10))}, nil
	}
}

// KeyPair names the files of a certificate and its key. The zero value is none.
type KeyPair struct {
	CertFile, KeyFile string
}

// Load reads the files.
func (k KeyPair) Load() (tls.Certificate, error) {
	certificate, err := tls.LoadX509KeyPair(k.CertFile, k.KeyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s and key %s: %w", k.CertFile, k.KeyFile, err)
	}
	return certificate, nil
}
