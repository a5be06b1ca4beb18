package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/config/curl"
	"github.com/kubesync/kubesync/sync/config/redact"
	"github.com/kubesync/kubesync/sync/status/notify"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/transform"
)

// Config is what the environment says, as domain values that need no further
// parsing. What may differ from repo to repo stands in Repo.
type Config struct {
	Repos []Repo // those in REPO, in its order
	List  *List  // CONFIG; nil if no list is used

	// Interval is the time between two readings of the list, and the default
	// between two syncs of a repo. The jitter is the caller's.
	Interval time.Duration
	Timeout  time.Duration // of one git fetch, and of one run of a command
	Limits   limits.Limits
	Git      Git

	// CommandOnRevision says that a command runs for new revisions only, and not at every
	// interval.
	CommandOnRevision bool
	Sandbox           transform.SandboxMode
	CommandEnvDeny    []string // names kept from commands besides OwnVariables

	DryRun bool
	// DryRunDiff says that the exit status of a dry run reports whether something would
	// change.
	DryRunDiff bool
	Once       bool

	Kubernetes       Kubernetes
	PruneLimit       prune.Limit
	Drift            apply.DriftPolicy
	Resync           time.Duration // 0 for never
	Wait             time.Duration // for health; 0 for not waiting
	Namespaces       []string      // the only ones written to; nil for all
	SystemNamespaces []string      // closed to application repos; OwnNamespace is among them
	ApplyConcurrency int           // writes in flight per cluster, at least 1

	Lease        string // name of the Lease in OwnNamespace
	OwnNamespace string // where parents and Leases are kept
	InPod        bool

	Listen        server.Listen
	ListenTLS     server.KeyPair // of Listen; the zero value: no TLS
	ListenToken   SecretFile     // required on Listen for the page and the API
	ProbeListen   server.Listen
	WebhookSecret SecretFile // none: no push webhook
	Debug         bool       // profiles are served

	NotifyURLs   []notify.Address
	CommitStatus bool

	LogLevel  zerolog.Level
	LogFormat LogFormat

	Redactor *redact.Redactor // knows every secret above, and those of files once they are read
	Warnings []string         // for the log, at start

	secretFiles *secretFiles // see SecretFiles
}

// Git is what all repos share in the access to their servers.
type Git struct {
	CAFile, CADir     string // empty: the system's roots
	SSHKeyFile        string
	SSHKnownHostsFile string
}

// Load reads the environment of the process and the files that it names. The error
// is Errors if the configuration is at fault, and lists all that is wrong with it.
func Load() (Config, error) {
	env, err := readEnvironment()
	if err != nil {
		return Config{}, err
	}
	return build(env, host{
		pod:      findPod(env.PodNamespace, serviceAccountNamespace),
		listFile: defaultListFile,
		set:      environ(os.Environ()),
	})
}

// defaultListFile is where a Deployment may mount the list without setting CONFIG.
const defaultListFile = "/kubesync.json"

// host is what a configuration depends on besides the variables.
type host struct {
	pod      pod
	listFile string
	set      map[string]string // all variables, also those that kubesync has no use for
}

// builder holds what the parts of a configuration share while it is built.
type builder struct {
	*mistakes
	env      environment
	host     host
	redactor *redact.Redactor
	to       Config
}

// build makes domain values of the variables.
func build(env environment, host host) (Config, error) {
	redactor := redact.New()
	b := &builder{mistakes: &mistakes{}, env: env, host: host, redactor: redactor, to: Config{Redactor: redactor, secretFiles: &secretFiles{}}}
	b.to.DryRun, b.to.DryRunDiff = parseDryRun(b.env.DryRun)
	b.to.Limits = parse(b.mistakes, "LIMITS", b.env.Limits, limits.Parse)
	defaults := b.repoDefaults()
	b.repos(defaults)
	b.list(defaults)
	b.commands()
	b.git()
	b.kubernetes()
	b.writes()
	b.serving()
	b.notifying()
	b.logging()
	b.inherited()
	b.proxies()
	if err := b.err(redactor); err != nil {
		return Config{}, err
	}
	return b.to, nil
}

// repoDefaults returns the settings that hold for repos of REPO and CONFIG alike.
func (b *builder) repoDefaults() Repo {
	b.to.Interval = parse(b.mistakes, "INTERVAL", b.env.Interval, parseDuration)
	return Repo{
		Interval:    b.to.Interval,
		Version:     parse(b.mistakes, "VERSION_MODE", b.env.VersionMode, repo.ParseVersion),
		Credentials: b.credentials(),
		Prune:       bool(b.env.Prune),
	}
}

