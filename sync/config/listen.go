package config

import (
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
}

// Off tells that nothing is served.
func (l Listen) Off() bool { return l == Listen{} }

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

// parseListen reads "host:port", "unix:/path" or "off".
func parseListen(text string) (Listen, error) {
	if strings.EqualFold(text, "off") {
		return Listen{}, nil
	}
	if socket, found := strings.CutPrefix(text, "unix:"); found {
		if !filepath.IsAbs(socket) {
			return Listen{}, fmt.Errorf("%q names no absolute path of a socket: write unix:/path", text)
		}
		return Listen{Network: "unix", Address: filepath.Clean(socket)}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Listen{}, fmt.Errorf(`%q is neither "host:port", nor "unix:/path", nor "off"`, text)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Listen{}, fmt.Errorf("%q has no port from 0 to 65535", text)
	} else if strings.ContainsAny(host, " /@") {
		return Listen{}, fmt.Errorf("%q names no host", text)
	} else {
		return Listen{Network: "tcp", Address: net.JoinHostPort(host, strconv.FormatUint(number, 10))}, nil
	}
}
