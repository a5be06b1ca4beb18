package config

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"

	"github.com/kubesync/kubesync/internal/limits"
)

// environment is every variable that kubesync reads, as envconfig finds it. All
// fields but the truth values are plain text: envconfig stops at the first value that
// it cannot parse, and prints it, but a user needs all mistakes at once and no password
// ever. build does the parsing.
//
// The tags are the only place of a variable's default and meaning. The table in the
// documentation and "kubesync help" are generated from them:
//
//	default  the value of a variable that is unset or empty
//	auto     stands in for a default that depends on the surroundings, or none
//	desc     the meaning; code stands between single quotes
//	hidden   set for a variable that is not documented on its own
//	verbatim set where white space at the ends may belong to the value
type environment struct {
	Repo   string `envconfig:"REPO" desc:"The git repos to sync, separated by commas or white space: 'https://', 'http://', 'ssh://', 'git@host:path' or 'file://'. Either 'REPO' or 'CONFIG' is required; with both, all repos of both are synced."`
	Name   string `envconfig:"NAME" auto:"the last part of its URL; with 'DRYRUN' and 'VERSION_MODE=worktree' the last part of the URL of remote 'origin'" desc:"Name of the repo in 'REPO', if it holds exactly one. Its ConfigMap and its Lease are named after it."`
	Config string `envconfig:"CONFIG" auto:"'/kubesync.json' if that file exists and 'REPO' is not set" desc:"Location of the list of repos: '/path', 'file:///path', 'http://' or 'https://'. It is read again at every interval."`

	Cmd        string `envconfig:"CMD" desc:"Command that generates manifests from the files of each repo in 'REPO'. It is split into words as by a shell, and runs without a shell."`
	CmdOn      string `envconfig:"CMD_ON" default:"interval" desc:"When 'CMD' runs: 'interval' for every sync, because its output may depend on more than the repo; 'revision' for new revisions only."`
	CmdSandbox string `envconfig:"CMD_SANDBOX" default:"auto" desc:"Confinement of 'CMD' by Landlock. 'auto': if the kernel has no Landlock, commands of application repos are refused and those of system repos run with a warning. 'require': both are refused. 'off': commands are not confined."`
	CmdEnvDeny string `envconfig:"CMD_ENV_DENY" desc:"Further environment variables to keep from 'CMD', separated by commas or white space."`

	YmlDir    string `envconfig:"YMLDIR" desc:"Directory or file of the manifests in each repo in 'REPO', relative to its root."`
	Recursive truth  `envconfig:"RECURSIVE" default:"off" desc:"Read manifests from subdirectories, too (repos in 'REPO')."`
	Tier      string `envconfig:"TIER" default:"system" desc:"Permissions of the repos in 'REPO': 'system' for all objects, 'application' for namespaced workloads in namespaces that are not system namespaces."`

	Interval    string `envconfig:"INTERVAL" default:"300" desc:"Interval between two syncs of a repo, at least one second: seconds, or a duration such as '90s' or '5m'. A jitter of 10 % spreads the load."`
	VersionMode string `envconfig:"VERSION_MODE" auto:"'branch:master'" desc:"Revision to sync: 'branch:NAME', 'commit:SHA', 'tag:NAME', 'tag:latest', 'semver:RANGE', or 'worktree' (uncommitted files of a 'file://' repo). If it is not set and a repo has no branch 'master', its default branch is synced."`

	RepoCreds     string `envconfig:"REPOCREDS" verbatim:"true" desc:"Credentials for repos over http and https: 'user:password', or 'user' alone. They are sent only to the host in the URL of the repo, never to the target of a redirect."`
	RepoCredsFile string `envconfig:"REPOCREDS_FILE" desc:"File with the credentials, in the format of 'REPOCREDS'. It is read at every fetch, so that a rotated Secret needs no restart."`

	SSHKeyFile        string `envconfig:"SSH_KEY_FILE" desc:"Private key for repos over ssh."`
	SSHKnownHostsFile string `envconfig:"SSH_KNOWN_HOSTS_FILE" desc:"Host keys for repos over ssh. A host that is not listed in it is an error."`

	GitSSLCAInfo string `envconfig:"GIT_SSL_CAINFO" auto:"the roots of the system" desc:"File of CA certificates for repos over https ('GIT_SSL_CAIFO' is an alias)."`
	GitSSLCAIfo  string `envconfig:"GIT_SSL_CAIFO" hidden:"true"`
	GitSSLCAPath string `envconfig:"GIT_SSL_CAPATH" auto:"the roots of the system" desc:"Directory of CA certificates for repos over https."`

	KubectlOptions string `envconfig:"KUBECTL_OPTIONS" desc:"Connection flags of kubectl, quoted as for a shell: '--kubeconfig', '--context', '--server', '--namespace', '--as' and so on, and '--username' with '--password'. 'KUBECONFIG' and the proxy variables apply as they do for kubectl."`
	CurlOptions    string `envconfig:"CURL_OPTIONS" desc:"Flags of curl for fetching 'CONFIG' over http or https, quoted as for a shell: '--cacert', '--capath', '--cert', '--key', '-u', '-H', '-A', '-k', '--connect-timeout', '-m', '--retry', '-x', '--noproxy', '--resolve', '--compressed', '--proto', '--tlsv1.3' and more. Flags without effect on the result, such as '-s', '-S', '-f' and '-v', are accepted. Redirects are followed as with '-L', without the credentials."`

	DryRun string `envconfig:"DRYRUN" default:"off" desc:"Print what would be done and write nothing. With 'diff' and 'ONCE', the exit status is 0 if nothing would change, 1 if something would, 3 if something could not be planned."`
	Once   truth  `envconfig:"ONCE" default:"off" desc:"Sync every repo once, then exit with status 0 if all are in sync, 1 if not, 2 for a mistake in the configuration."`

	Prune      truth  `envconfig:"PRUNE" default:"on" desc:"Delete objects from the cluster when they leave git."`
	PruneLimit string `envconfig:"PRUNE_LIMIT" default:"50%" desc:"How many objects of a repo one revision may prune without approval: a share of its live objects ('50%', which applies only to more than 10 objects) or a number of objects ('20')."`
	Drift      string `envconfig:"DRIFT" default:"correct" desc:"What to do when another writer changes an object: 'correct' it at once, 'report' it only, or correct it at the next 'interval'."`
	Resync     string `envconfig:"RESYNC" default:"1h" desc:"Interval of a full re-apply, unchanged objects included: seconds, or a duration; 'off' for never. A jitter of 10 % spreads the load."`
	Wait       string `envconfig:"WAIT" default:"off" desc:"How long the objects of a new revision may take to become healthy before the sync fails: seconds, or a duration; 'off' to not wait. A newer revision is synced at once. With 'ONCE' the exit status includes it; a dry run does not wait."`

	Namespaces       string `envconfig:"NAMESPACES" auto:"all" desc:"The only namespaces in which objects may be created, changed or deleted, separated by commas or white space. A Namespace object may be written if it is one of them. Outside of them, kubesync writes only its own ConfigMaps, the Events about these, and Leases."`
	SystemNamespaces string `envconfig:"SYSTEM_NAMESPACES" default:"kube-system,kube-public,kube-node-lease" desc:"Namespaces that application repos may not write to. The namespace of kubesync itself and namespaces labelled 'kubesync.io/tier: system' are always among them."`

	ApplyConcurrency string `envconfig:"APPLY_CONCURRENCY" default:"16" desc:"Concurrent writes to one cluster: 1 to 256."`
	Timeout          string `envconfig:"TIMEOUT" default:"5m" desc:"Timeout of one git poll, one fetch of files, and one run of 'CMD', at least one second: seconds, or a duration."`

	Limits string `envconfig:"LIMITS" desc:"Limits of what one revision may cost, if the defaults do not fit: 'name=value', separated by commas or white space, such as 'manifests=512Mi,entries=1M'. The names are listed below."`

	Listen            string `envconfig:"LISTEN" auto:"'127.0.0.1:9797'" desc:"Address of the status page and the API, and of all that 'PROBE_LISTEN' serves: 'host:port', 'unix:/path', or 'off'. With 'ONCE' or 'DRYRUN' nothing is served."`
	ListenTLSCertFile string `envconfig:"LISTEN_TLS_CERT_FILE" desc:"File with the certificate (and its chain) with which 'LISTEN' serves https. Certificate and key are read again when they change."`
	ListenTLSKeyFile  string `envconfig:"LISTEN_TLS_KEY_FILE" desc:"File with the key of that certificate."`
	ListenTokenFile   string `envconfig:"LISTEN_TOKEN_FILE" desc:"File with the token that the status page and the API require, as a bearer token or as a password in the browser. It is read at every request."`
	ProbeListen       string `envconfig:"PROBE_LISTEN" auto:"':9798' in a pod, else 'off'" desc:"Address of the probes, the metrics and the push webhook alone: 'host:port', 'unix:/path', or 'off'."`
	WebhookSecretFile string `envconfig:"WEBHOOK_SECRET_FILE" desc:"File with the secret of the push webhook, which it enables. It is read at every request."`

	NotifyURL    string `envconfig:"NOTIFY_URL" desc:"Where to POST notifications: a repo fails, recovers, syncs a new revision or waits for approval to prune, or another writer keeps overwriting an object. 'https://…' receives CloudEvents, 'slack+https://…' messages for Slack. Several URLs are separated by commas or white space. They are treated as secrets."`
	CommitStatus truth  `envconfig:"COMMIT_STATUS" default:"off" desc:"Report the result of each commit to the git server as a commit status (GitHub, GitLab, Gitea, Forgejo). This uses the credentials of the repo, which must allow it; those of a repo on 'github.com' are sent to 'api.github.com'."`

	Lease string `envconfig:"LEASE" auto:"'kubesync' with 'CONFIG', else 'kubesync-' and the name of the first repo in 'REPO'" desc:"Name of the Lease. Only the process that holds it writes to the cluster."`

	LogLevel  string `envconfig:"LOG_LEVEL" default:"info" desc:"Log level: 'trace', 'debug', 'info', 'warn', 'error', 'fatal', 'panic' or 'disabled'."`
	LogFormat string `envconfig:"LOG_FORMAT" default:"auto" desc:"Log format: 'console', 'json', or 'auto' for 'console' on a terminal and 'json' elsewhere."`
	Debug     truth  `envconfig:"DEBUG" default:"off" desc:"The same as 'LOG_LEVEL=debug'. 'LISTEN' also serves profiles of the process at '/debug/pprof/'."`

	PodNamespace string `envconfig:"POD_NAMESPACE" auto:"the namespace of the ServiceAccount, else 'kube-system'" desc:"Namespace of kubesync itself, for its Leases and its ConfigMaps. A Deployment sets it from 'metadata.namespace'."`
}