// credentials reads REPOCREDS or REPOCREDS_FILE.
func (b *builder) credentials() Credentials {
	fixed, file := b.env.RepoCreds, b.env.RepoCredsFile
	switch {
	case fixed != "" && file != "":
		b.redactor.Add(fixed)
		b.add("REPOCREDS", "REPOCREDS_FILE is set as well: set one of them")
	case fixed != "":
		credentials, err := parseCredentials(fixed)
		if err != nil {
			b.add("REPOCREDS", "%v", err)
			return Credentials{}
		}
		b.redactor.Add(redact.Basic(credentials.User, credentials.Password)...)
		return Credentials{fixed: credentials}
	case file != "":
		credentials := Credentials{file: file, redactor: b.redactor}
		b.to.secretFiles.add(file)
		if _, _, err := credentials.Read(); err != nil {
			b.add("REPOCREDS_FILE", "%v", err)
		}
		return credentials
	}
	return Credentials{}
}

// repos reads REPO and the variables that hold for its repos.
func (b *builder) repos(defaults Repo) {
	b.redactor.Add(redact.URLs(b.env.Repo)...)
	defaults.Tier = parse(b.mistakes, "TIER", b.env.Tier, manifest.ParseTier)
	directory, rooted := insideRepo(b.env.YmlDir)
	defaults.YMLDir = parse(b.mistakes, "YMLDIR", directory, transform.ParseDir)
	if rooted && defaults.YMLDir != "" {
		b.warn("YMLDIR: %q is taken relative to the root of each repo: write %q", b.env.YmlDir, defaults.YMLDir)
	}
	defaults.Recursive = bool(b.env.Recursive)
	defaults.ConventionalDir = true
	defaults.Command = b.env.Cmd
	if err := transform.ParseCommand(b.env.Cmd); err != nil {
		b.add("CMD", "%v", err)
	}
	names := map[string]repo.URL{}
	urls := splitList(b.env.Repo)
	for _, text := range urls {
		url, err := repo.ParseURL(text)
		if err != nil {
			b.add("REPO", "%v", err)
			continue
		}
		entry := defaults
		entry.URL, entry.Name = url, b.nameOf(url, entry.Version, len(urls))
		if err := entry.check(); err != nil {
			b.add("REPO", "%v", err)
		}
		if other, taken := names[entry.Name]; taken {
			b.add("REPO", "%s and %s both have the name %q: list the repos in CONFIG, where each can have a name", other, url, entry.Name)
			continue
		}
		names[entry.Name] = url
		b.to.Repos = append(b.to.Repos, entry)
	}
	if b.env.Repo != "" && len(urls) == 0 {
		b.add("REPO", "no URL")
	}
	b.checkName(len(urls))
}

// nameOf returns the name of one of so many repos in REPO. A dry run of a work tree shows
// what its files will do once they are pushed: its repo has the name of the remote that it
// was cloned from. A process that writes uses the name of the URL alone.
func (b *builder) nameOf(url repo.URL, version repo.Version, repos int) string {
	if b.env.Name != "" && repos == 1 {
		return b.env.Name
	}
	if b.to.DryRun && version.IsWorktree() {
		origin, err := url.OriginName()
		if err != nil {
			b.warn("REPO: %s is named after its directory, cannot read its remote (set NAME to name it): %v", url, err)
		}
		if name := validName(origin); name != "" {
			return name
		}
	}
	return validName(url.Name())
}

// checkName finds what is wrong with NAME for so many repos in REPO.
func (b *builder) checkName(repos int) {
	switch {
	case b.env.Name == "":
	case repos == 0:
		b.warn("NAME: ignored, REPO holds no repo")
	case repos > 1:
		b.add("NAME", "it names one repo, but REPO holds %d: list them in CONFIG, where each can have a name", repos)
	default:
		parse(b.mistakes, "NAME", b.env.Name, parseRepoName)
	}
}

// list reads CONFIG and CURL_OPTIONS, and the name of the Lease, whose default
// depends on there being a list.
func (b *builder) list(defaults Repo) {
	source := b.env.Config
	if source == "" && b.env.Repo == "" && exists(b.host.listFile) {
		source = b.host.listFile
	}
	if source == "" && b.env.Repo == "" {
		b.add("REPO", "neither REPO nor CONFIG is set: set REPO to the URL of a git repo, or CONFIG to the location of a list of repos")
	}
	options, problems := curl.Parse(b.env.CurlOptions, b.redactor)
	for _, problem := range problems {
		b.add("CURL_OPTIONS", "%v", problem)
	}
	b.to.secretFiles.add(options.KeyFiles()...)
	if source != "" {
		b.redactor.Add(redact.URLs(source)...)
		list, err := newList(source, options, defaults, b.to.Repos, b.to.Limits, b.redactor, b.to.secretFiles)
		if err != nil {
			b.add("CONFIG", "%v", err)
		}
		b.to.List = list
	}
	b.to.Lease = "kubesync"
	if b.to.List == nil && len(b.to.Repos) > 0 {
		b.to.Lease += "-" + b.to.Repos[0].Name
	}
	if b.env.Lease != "" {
		b.to.Lease = parse(b.mistakes, "LEASE", b.env.Lease, parseObjectName)
	}
}

