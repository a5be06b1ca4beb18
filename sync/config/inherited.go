package config

import (
	"fmt"
	"regexp"
	"strings"
)

// inherited warns of variables that the shell script, its git or its curl understood in
// another way, for users who change only the image.
func (b *builder) inherited() {
	if off := switchedOff(b.host.set); len(off) > 0 {
		b.warn("%s: off; for the shell script any text meant on: write 1 to keep it on", strings.Join(off, ", "))
	}
	if unused := unusedVariables(b.host.set); len(unused) > 0 {
		b.warn("set and not used, kubesync runs no git or curl: %s", strings.Join(unused, "; "))
	}
	if percentEncoded.MatchString(b.env.RepoCreds) {
		b.warn("REPOCREDS: percent-encoding is sent as it is, but the git of the shell script decoded it: write the decoded characters")
	}
}

// percentEncoded finds what git decodes in the credentials that the script stored for it.
var percentEncoded = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// switchedOff returns the variables of the script that say off, which it took for on: any
// text that was not empty did.
func switchedOff(set map[string]string) []string {
	var off []string
	for _, name := range []string{"DRYRUN", "ONCE", "DEBUG"} {
		var on truth
		if text := strings.TrimSpace(set[name]); text != "" && on.Decode(text) == nil && !bool(on) {
			off = append(off, name+"="+text)
		}
	}
	return off
}

// unusedVariables returns variables of git and curl that are set and not used here, each
// with what to do instead. Their values may be secrets.
func unusedVariables(set map[string]string) []string {
	var unused []string
	for _, variable := range [][2]string{
		{"GIT_SSL_NO_VERIFY", "certificates are always checked, name the server's CA in GIT_SSL_CAINFO"},
		{"GIT_SSL_CERT", "there are no client certificates for git, use REPOCREDS or ssh"},
		{"GIT_SSH_COMMAND", "use SSH_KEY_FILE and SSH_KNOWN_HOSTS_FILE"},
		{"GIT_SSH", "use SSH_KEY_FILE and SSH_KNOWN_HOSTS_FILE"},
		{"GIT_ASKPASS", "use REPOCREDS_FILE"},
		{"GIT_CONFIG_COUNT", "use the variables of kubesync"},
		{"GIT_CONFIG_GLOBAL", "use the variables of kubesync"},
		{"CURL_CA_BUNDLE", "use --cacert in CURL_OPTIONS"},
		{"NETRC", "use REPOCREDS_FILE for git, and -u in CURL_OPTIONS"},
	} {
		if set[variable[0]] != "" {
			unused = append(unused, fmt.Sprintf("%s (%s)", variable[0], variable[1]))
		}
	}
	return unused
}

// environ returns the variables of a process by name.
func environ(pairs []string) map[string]string {
	set := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return set
}