// truth is a truth value as the shell script read it: empty, 0, false, no and off
// are off in any case of letters, and all else is on.
type truth bool

// Decode implements envconfig.Decoder. It never fails.
func (t *truth) Decode(text string) error {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "0", "false", "no", "off":
		*t = false
	default:
		*t = true
	}
	return nil
}

// parseDryRun reads DRYRUN: a truth value, or the word that has the exit status report
// changes.
func parseDryRun(text string) (on, diff bool) {
	var value truth
	_ = value.Decode(text) // it never fails
	return bool(value), strings.EqualFold(text, "diff")
}

// readEnvironment reads the variables of the process. A text that is set but empty
// counts as unset, as a Deployment cannot unset what it takes from a ConfigMap; an
// empty truth value is off.
func readEnvironment() (environment, error) {
	var env environment
	if err := envconfig.Process("", &env); err != nil {
		return environment{}, fmt.Errorf("read the environment: %w", err)
	}
	env.fill()
	return env, nil
}

// fill trims the texts and gives those that are empty their default.
func (e *environment) fill() {
	for field, value := range reflect.ValueOf(e).Elem().Fields() {
		if value.Kind() != reflect.String {
			continue
		}
		text := value.String()
		if field.Tag.Get("verbatim") == "" {
			text = strings.TrimSpace(text)
		}
		if text == "" {
			text = field.Tag.Get("default")
		}
		value.SetString(text)
	}
}

