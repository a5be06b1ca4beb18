package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestMain takes from the process what would make a configuration, as the tests do
// not want to know what the machine is set up with.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	names := append(OwnVariables(), "NAME", "POD_NAMESPACE", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy")
	for _, name := range names {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	directory, err := os.MkdirTemp("", "config-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(directory)
	// An empty kubeconfig keeps clientcmd from the one in the home directory.
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// vars are environment variables by name.
type vars map[string]string

// with returns the variables and some more.
func (v vars) with(more vars) vars {
	all := vars{}
	for _, source := range []vars{v, more} {
		for name, value := range source {
			all[name] = value
		}
	}
	return all
}

// outside is a host that is no pod and has no default list.
func outside(t *testing.T) host {
	t.Helper()
	return host{listFile: filepath.Join(t.TempDir(), "absent.json")}
}

// configure builds a configuration from variables, as Load does from the process's.
// It is one of a dry run, which needs no cluster, unless they say otherwise.
func configure(t *testing.T, set vars, host host) (Config, error) {
	t.Helper()
	env, err := readEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	env.DryRun = "on"
	known := map[string]reflect.Value{}
	for field, value := range reflect.ValueOf(&env).Elem().Fields() {
		known[field.Tag.Get("envconfig")] = value
	}
	for name, text := range set {
		switch field := known[name]; {
		case !field.IsValid():
			t.Fatalf("there is no variable %s", name)
		case field.Kind() == reflect.Bool:
			if err := field.Addr().Interface().(*truth).Decode(text); err != nil {
				t.Fatal(err)
			}
		default:
			field.SetString(text)
		}
	}
	env.fill()
	return build(env, host)
}

// mustConfigure is configure for variables without mistakes.
func mustConfigure(t *testing.T, set vars) Config {
	t.Helper()
	config, err := configure(t, set, outside(t))
	if err != nil {
		t.Fatalf("the configuration is refused: %v", err)
	}
	return config
}

// writeFile writes a file of the test and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expect checks that an error says all of what is wanted.
func expect(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error, want one with %q", wanted)
	}
	for _, want := range wanted {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in the error:\n%v", want, err)
		}
	}
}
