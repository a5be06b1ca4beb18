package config

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/kelseyhightower/envconfig"

	"github.com/kubesync/kubesync/repo/limits"
)

// environment is every variable that kubesync reads, as envconfig finds it. All
// fields but the truth values are plain text: envconfig gives up at the first value
// it cannot parse and prints it, whereas a user wants to hear of all mistakes at
// once and of no password ever. Config's construction does the parsing.
//
// The tags are the only place of a variable's default and meaning; the README's
// table and "kubesync help" are made from them:
//
//	default  the value of a variable that is unset or empty
//	auto     what stands in for a default that depends on the surroundings, or none
//	desc     the meaning; code stands between single quotes
//	hidden   set for a variable that is not documented on its own
//	verbatim set where white space at the ends may belong to the value
type environment struct {
	Repo   string `envconfig:"REPO" desc:"The repo to sync, or several separated by commas or white space: 'https://', 'http://', 'ssh://', 'git@host:path' or 'file://'. 'REPO' or 'CONFIG' is required; with both, all of their repos are synced."`
	Name   string `envconfig:"NAME" auto:"the last part of its URL; with 'DRYRUN' and 'VERSION_MODE=worktree' the last part of the URL of remote 'origin'" desc:"What the repo in 'REPO' is called, if that holds one only: its ConfigMap and its Lease have this name."`
	Config string `envconfig:"CONFIG" auto:"'/kubesync.json' if that file exists and 'REPO' is not set" desc:"Where the list of repos is: '/path', 'file:///path', 'http://' or 'https://'. It is read again at every interval."`

	Cmd        string `envconfig:"CMD" desc:"Command that turns the files of each repo in 'REPO' into manifests. It is split like a shell does, and run without one."`
	CmdOn      string `envconfig:"CMD_ON" default:"interval" desc:"When 'CMD' runs again: 'interval' for every time, because its output may depend on more than the repo; 'revision' for new revisions only."`
	CmdSandbox string `envconfig:"CMD_SANDBOX" default:"auto" desc:"Confinement of 'CMD' by Landlock. 'auto': without Landlock in the kernel, commands of application repos are refused and those of system repos run with a warning. 'require': both are refused. 'off': neither is confined."`
	CmdEnvDeny string `envconfig:"CMD_ENV_DENY" desc:"Names of further environment variables that 'CMD' does not get to see, separated by commas or white space."`

	YmlDir    string `envconfig:"YMLDIR" desc:"Directory (or single file) of the manifests inside each repo in 'REPO', relative to its root."`
	Recursive truth  `envconfig:"RECURSIVE" default:"off" desc:"Read the manifests of all directories below, too (repos in 'REPO')."`
	Tier      string `envconfig:"TIER" default:"system" desc:"What the repos in 'REPO' may do: 'system' for everything, 'application' for ordinary objects in ordinary namespaces."`

	Interval    string `envconfig:"INTERVAL" default:"300" desc:"Time between two syncs of a repo: seconds, or a duration such as '90s' or '5m'; at least one second. It is varied by up to 10 % to spread the load."`
	VersionMode string `envconfig:"VERSION_MODE" auto:"'branch:master'" desc:"Which revision: 'branch:NAME', 'commit:SHA', 'tag:NAME', 'tag:latest', 'semver:RANGE', or 'worktree' (uncommitted files of a 'file://' repo). Unset, a repo that has no branch 'master' is followed on its default branch."`

	RepoCreds     string `envconfig:"REPOCREDS" verbatim:"true" desc:"'user:password', or 'user' alone, for repos over http and https. It is sent to the host in the URL of the repo only, and never to where a redirect leads."`
	RepoCredsFile string `envconfig:"REPOCREDS_FILE" desc:"File that holds what 'REPOCREDS' would. It is read again at every fetch, so that a rotated Secret needs no restart."`

	SSHKeyFile        string `envconfig:"SSH_KEY_FILE" desc:"Private key for repos over ssh."`
	SSHKnownHostsFile string `envconfig:"SSH_KNOWN_HOSTS_FILE" desc:"Host keys for repos over ssh. A host that is not in it is an error."`

	GitSSLCAInfo string `envconfig:"GIT_SSL_CAINFO" auto:"the roots of the system" desc:"File of CA certificates for repos over https ('GIT_SSL_CAIFO' is accepted, too)."`
	GitSSLCAIfo  string `envconfig:"GIT_SSL_CAIFO" hidden:"true"`
	GitSSLCAPath string `envconfig:"GIT_SSL_CAPATH" auto:"the roots of the system" desc:"Directory of CA certificates for repos over https."`

	KubectlOptions string `envconfig:"KUBECTL_OPTIONS" desc:"Connection flags of kubectl, quoted as for a shell: '--kubeconfig', '--context', '--server', '--namespace', '--as' and so on, '--username' and '--password'; '-v' sets the log level. 'KUBECONFIG' and the proxy variables are honoured as kubectl does."`
	CurlOptions    string `envconfig:"CURL_OPTIONS" desc:"How 'CONFIG' is fetched over http or https, in the words of curl and quoted as for a shell: '--cacert', '--capath', '--cert', '--key', '-u', '-H', '-A', '-k', '--connect-timeout', '-m', '--retry', '-x', '--noproxy', '--resolve', '--compressed', '--proto', '--tlsv1.3' and more. Flags that change nothing here, such as '-s', '-S', '-f' and '-v', are accepted; redirects are followed as with '-L', without the credentials."`

	DryRun string `envconfig:"DRYRUN" default:"off" desc:"Do everything but write, and print what would be done. 'diff' is on, too, and with 'ONCE' the exit status tells of changes: 0 if nothing would change, 1 if something would, 3 if something could not be planned."`
	Once   truth  `envconfig:"ONCE" default:"off" desc:"Sync every repo once, then exit: status 0 if all are in sync, 1 if not, 2 for a mistake in the configuration."`

	Prune      truth  `envconfig:"PRUNE" default:"on" desc:"Delete from the cluster what has left git."`
	PruneLimit string `envconfig:"PRUNE_LIMIT" default:"50%" desc:"How much of a set one revision may prune without approval: a share of its live objects ('50%', looked at only when more than 10 objects would go) or a number of objects ('20')."`
	Drift      string `envconfig:"DRIFT" default:"correct" desc:"What to do about a change that somebody else makes to an object: 'correct' it at once, 'report' it only, or put it back at the next 'interval'."`
	Resync     string `envconfig:"RESYNC" default:"1h" desc:"Time between two verifications of a repo, in which everything is applied again whether it is known to be as applied or not: seconds, or a duration; 'off' for never. It is varied by up to 10 %."`
	Wait       string `envconfig:"WAIT" default:"off" desc:"How long the objects of a new revision may take to become healthy before the sync counts as failed: seconds, or a duration; 'off' for not waiting. A newer revision is not held up. With 'ONCE' the exit status includes it; a dry run does not wait."`

	Namespaces       string `envconfig:"NAMESPACES" auto:"all" desc:"The only namespaces in which objects may be created, changed or deleted, separated by commas or white space; of the Namespace objects only their own are. Besides them, kubesync writes nothing but its ConfigMaps, the Events about these, and Leases."`
	SystemNamespaces string `envconfig:"SYSTEM_NAMESPACES" default:"kube-system,kube-public,kube-node-lease" desc:"Namespaces that are closed to application repos. The namespace of kubesync itself and those labelled 'kubesync.io/tier: system' always are."`

	ApplyConcurrency string `envconfig:"APPLY_CONCURRENCY" default:"16" desc:"Writes that are under way at the same time in one cluster: 1 to 256."`
	Timeout          string `envconfig:"TIMEOUT" default:"5m" desc:"Longest time that one git poll, one fetch of files, or one run of 'CMD', may take: seconds or a duration; at least one second."`

	Limits string `envconfig:"LIMITS" desc:"What one revision may cost at most, where the defaults do not do: 'name=value', several separated by commas or white space, such as 'manifests=512Mi,entries=1M'. The names stand below."`

	Listen            string `envconfig:"LISTEN" auto:"'127.0.0.1:9797'" desc:"Where the status page and the API are served, and all that 'PROBE_LISTEN' serves: 'host:port', 'unix:/path', or 'off'. With 'ONCE' or 'DRYRUN' nothing is served."`
	ListenTLSCertFile string `envconfig:"LISTEN_TLS_CERT_FILE" desc:"File with the certificate (and its chain) with which 'LISTEN' speaks https. It and its key are read again when they change."`
	ListenTLSKeyFile  string `envconfig:"LISTEN_TLS_KEY_FILE" desc:"File with the key of that certificate."`
	ListenTokenFile   string `envconfig:"LISTEN_TOKEN_FILE" desc:"File with a token that the status page and the API ask for: as a bearer token, or as the password of a browser. It is read again at every request."`
	ProbeListen       string `envconfig:"PROBE_LISTEN" auto:"':9798' in a pod, else 'off'" desc:"Where the probes, the metrics and the push webhook are served, and nothing else: 'host:port', 'unix:/path', or 'off'."`
	WebhookSecretFile string `envconfig:"WEBHOOK_SECRET_FILE" desc:"File with the secret of the push webhook, which it enables. It is read again at every request."`

	NotifyURL    string `envconfig:"NOTIFY_URL" desc:"Where it is told, by POST, that a repo fails, has recovered, has synced a new revision, waits for approval to prune, or that somebody fights over an object: 'https://…' takes CloudEvents, 'slack+https://…' messages as Slack does. Several are separated by commas or white space. They are treated as secrets."`
	CommitStatus truth  `envconfig:"COMMIT_STATUS" default:"off" desc:"Tell the git server what became of a commit, as a commit status (GitHub, GitLab, Gitea, Forgejo). The credentials of the repo are used, which must allow it; of a repo on 'github.com' they are sent to 'api.github.com'."`

	Lease string `envconfig:"LEASE" auto:"'kubesync' with 'CONFIG', else 'kubesync-' and the name of the first repo in 'REPO'" desc:"Name of the Lease that makes this process the only one that writes."`

	LogLevel  string `envconfig:"LOG_LEVEL" default:"info" desc:"'trace', 'debug', 'info', 'warn', 'error', 'fatal', 'panic' or 'disabled'."`
	LogFormat string `envconfig:"LOG_FORMAT" default:"auto" desc:"'console' for people, 'json' for machines, 'auto' for the former on a terminal and the latter elsewhere."`
	Debug     truth  `envconfig:"DEBUG" default:"off" desc:"The same as 'LOG_LEVEL=debug'; and 'LISTEN' serves profiles of the process under '/debug/pprof/'."`

	PodNamespace string `envconfig:"POD_NAMESPACE" auto:"the namespace of the ServiceAccount, else 'kube-system'" desc:"The namespace of kubesync itself: where it keeps its Leases and what it knows of each repo. A Deployment sets it from 'metadata.namespace'."`
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

// parseDryRun reads DRYRUN: a truth value, or the word that has the exit status tell of
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
const Notes = "A variable that is set to an empty text counts as unset. Of truth values, an empty text, '0', 'false', 'no' and 'off' " +
	"(in any case of letters) mean off, and everything else means on. " +
	"A file that is to hold a secret and holds blanks alone is a mistake, and so is a proxy variable ('HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', also in small letters) that cannot be read. " +
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

// OwnVariables lists the names of the variables that tell kubesync, and nobody
// else, what to do and which credentials to use: a transform command does not get
// them. POD_NAMESPACE and NAME are not among them, as many programs read them.
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
	notes := strings.Join(wrap(Notes, 98), "\n") + "\n\n"
	if _, err := io.WriteString(w, notes); err != nil {
		return fmt.Errorf("print the environment variables: %w", err)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, variable := range Variables() {
		meaning := variable.Meaning
		if variable.Default != "" {
			meaning += " Default: " + variable.Default + "."
		}
		name := variable.Name
		for _, line := range wrap(meaning, 76) {
			fmt.Fprintf(table, "%s\t%s\n", name, line)
			name = ""
		}
	}
	fmt.Fprintf(table, "\t\nLIMITS\t\n")
	for _, limit := range limits.Bounds() {
		name := limit.Name
		for _, line := range wrap(limit.Sentence(), 76) {
			fmt.Fprintf(table, "%s\t%s\n", name, line)
			name = ""
		}
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
