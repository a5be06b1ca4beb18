package curl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubesync/kubesync/sync/config/flags"
)

// idleFlag is a flag of curl that changes nothing about the list that kubesync gets.
type idleFlag struct {
	name, short string
	shortNo     string // of its negation
	value       bool   // it takes one
}

// idleFlags returns curl's flags that are accepted and have no effect, as their work is
// done anyway or has nothing to do with a list. A flag that could make the fetch less
// safe than its user believes must not be here.
func idleFlags() []idleFlag {
	return []idleFlag{
		// What curl prints besides the list.
		{name: "silent", short: "s"}, {name: "show-error", short: "S"}, {name: "verbose", short: "v"}, {name: "progress-bar", short: "#"},
		{name: "progress-meter"}, {name: "styled-output"}, {name: "suppress-connect-headers"}, {name: "buffer", shortNo: "N"}, {name: "stderr", value: true},
		// A status other than 200 is a failure anyway.
		{name: "fail", short: "f"}, {name: "fail-with-body"}, {name: "fail-early"},
		// The shell script gave this one by itself.
		{name: "location", short: "L"},
		// How bytes travel, and for how long an idle connection lives: each one serves
		// one request.
		{name: "keepalive"}, {name: "keepalive-time", value: true}, {name: "tcp-nodelay"}, {name: "tcp-fastopen"}, {name: "sessionid"},
		{name: "false-start"}, {name: "expect100-timeout", value: true}, {name: "happy-eyeballs-timeout-ms", value: true}, {name: "tr-encoding"},
		{name: "http2"}, {name: "alpn"}, {name: "npn"},
		// TLS 1.2 is the least that is spoken.
		{name: "tlsv1", short: "1"}, {name: "tlsv1.0"}, {name: "tlsv1.1"}, {name: "tlsv1.2"},
		// Other protocols, and libraries, than those in use.
		{name: "ssl"}, {name: "ssl-reqd"}, {name: "ssl-allow-beast"}, {name: "ssl-no-revoke"}, {name: "ssl-revoke-best-effort"},
		// So it is without them: basic authentication, GET, a URL as written, no .curlrc.
		{name: "basic"}, {name: "get", short: "G"}, {name: "globoff", short: "g"}, {name: "path-as-is"}, {name: "disable", short: "q"},
	}
}

// defineIdle adds the flags without effect and, as curl does, their negations.
func defineIdle(set *pflag.FlagSet) {
	for _, idle := range idleFlags() {
		flag := set.VarPF(flags.Ignored{}, idle.name, idle.short, "")
		if !idle.value {
			flag.NoOptDefVal = "true"
			set.VarPF(flags.Ignored{}, "no-"+idle.name, idle.shortNo, "").NoOptDefVal = "true"
		}
	}
}

// defineSwitch adds a flag that is on or off, and its negation; the last one counts.
func defineSwitch(set *pflag.FlagSet, value *bool, name, short string) {
	set.VarPF(&switchTo{value: value, to: true}, name, short, "").NoOptDefVal = "true"
	set.VarPF(&switchTo{value: value, to: false}, "no-"+name, "", "").NoOptDefVal = "true"
}

// switchTo is the value of a flag that sets another variable to true or false.
type switchTo struct {
	value *bool
	to    bool
}

func (s *switchTo) String() string { return "" }
func (s *switchTo) Type() string   { return "bool" }

// Set implements pflag.Value. Without a value, which curl's flags of this kind never
// have, the text is "true".
func (s *switchTo) Set(text string) error {
	given, err := strconv.ParseBool(text)
	if err != nil {
		return err
	}
	*s.value = given == s.to
	return nil
}

// advise says behind each problem what to do about it, and behind the last of those that
// have no advice of their own what is accepted.
func advise(problems []error) {
	last := -1
	for i, problem := range problems {
		var unsupported *flags.Unsupported
		text := ""
		if errors.As(problem, &unsupported) {
			text = advice(strings.TrimLeft(unsupported.Written, "-"))
		}
		if text == "" {
			last = i
			continue
		}
		problems[i] = fmt.Errorf("%w: %s", problem, text)
	}
	if last >= 0 {
		problems[last] = fmt.Errorf("%w; %s", problems[last], accepted)
	}
}

const accepted = "accepted are --cacert --capath -E/--cert --key -u/--user --oauth2-bearer -H/--header -A/--user-agent -b/--cookie " +
	"-k/--insecure --connect-timeout -m/--max-time --retry and its like, -x/--proxy -U/--proxy-user --noproxy --resolve --compressed --proto " +
	"--tlsv1.2 --http1.1 -4 -6 --max-redirs, and flags that change nothing here, such as -s -S -f -v and -L"

// advice says what to do about a flag of curl that is not supported for a reason,
// nothing about others.
func advice(flag string) string {
	switch flag {
	case "location-trusted":
		return "it would send credentials to wherever a redirect leads: without it they go to the server in CONFIG alone"
	case "n", "netrc", "netrc-optional", "netrc-file":
		return "write the credentials as -u user:password"
	case "anyauth", "digest", "ntlm", "negotiate":
		return "only basic authentication (-u) and headers (-H) are"
	case "ciphers", "tls13-ciphers", "curves", "pinnedpubkey", "crlfile", "cert-status", "2", "sslv2", "3", "sslv3":
		return "the connection would be less safe than this flag says; --cacert, --tlsv1.3 and --proto =https are"
	case "pass":
		return "decrypt the key"
	case "K", "config":
		return "write its flags into CURL_OPTIONS"
	case "O", "remote-name", "i", "include", "I", "head", "D", "dump-header", "w", "write-out":
		return "the list alone is fetched"
	default:
		return ""
	}
}