// commands reads how commands are run.
func (b *builder) commands() {
	b.to.CommandOnRevision = parse(b.mistakes, "CMD_ON", b.env.CmdOn, oneOf("interval", "revision")) == "revision"
	b.to.Sandbox = parse(b.mistakes, "CMD_SANDBOX", b.env.CmdSandbox, transform.ParseSandboxMode)
	b.to.CommandEnvDeny = parse(b.mistakes, "CMD_ENV_DENY", b.env.CmdEnvDeny, parseVariableNames)
	b.to.Timeout = parse(b.mistakes, "TIMEOUT", b.env.Timeout, parseDuration)
}

// git reads what the access to git servers needs.
func (b *builder) git() {
	b.to.Git = Git{
		CAFile:            cmp.Or(b.env.GitSSLCAInfo, b.env.GitSSLCAIfo),
		CADir:             b.env.GitSSLCAPath,
		SSHKeyFile:        b.env.SSHKeyFile,
		SSHKnownHostsFile: b.env.SSHKnownHostsFile,
	}
	b.to.secretFiles.add(b.to.Git.SSHKeyFile)
	b.checkPath("SSH_KEY_FILE", b.to.Git.SSHKeyFile, checkFile)
	b.checkPath("SSH_KNOWN_HOSTS_FILE", b.to.Git.SSHKnownHostsFile, checkFile)
	b.checkPath("GIT_SSL_CAINFO", b.to.Git.CAFile, checkCertificates)
	b.checkPath("GIT_SSL_CAPATH", b.to.Git.CADir, checkDirectory)
	if b.env.GitSSLCAInfo != "" && b.env.GitSSLCAIfo != "" && b.env.GitSSLCAInfo != b.env.GitSSLCAIfo {
		b.warn("GIT_SSL_CAIFO: ignored, GIT_SSL_CAINFO is set")
	}
}

// checkPath notes what a check finds wrong with a file or directory, if one is named.
func (b *builder) checkPath(variable, name string, check func(string) error) {
	if name == "" {
		return
	}
	if err := check(name); err != nil {
		b.add(variable, "%v", err)
	}
}

// warn notes something that is worth a line in the log.
func (b *builder) warn(format string, args ...any) {
	b.to.Warnings = append(b.to.Warnings, b.redactor.String(fmt.Sprintf(format, args...)))
}

// kubernetes reads KUBECTL_OPTIONS. Only a dry run can do without a cluster, unless it compares with one.
func (b *builder) kubernetes() {
	kubernetes, ignored := newKubernetes(b.env.KubectlOptions, b.host.pod, !b.to.DryRun || b.to.DryRunDiff, b.mistakes, b.redactor)
	b.to.Kubernetes = kubernetes
	if len(ignored) > 0 {
		b.warn("KUBECTL_OPTIONS: %s ignored: kubesync runs no kubectl, use LOG_LEVEL and LOG_FORMAT for its own log", strings.Join(ignored, ", "))
	}
	if *kubernetes.flags.KubeConfig == "" {
		b.warnOfMissingKubeconfig()
	}
}

// writes reads what bounds the writes to a cluster.
func (b *builder) writes() {
	b.to.Once = bool(b.env.Once)
	b.to.PruneLimit = parse(b.mistakes, "PRUNE_LIMIT", b.env.PruneLimit, prune.ParseLimit)
	b.to.Drift = parse(b.mistakes, "DRIFT", b.env.Drift, apply.ParseDriftPolicy)
	b.to.Resync = parse(b.mistakes, "RESYNC", b.env.Resync, parseOptional)
	b.to.Wait = parse(b.mistakes, "WAIT", b.env.Wait, parseOptional)
	b.to.Namespaces = parse(b.mistakes, "NAMESPACES", b.env.Namespaces, parseNamespaces)
	b.to.SystemNamespaces = parse(b.mistakes, "SYSTEM_NAMESPACES", b.env.SystemNamespaces, parseNamespaces)
	b.to.ApplyConcurrency = parse(b.mistakes, "APPLY_CONCURRENCY", b.env.ApplyConcurrency, parseConcurrency)

	b.to.InPod = b.host.pod.inside
	b.to.OwnNamespace = cmp.Or(b.env.PodNamespace, b.host.pod.namespace, defaultOwnNamespace)
	parse(b.mistakes, "POD_NAMESPACE", b.to.OwnNamespace, parseNamespace)
	if !slices.Contains(b.to.SystemNamespaces, b.to.OwnNamespace) {
		b.to.SystemNamespaces = append(b.to.SystemNamespaces, b.to.OwnNamespace)
	}
}

