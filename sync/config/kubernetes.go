package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubernetes tells how to reach the API server: KUBECTL_OPTIONS over a kubeconfig
// (KUBECONFIG, else ~/.kube/config) over the ServiceAccount of a pod. Files are read
// when asked for, so that a kubeconfig that was replaced is seen.
type Kubernetes struct {
	flags     *genericclioptions.ConfigFlags
	inCluster func() (*rest.Config, error) // nil where there is no ServiceAccount
	podsOwn   string                       // namespace of the pod, empty outside of one
	redactor  *Redactor
}

// errNoCluster says that nothing tells of a cluster.
var errNoCluster = errors.New("no cluster is configured: there is no kubeconfig (KUBECONFIG, or --kubeconfig or --server in KUBECTL_OPTIONS), " +
	"and this is no pod with a ServiceAccount; DRYRUN=1 does without, and checks the manifests only")

// kubectlOptions is what KUBECTL_OPTIONS says besides the connection.
type kubectlOptions struct {
	level    zerolog.Level // what -v asks for
	warnings []string
}

// newKubernetes reads KUBECTL_OPTIONS and whatever it points at. It is a mistake if
// that is no cluster where one is needed.
func newKubernetes(options string, pod pod, needed bool, m *mistakes, redactor *Redactor) (Kubernetes, kubectlOptions) {
	const variable = "KUBECTL_OPTIONS"
	k := Kubernetes{
		flags:     genericclioptions.NewConfigFlags(false).WithDeprecatedPasswordFlag(),
		inCluster: pod.inCluster,
		podsOwn:   pod.namespace,
		redactor:  redactor,
	}
	flags := pflag.NewFlagSet(variable, pflag.ContinueOnError)
	k.flags.AddFlags(flags)
	verbosity := flags.IntP("v", "v", 0, "")
	matchVersion := flags.Bool("match-server-version", false, "")
	defineKubectlLogging(flags)

	problems := parseFlags(flags, options)
	redactor.Add(k.secrets()...)
	if *k.flags.Password != "" && *k.flags.Username == "" {
		problems = append(problems, errors.New("--password is given without --username"))
	}
	if *k.flags.Username == "" {
		// With these two, cli-runtime asks for what is missing on standard input,
		// where nobody answers a daemon.
		k.flags.Username, k.flags.Password = nil, nil
	}
	for _, problem := range problems {
		m.add(variable, "%v; accepted are kubectl's flags for the connection (such as --kubeconfig, --context, --server, --namespace, --as), "+
			"--username, --password and -v", problem)
	}
	if len(problems) == 0 {
		for _, problem := range k.check(needed) {
			m.add(variable, "%v", problem)
		}
	}
	result := kubectlOptions{level: verbosityLevel(*verbosity)}
	if *matchVersion {
		result.warnings = append(result.warnings, "KUBECTL_OPTIONS: --match-server-version is ignored: there is no client version to compare")
	}
	for _, name := range kubectlLogging() {
		if flags.Changed(name) {
			result.warnings = append(result.warnings, fmt.Sprintf("KUBECTL_OPTIONS: --%s is ignored: no kubectl runs here, see LOG_LEVEL and LOG_FORMAT", name))
		}
	}
	if warning := missingKubeconfig(*k.flags.KubeConfig); warning != "" {
		result.warnings = append(result.warnings, warning)
	}
	return k, result
}

// kubectlLogging returns the flags by which kubectl says where its log goes: those of
// today, and of the kubectl 1.11 that the shell script had.
func kubectlLogging() []string {
	return []string{
		"logtostderr", "alsologtostderr", // truth values
		"log-backtrace-at", "log-dir", "log-file", "log-flush-frequency", "stderrthreshold", "vmodule",
	}
}

// defineKubectlLogging adds these flags, which have no effect.
func defineKubectlLogging(flags *pflag.FlagSet) {
	for i, name := range kubectlLogging() {
		if flag := flags.VarPF(new(ignored), name, "", ""); i < 2 {
			flag.NoOptDefVal = "true"
		}
	}
}

// verbosityLevel maps kubectl's -v, of whose levels 3 and 4 tell of changes and 5
// and up of single requests.
func verbosityLevel(verbosity int) zerolog.Level {
	switch {
	case verbosity >= 5:
		return zerolog.TraceLevel
	case verbosity >= 3:
		return zerolog.DebugLevel
	default:
		return zerolog.InfoLevel
	}
}

// secrets returns what must not be printed of the options.
func (k Kubernetes) secrets() []string {
	secrets := urlSecrets(*k.flags.ProxyURL + " " + *k.flags.APIServer)
	return append(secrets, *k.flags.BearerToken, *k.flags.Password, *k.flags.Username+":"+*k.flags.Password)
}