// Notes is what holds for all variables; code stands between single quotes.
const Notes = "A variable that is set to an empty text counts as unset. Truth values are off for '0', 'false', 'no', 'off' (in any case of letters) " +
	"and an empty text, and on for everything else. " +
	"A secret file that is empty or blank is a mistake, and so is a proxy variable ('HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', also in lower case) that is not the address of a proxy. " +
	"All mistakes are reported together at start, with exit status 2."

// Variable describes one environment variable for its reader. In Default and
// Meaning, code stands between single quotes.
type Variable struct {
	Name    string
	Default string // empty if there is none
	Meaning string
}

// Variables lists the environment variables that kubesync reads, in the order in
// which they are documented.
func Variables() []Variable {
	var variables []Variable
	for field := range reflect.TypeFor[environment]().Fields() {
		if field.Tag.Get("hidden") != "" {
			continue
		}
		variable := Variable{
			Name:    field.Tag.Get("envconfig"),
			Default: field.Tag.Get("auto"),
			Meaning: field.Tag.Get("desc"),
		}
		if value := field.Tag.Get("default"); value != "" {
			variable.Default = "'" + value + "'"
		}
		variables = append(variables, variable)
	}
	return variables
}

// OwnVariables lists the names of the variables that configure kubesync alone, and its
// credentials: a transform command does not get them. POD_NAMESPACE and NAME are not among
// them, as many programs read them.
func OwnVariables() []string {
	names := []string{"KUBECONFIG"}
	for field := range reflect.TypeFor[environment]().Fields() {
		switch name := field.Tag.Get("envconfig"); name {
		case "POD_NAMESPACE", "NAME":
		default:
			names = append(names, name)
		}
	}
	return names
}

// Usage writes the variables, and the limits, as plain text, for a terminal of 100 columns.
func Usage(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, meaning string) {
		for _, line := range wrap(meaning, 76) {
			fmt.Fprintf(table, "%s\t%s\n", name, line)
			name = ""
		}
	}
	fmt.Fprintf(table, "%s\n\n", strings.Join(wrap(Notes, 98), "\n"))
	for _, variable := range Variables() {
		meaning := variable.Meaning
		if variable.Default != "" {
			meaning += " Default: " + variable.Default + "."
		}
		row(variable.Name, meaning)
	}
	fmt.Fprintf(table, "\t\nLIMITS\t\n")
	for _, limit := range limits.Bounds() {
		row(limit.Name, limit.Sentence())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the environment variables: %w", err)
	}
	return nil
}

// wrap breaks a text between words into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
