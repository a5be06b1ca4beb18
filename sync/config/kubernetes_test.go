package config

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- {name: one, cluster: {server: "https://one.example.com"}}
- {name: two, cluster: {server: "https://two.example.com"}}
contexts:
- {name: one, context: {cluster: one, user: joe, namespace: from-context}}
- {name: two, context: {cluster: two, user: joe}}
- {name: lost, context: {cluster: missing, user: joe}}
- {name: bare, context: {user: joe}}
users:
- {name: joe, user: {token: kubeconfig-token}}
`

// connect returns the access to Kubernetes that the options give in a pod.
func connect(t *testing.T, options string, in pod) Kubernetes {
	t.Helper()
	config, err := configure(t, vars{"REPO": appURL, "KUBECTL_OPTIONS": options}, host{pod: in})
	if err != nil {
		t.Fatal(err)
	}
	return config.Kubernetes
}

// serviceAccount is a pod that has one.
func serviceAccount() pod {
	return pod{inside: true, namespace: "own", inCluster: func() (*rest.Config, error) {
		return &rest.Config{
			Host:            "https://10.0.0.1:443",
			BearerToken:     "pod-token",
			BearerTokenFile: "/run/token",
			TLSClientConfig: rest.TLSClientConfig{CAFile: "/run/ca.crt"},
		}, nil
	}}
}

func TestRESTConfig(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "kubeconfig", "current-context: one\n"+kubeconfig)
	undecided := writeFile(t, "kubeconfig", kubeconfig)
	with := "--kubeconfig " + file + " "
	for name, test := range map[string]struct {
		options string
		in      pod
		host    string
		check   func(*rest.Config) bool
	}{
		"current context": {with, pod{}, "https://one.example.com", func(c *rest.Config) bool { return c.BearerToken == "kubeconfig-token" }},
		"context":         {with + "--context=two", pod{}, "https://two.example.com", nil},
		"cluster":         {with + "--cluster two", pod{}, "https://two.example.com", nil},
		"server":          {"-s https://h:1", pod{}, "https://h:1", nil},
		"token":           {with + "--token 't o'", pod{}, "https://one.example.com", func(c *rest.Config) bool { return c.BearerToken == "t o" }},
		"password": {"--server=https://h --username joe --password hunter22", pod{}, "https://h",
			func(c *rest.Config) bool { return c.Username == "joe" && c.Password == "hunter22" }},
		"as": {with + "--as jane --as-group a --as-group b --as-uid 7 --as-user-extra k=v", pod{}, "https://one.example.com",
			func(c *rest.Config) bool { return reflect.DeepEqual(c.Impersonate, janeWithGroups()) }},
		"timeout":             {with + "--request-timeout 7s", pod{}, "https://one.example.com", func(c *rest.Config) bool { return c.Timeout == 7*time.Second }},
		"kubeconfig in a pod": {with, serviceAccount(), "https://one.example.com", func(c *rest.Config) bool { return c.BearerToken == "kubeconfig-token" }},
		"pod":                 {"", serviceAccount(), "https://10.0.0.1:443", func(c *rest.Config) bool { return c.BearerTokenFile == "/run/token" }},
		"undecided in a pod":  {"--kubeconfig " + undecided, serviceAccount(), "https://10.0.0.1:443", nil},
		"as in a pod": {"--as jane --as-group=a --as-group=b --as-uid=7 --as-user-extra=k=v --request-timeout=7s", serviceAccount(), "https://10.0.0.1:443",
			func(c *rest.Config) bool {
				return reflect.DeepEqual(c.Impersonate, janeWithGroups()) && c.BearerTokenFile == "/run/token" && c.Timeout == 7*time.Second
			}},
		"token in a pod": {"--token mine", serviceAccount(), "https://10.0.0.1:443",
			func(c *rest.Config) bool { return c.BearerToken == "mine" && c.BearerTokenFile == "" }},
		"password in a pod": {"--username joe --password hunter22", serviceAccount(), "https://10.0.0.1:443",
			func(c *rest.Config) bool {
				return c.Username == "joe" && c.Password == "hunter22" && c.BearerToken == "" && c.BearerTokenFile == ""
			}},
		"TLS in a pod": {"--insecure-skip-tls-verify --tls-server-name n --disable-compression", serviceAccount(), "https://10.0.0.1:443",
			func(c *rest.Config) bool {
				return c.Insecure && c.CAFile == "" && c.ServerName == "n" && c.DisableCompression
			}},
		"CA in a pod": {"--certificate-authority /ca --client-certificate /c --client-key /k", serviceAccount(), "https://10.0.0.1:443",
			func(c *rest.Config) bool {
				return c.CAFile == "/ca" && c.CertFile == "/c" && c.KeyFile == "/k" && c.BearerTokenFile == ""
			}},
		"proxy in a pod": {"--proxy-url=http://p:1", serviceAccount(), "https://10.0.0.1:443", usesProxy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubernetes := connect(t, test.options, test.in)
			if !kubernetes.Configured() {
				t.Error("no cluster is configured")
			}
			config, err := kubernetes.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != test.host {
				t.Errorf("host: got %s, want %s", config.Host, test.host)
			}
			if test.check != nil && !test.check(config) {
				t.Errorf("got %+v", config)
			}
		})
	}
}

func janeWithGroups() rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: "jane", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}}
}

func usesProxy(config *rest.Config) bool {
	if config.Proxy == nil {
		return false
	}
	proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "h"}})
	return err == nil && proxy.String() == "http://p:1"
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "kubeconfig", "current-context: one\n"+kubeconfig)
	for name, test := range map[string]struct {
		options  string
		in       pod
		want     string
		explicit bool
	}{
		"flag":                {"--kubeconfig " + file + " -n mine", pod{}, "mine", true},
		"context":             {"--kubeconfig " + file, pod{}, "from-context", true},
		"context, in a pod":   {"--kubeconfig " + file, serviceAccount(), "from-context", true},
		"another context":     {"--context two --kubeconfig " + file, pod{}, "default", false},
		"another, in a pod":   {"--context two --kubeconfig " + file, serviceAccount(), "own", false},
		"pod":                 {"", serviceAccount(), "own", false},
		"pod with a flag":     {"--namespace=mine", serviceAccount(), "mine", true},
		"nothing is anywhere": {"", pod{}, "default", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, explicit, err := connect(t, test.options, test.in).Namespace()
			if err != nil || got != test.want || explicit != test.explicit {
				t.Errorf("got %q, explicit %v, %v; want %q, explicit %v", got, explicit, err, test.want, test.explicit)
			}
		})
	}
}

func TestNoCluster(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"no options": "", "no address": "--token abcdef --namespace x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubernetes := connect(t, options, pod{})
			if kubernetes.Configured() {
				t.Error("a cluster is configured")
			}
			if _, err := kubernetes.RESTConfig(); !errors.Is(err, errNoCluster) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whoever wants to write must say where, beside all else that is wrong.
func TestNoClusterWithoutDryRun(t *testing.T) {
	t.Parallel()
	_, err := configure(t, vars{"REPO": appURL, "DRYRUN": "no", "TIER": "root"}, outside(t))
	expect(t, err, "KUBECTL_OPTIONS: no cluster is configured", "DRYRUN=1", `TIER: "root"`)
}

func TestTheKubeconfigsTokenIsRedacted(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "kubeconfig", "current-context: one\n"+kubeconfig)
	config := mustConfigure(t, vars{"REPO": appURL, "KUBECTL_OPTIONS": "--kubeconfig " + file})
	if _, err := config.Kubernetes.RESTConfig(); err != nil {
		t.Fatal(err)
	}
	if got := config.Redactor.String("kubeconfig-token"); got != "***" {
		t.Errorf("got %q", got)
	}
}

// TestKubeconfigOfTheEnvironment sets variables of the process, hence not parallel.
func TestKubeconfigOfTheEnvironment(t *testing.T) {
	file := writeFile(t, "kubeconfig", "current-context: one\n"+kubeconfig)
	t.Setenv("KUBECONFIG", "/does/not/exist"+string(os.PathListSeparator)+file)
	config := mustConfigure(t, vars{"REPO": appURL})
	if rest, err := config.Kubernetes.RESTConfig(); err != nil || rest.Host != "https://one.example.com" || len(config.Warnings) != 0 {
		t.Errorf("got %+v, %v, warnings %q", rest, err, config.Warnings)
	}

	t.Setenv("KUBECONFIG", "/does/not/exist")
	config = mustConfigure(t, vars{"REPO": appURL})
	if config.Kubernetes.Configured() || len(config.Warnings) != 1 || !strings.Contains(config.Warnings[0], "/does/not/exist") {
		t.Errorf("configured %v, warnings %q", config.Kubernetes.Configured(), config.Warnings)
	}

	t.Setenv("KUBECONFIG", writeFile(t, "broken", "clusters: 7"))
	_, err := configure(t, vars{"REPO": appURL}, outside(t))
	expect(t, err, "KUBECTL_OPTIONS: read the kubeconfig")
}

func TestKubectlMistakes(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "kubeconfig", kubeconfig)
	for name, test := range map[string]struct{ options, want string }{
		"missing file":     {"--kubeconfig /does/not/exist", "--kubeconfig: open /does/not/exist"},
		"directory":        {"--kubeconfig /", "--kubeconfig: / is a directory"},
		"undecided":        {"--kubeconfig " + file, "has no current-context: choose one with --context"},
		"unknown context":  {"--context nope --kubeconfig " + file, `the kubeconfig has no context "nope"`},
		"unknown cluster":  {"--cluster nope --kubeconfig " + file, `no address of the cluster "nope"`},
		"no cluster":       {"--context bare --kubeconfig " + file, `the context "bare" of the kubeconfig names no cluster`},
		"lost cluster":     {"--context lost --kubeconfig " + file, `no address of the cluster "missing"`},
		"namespace":        {"--namespace Mine", `--namespace: "Mine" is not a valid name`},
		"password alone":   {"--password hunter22", "--password needs --username"},
		"timeout":          {"--request-timeout soon", `--request-timeout: "soon"`},
		"extra":            {"--as-user-extra x", `--as-user-extra: "x" is not key=value`},
		"word":             {"get pods", "an argument is not a flag"},
		"quote":            {"--context 'a", "a quote is not closed"},
		"no value":         {"--context", "the flag --context needs a value"},
		"no bool":          {"--insecure-skip-tls-verify=maybe", "the value of the flag --insecure-skip-tls-verify is not a valid bool"},
		"other verb's":     {"--dry-run=client --force", "the flag --dry-run is not supported"},
		"all of them":      {"--dry-run=client --force", "the flag --force is not supported"},
		"short":            {"-o yaml", "the flag -o is not supported"},
		"joined":           {"-oyaml", "the flag -o is not supported"},
		"help":             {"--help", "the flag --help is not supported"},
		"short help":       {"-h", "the flag --help is not supported"},
		"odd":              {"--=x", "an argument that starts with a dash is not a flag"},
		"not a flag, long": {"---x", "an argument that starts with a dash is not a flag"},
		"beyond ASCII":     {"-é", "is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := configure(t, vars{"REPO": appURL, "KUBECTL_OPTIONS": test.options}, outside(t))
			expect(t, err, "KUBECTL_OPTIONS: ", test.want)
		})
	}
}
