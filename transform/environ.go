package transform

import (
	"maps"
	"slices"
	"strings"
)

// environment is a process environment by name.
type environment map[string]string

// cleanEnvironment returns what of the daemon's environment CMD may see: all but
// kubesync's own variables, KUBERNETES_*, proxy URLs with credentials in them, and
// the denied names. In Go's manner the last of several equal names counts.
func cleanEnvironment(daemon, own, deny []string) environment {
	env := environment{}
	for _, entry := range daemon {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		if slices.Contains(own, name) || slices.Contains(deny, name) ||
			strings.HasPrefix(name, "KUBERNETES_") || isProxyWithCredentials(name, value) {
			continue
		}
		env[name] = value
	}
	return env
}

// isProxyWithCredentials recognises every spelling that programs know: any case,
// with and without a scheme. An @ has no other meaning in a proxy's address, so
// one that cannot be parsed is not passed on either.
func isProxyWithCredentials(name, value string) bool {
	return strings.HasSuffix(strings.ToLower(name), "_proxy") && strings.Contains(value, "@")
}

// with returns a copy in which further variables are set.
func (e environment) with(more environment) environment {
	env := maps.Clone(e)
	maps.Copy(env, more)
	return env
}

// list returns NAME=value entries in name order.
func (e environment) list() []string {
	entries := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		entries = append(entries, name+"="+e[name])
	}
	return entries
}