// serving reads what is served to the outside.
func (b *builder) serving() {
	b.to.Listen = parse(b.mistakes, "LISTEN", cmp.Or(b.env.Listen, defaultListen), server.ParseListen)
	b.to.Listen.Assumed = b.env.Listen == ""
	probes := "off"
	if b.host.pod.inside {
		probes = defaultProbeListen
	}
	b.to.ProbeListen = parse(b.mistakes, "PROBE_LISTEN", cmp.Or(b.env.ProbeListen, probes), server.ParseListen)
	b.to.ProbeListen.Assumed = b.env.ProbeListen == "" && !b.to.ProbeListen.Off()
	if !b.to.Listen.Off() && b.to.Listen.Same(b.to.ProbeListen) {
		b.add("PROBE_LISTEN", "%q is also the address of LISTEN, which serves the probes: set PROBE_LISTEN to \"off\" or to another address", b.to.Listen)
	}
	b.to.ListenTLS = b.listenTLS()
	b.to.ListenToken = b.secretFile("LISTEN_TOKEN_FILE", b.env.ListenTokenFile)
	if b.to.Listen.Public() && !b.to.ListenToken.Given() {
		b.warn("LISTEN: other machines can reach %s, and anyone there can read the status page: set LISTEN_TOKEN_FILE", b.to.Listen)
	}
	b.to.WebhookSecret = b.secretFile("WEBHOOK_SECRET_FILE", b.env.WebhookSecretFile)
	b.to.Debug = bool(b.env.Debug)
}

// Where is listened unless something else is said.
const (
	defaultListen      = "127.0.0.1:9797"
	defaultProbeListen = ":9798"
)

// listenTLS reads the certificate of LISTEN. It is loaded again when it is used.
func (b *builder) listenTLS() server.KeyPair {
	pair := server.KeyPair{CertFile: b.env.ListenTLSCertFile, KeyFile: b.env.ListenTLSKeyFile}
	switch {
	case pair == server.KeyPair{}:
		return pair
	case pair.CertFile == "":
		b.add("LISTEN_TLS_CERT_FILE", "not set, but LISTEN_TLS_KEY_FILE is: set both or none")
		return server.KeyPair{}
	case pair.KeyFile == "":
		b.add("LISTEN_TLS_KEY_FILE", "not set, but LISTEN_TLS_CERT_FILE is: set both or none")
		return server.KeyPair{}
	}
	b.to.secretFiles.add(pair.KeyFile)
	if _, err := pair.Load(); err != nil {
		b.add("LISTEN_TLS_CERT_FILE", "%v", err)
	}
	if b.to.Listen.Network == "unix" {
		b.warn("LISTEN_TLS_CERT_FILE: ignored, LISTEN is a unix socket")
		return server.KeyPair{}
	}
	return pair
}

// secretFile reads a variable that names a file with a secret.
func (b *builder) secretFile(variable, name string) SecretFile {
	if name == "" {
		return SecretFile{}
	}
	file := SecretFile{name: name, redactor: b.redactor}
	b.to.secretFiles.add(name)
	if _, err := file.Read(); err != nil {
		b.add(variable, "%v", err)
	}
	return file
}

// notifying reads where results are reported.
func (b *builder) notifying() {
	b.to.CommitStatus = bool(b.env.CommitStatus)
	addresses := splitList(b.env.NotifyURL)
	if b.env.NotifyURL != "" && len(addresses) == 0 {
		b.add("NOTIFY_URL", "no URL")
	}
	for i, text := range addresses {
		address, err := notify.ParseAddress(text)
		if err != nil {
			b.redactor.Add(text)
			b.add("NOTIFY_URL", "address %d of %d: %v", i+1, len(addresses), err)
			continue
		}
		b.redactor.Add(address.Secrets()...)
		b.to.NotifyURLs = append(b.to.NotifyURLs, address)
	}
}

// logging reads level and format of the log. DEBUG lowers LOG_LEVEL to debug.
func (b *builder) logging() {
	b.to.LogLevel = parse(b.mistakes, "LOG_LEVEL", b.env.LogLevel, parseLogLevel)
	if b.env.Debug {
		b.to.LogLevel = min(b.to.LogLevel, zerolog.DebugLevel)
	}
	b.to.LogFormat = parse(b.mistakes, "LOG_FORMAT", b.env.LogFormat, oneOf(LogAuto, LogConsole, LogJSON))
}