// check finds what is wrong with the options beyond their spelling.
func (k Kubernetes) check(needed bool) []error {
	var problems []error
	if file := *k.flags.KubeConfig; file != "" {
		if err := checkFile(file); err != nil {
			problems = append(problems, fmt.Errorf("--kubeconfig: %w", err))
		}
	}
	if ns := *k.flags.Namespace; ns != "" {
		if _, err := parseNamespace(ns); err != nil {
			problems = append(problems, fmt.Errorf("--namespace: %w", err))
		}
	}
	if _, err := clientcmd.ParseTimeout(*k.flags.Timeout); err != nil {
		problems = append(problems, fmt.Errorf("--request-timeout: %q is no duration such as 30s", *k.flags.Timeout))
	}
	for _, extra := range *k.flags.ImpersonateUserExtra {
		if !strings.Contains(extra, "=") {
			problems = append(problems, fmt.Errorf("--as-user-extra: %q is not key=value", extra))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if _, err := k.RESTConfig(); err != nil && (needed || !errors.Is(err, errNoCluster)) {
		problems = append(problems, err)
	}
	return problems
}

// missingKubeconfig returns a warning if KUBECONFIG names no file that exists.
// kubectl goes on without a word; so does kubesync but for this one.
func missingKubeconfig(explicit string) string {
	files := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if explicit != "" || len(files) == 0 {
		return ""
	}
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("KUBECONFIG: no such file: %s", strings.Join(files, ", "))
}

// Configured tells whether anything says where a cluster is. It is true for a
// kubeconfig that cannot be used, of which RESTConfig then tells why.
func (k Kubernetes) Configured() bool {
	fromFile, err := k.fromFile()
	return err != nil || fromFile || k.inCluster != nil
}

// RESTConfig returns how to reach the API server. User agent and rate limits are left
// to the caller, as is Timeout, which --request-timeout sets for every request and
// which ends watches as well.
func (k Kubernetes) RESTConfig() (*rest.Config, error) {
	config, err := k.restConfig()
	if err != nil {
		return nil, err
	}
	k.redactor.Add(config.BearerToken, config.Password)
	return config, nil
}

// restConfig decides between kubeconfig and ServiceAccount.
func (k Kubernetes) restConfig() (*rest.Config, error) {
	fromFile, err := k.fromFile()
	switch {
	case err != nil:
		return nil, err
	case fromFile:
		config, err := k.flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("use the kubeconfig: %w", err)
		}
		return config, nil
	case k.inCluster != nil:
		config, err := k.inCluster()
		if err != nil {
			return nil, fmt.Errorf("use the pod's ServiceAccount: %w", err)
		}
		return k.override(config)
	default:
		return nil, errNoCluster
	}
}

// Namespace returns where kubectl would put a namespaced object that names no
// namespace. Explicit tells that --namespace or the kubeconfig's context says so;
// otherwise it is the pod's own or, outside of a pod, "default".
func (k Kubernetes) Namespace() (namespace string, explicit bool, err error) {
	if *k.flags.Namespace != "" {
		return *k.flags.Namespace, true, nil
	}
	raw, err := k.rawConfig()
	if err != nil {
		return "", false, err
	}
	switch context := k.context(raw); {
	case context.Namespace != "":
		return context.Namespace, true, nil
	case k.podsOwn != "":
		return k.podsOwn, false, nil
	default:
		return "default", false, nil
	}
}

// context returns the context in use, an empty one if there is none.
func (k Kubernetes) context(raw clientcmdapi.Config) clientcmdapi.Context {
	if context := raw.Contexts[cmp.Or(*k.flags.Context, raw.CurrentContext)]; context != nil {
		return *context
	}
	return clientcmdapi.Context{}
}

// rawConfig reads the kubeconfig; without one it is empty.
func (k Kubernetes) rawConfig() (clientcmdapi.Config, error) {
	raw, err := k.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return raw, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return raw, nil
}

// fromFile tells whether flags or a kubeconfig say where the cluster is. Asking
// clientcmd would not do: where they do not, it comes up with localhost:8080.
func (k Kubernetes) fromFile() (bool, error) {
	raw, err := k.rawConfig()
	if err != nil {
		return false, err
	}
	if *k.flags.APIServer != "" {
		return true, nil
	}
	cluster, context := cmp.Or(*k.flags.ClusterName, k.context(raw).Cluster), cmp.Or(*k.flags.Context, raw.CurrentContext)
	switch {
	case cluster != "":
		if found := raw.Clusters[cluster]; found == nil || found.Server == "" {
			return false, fmt.Errorf("the kubeconfig has no address of the cluster %q", cluster)
		}
		return true, nil
	case raw.Contexts[context] != nil:
		return false, fmt.Errorf("the context %q of the kubeconfig names no cluster", context)
	case context != "":
		return false, fmt.Errorf("the kubeconfig has no context %q", context)
	case len(raw.Clusters) > 0 && k.inCluster == nil:
		return false, errors.New("the kubeconfig has no current-context: choose one with --context in KUBECTL_OPTIONS")
	default:
		return false, nil
	}
}

// override puts the flags over a pod's own configuration. clientcmd does so for
// three of them only: --as would be dropped without a word, and kubesync would
// write as somebody more powerful than it was told to.
func (k Kubernetes) override(config *rest.Config) (*rest.Config, error) {
	f := k.flags
	if *f.BearerToken != "" || *f.CertFile != "" || f.Username != nil {
		config.BearerToken, config.BearerTokenFile = *f.BearerToken, ""
		config.CertFile, config.KeyFile = *f.CertFile, *f.KeyFile
	}
	if f.Username != nil {
		config.Username, config.Password = *f.Username, *f.Password
	}
	if *f.CAFile != "" {
		config.CAFile = *f.CAFile
	}
	if *f.TLSServerName != "" {
		config.ServerName = *f.TLSServerName
	}
	if *f.Insecure {
		config.Insecure, config.CAFile = true, ""
	}
	if *f.ProxyURL != "" {
		proxy, err := parseProxy(*f.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("--proxy-url: %w", err)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	timeout, err := clientcmd.ParseTimeout(*f.Timeout)
	if err != nil {
		return nil, fmt.Errorf("--request-timeout: %w", err)
	}
	config.Timeout = timeout
	config.DisableCompression = *f.DisableCompression
	config.Impersonate = rest.ImpersonationConfig{UserName: *f.Impersonate, UID: *f.ImpersonateUID, Groups: *f.ImpersonateGroup, Extra: userExtra(*f.ImpersonateUserExtra)}
	return config, nil
}

// userExtra returns the values of --as-user-extra by their key.
func userExtra(pairs []string) map[string][]string {
	extra := map[string][]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		extra[key] = append(extra[key], value)
	}
	return extra
}
