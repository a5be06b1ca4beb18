package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/test/lab/pki"
)

// All that holds a secret is listed, also what a list names that is read later, and a
// kubeconfig that changes.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t)
	credentials, hook := writeFile(t, "credentials", "joe:hunter22"), writeFile(t, "hook", "hunter22")
	list := writeFile(t, "list", "- {url: 'https://h/x', creds_file: /late/credentials}\n")
	access := writeFile(t, "kubeconfig", kubeconfig)
	config := mustConfigure(t, vars{
		"REPO": appURL, "CONFIG": list, "REPOCREDS_FILE": credentials, "SSH_KEY_FILE": key, "WEBHOOK_SECRET_FILE": hook,
		"KUBECTL_OPTIONS": "--context one --kubeconfig " + access, "CURL_OPTIONS": fmt.Sprintf("--cert %s --key %s --cacert %s", cert, key, cert),
	})
	check := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		got := config.SecretFiles()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", when, got, want)
		}
	}
	first := []string{list, credentials, key, hook, cert, access}
	check("at start", first...)
	if _, _, err := config.List.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("once the list is read", append(first, "/late/credentials")...)
	named := strings.Replace(kubeconfig, "token: kubeconfig-token", "tokenFile: /the/token, client-key: the.key, client-certificate: /the.crt", 1)
	if err := os.WriteFile(access, []byte(named), 0o600); err != nil {
		t.Fatal(err)
	}
	check("with another kubeconfig", append(first, "/late/credentials", "/the/token", "/the.crt", filepath.Join(filepath.Dir(access), "the.key"))...)
	if err := os.WriteFile(access, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("with a broken kubeconfig", append(first, "/late/credentials")...)
}

// keyPair returns the files of a certificate and its key.
func keyPair(t *testing.T) (cert, key string) {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("kubesync")
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "cert.pem", string(pair.Cert)), writeFile(t, "key.pem", string(pair.Key))
}

// Flags for keys count as well, and a kubeconfig that is not there yet.
func TestSecretFilesOfFlags(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t)
	config := mustConfigure(t, vars{"REPO": appURL, "KUBECTL_OPTIONS": fmt.Sprintf("--server https://h --client-certificate %s --client-key %s", cert, key)})
	want := []string{key, cert, os.Getenv("KUBECONFIG")}
	if got := config.SecretFiles(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
