package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubesync/kubesync/sync/config/flags"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// Kubernetes is how to reach the API server: KUBECTL_OPTIONS over a kubeconfig
// (KUBECONFIG, else ~/.kube/config) over the ServiceAccount of a pod. Files are read
// when asked for, so that a kubeconfig that was replaced is seen.
type Kubernetes struct {
	flags     *genericclioptions.ConfigFlags
	inCluster func() (*rest.Config, error) // nil where there is no ServiceAccount
	podsOwn   string                       // namespace of the pod, empty outside of one
	redactor  *redact.Redactor
}

// errNoCluster says that no cluster is configured.
var errNoCluster = errors.New("no cluster is configured: set KUBECONFIG, or --kubeconfig or --server in KUBECTL_OPTIONS, " +
	"or run in a pod with a ServiceAccount; DRYRUN=1 checks the manifests without a cluster")

// newKubernetes reads KUBECTL_OPTIONS and whatever it points at, and returns the names of the flags that
// are ignored. It is a mistake if that is no cluster where one is needed.
func newKubernetes(options string, pod pod, needed bool, m *mistakes, redactor *redact.Redactor) (Kubernetes, []string) {
	const variable = "KUBECTL_OPTIONS"
	k := Kubernetes{
		flags:     genericclioptions.NewConfigFlags(false).WithDeprecatedPasswordFlag(),
		inCluster: pod.inCluster,
		podsOwn:   pod.namespace,
		redactor:  redactor,
	}
	set := pflag.NewFlagSet(variable, pflag.ContinueOnError)
	k.flags.AddFlags(set)
	defineIgnored(set)
	problems := flags.Parse(set, options)
	redactor.Add(k.secrets()...)
	if *k.flags.Password != "" && *k.flags.Username == "" {
		problems = append(problems, errors.New("--password needs --username"))
	}
	if *k.flags.Username == "" {
		// With these two, cli-runtime asks for what is missing on standard input,
		// where no one answers a daemon.
		k.flags.Username, k.flags.Password = nil, nil
	}
	for _, problem := range problems {
		m.add(variable, "%v; accepted are kubectl's flags for the connection (such as --kubeconfig, --context, --server, --namespace, --as), "+
			"--username and --password", problem)
	}
	if len(problems) == 0 {
		for _, problem := range k.check(needed) {
			m.add(variable, "%v", problem)
		}
	}
	var ignored []string
	set.Visit(func(flag *pflag.Flag) {
		if _, is := flag.Value.(flags.Ignored); is {
			ignored = append(ignored, "--"+flag.Name)
		}
	})
	return k, ignored
}

// defineIgnored adds kubectl's flags that have no effect here: those about its log, of today's kubectl and
// of kubectl 1.11, which the shell script had, and the comparison of its version with the server's.
func defineIgnored(set *pflag.FlagSet) {
	for _, name := range []string{"log-backtrace-at", "log-dir", "log-file", "log-flush-frequency", "stderrthreshold", "vmodule"} {
		set.VarPF(flags.Ignored{}, name, "", "")
	}
	set.VarPF(flags.Ignored{}, "v", "v", "")
	for _, name := range []string{"logtostderr", "alsologtostderr", "match-server-version"} {
		set.VarPF(flags.Ignored{}, name, "", "").NoOptDefVal = "true"
	}
}

// secrets returns what must not be printed of the options.
func (k Kubernetes) secrets() []string {
	secrets := redact.URLs(*k.flags.ProxyURL + " " + *k.flags.APIServer)
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
		problems = append(problems, fmt.Errorf("--request-timeout: %q is not a duration such as 30s", *k.flags.Timeout))
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

// warnOfMissingKubeconfig warns if KUBECONFIG names no file that exists: as kubectl, kubesync goes on
// without it.
func (b *builder) warnOfMissingKubeconfig() {
	files := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if len(files) > 0 && !slices.ContainsFunc(files, exists) {
		b.warn("KUBECONFIG: no such file: %s", strings.Join(files, ", "))
	}
}

// Configured reports whether anything says where a cluster is. It is true for a
// kubeconfig that cannot be used, for which RESTConfig returns the reason.
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
// namespace. Explicit says that --namespace or the kubeconfig's context says so;
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

// fromFile reports whether flags or a kubeconfig say where the cluster is. Asking
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
// write as a more powerful user than configured.
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
		proxy, err := parseProxy(*f.ProxyURL, "http", "https", "socks5", "socks5h")
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
