package config

import (
	"cmp"
	"os"

	"github.com/kubesync/kubesync/sync/config/redact"
	"github.com/kubesync/kubesync/sync/status/server"
)

// LoadClient reads what "kubesync status" needs: Listen, the certificate of ListenTLS,
// ListenToken, Kubernetes and OwnNamespace. The rest of the configuration is not read, and
// no cluster has to be configured.
func LoadClient() (Config, error) {
	env, err := readEnvironment()
	if err != nil {
		return Config{}, err
	}
	return buildClient(env, host{pod: findPod(env.PodNamespace, serviceAccountNamespace), set: environ(os.Environ())})
}

// buildClient makes domain values of the variables that a client needs.
func buildClient(env environment, host host) (Config, error) {
	redactor := redact.New()
	b := &builder{mistakes: &mistakes{}, env: env, host: host, redactor: redactor, to: Config{Redactor: redactor, secretFiles: &secretFiles{}}}
	b.to.DryRun = true // that needs no cluster either
	b.proxies()
	b.kubernetes()
	b.to.Listen = parse(b.mistakes, "LISTEN", cmp.Or(b.env.Listen, defaultListen), server.ParseListen)
	b.to.ListenToken = b.secretFile("LISTEN_TOKEN_FILE", b.env.ListenTokenFile)
	if name := b.env.ListenTLSCertFile; name != "" && b.to.Listen.Network != "unix" {
		b.checkPath("LISTEN_TLS_CERT_FILE", name, checkCertificates)
		b.to.ListenTLS.CertFile = name
	}
	b.to.InPod = b.host.pod.inside
	b.to.OwnNamespace = cmp.Or(b.env.PodNamespace, b.host.pod.namespace, defaultOwnNamespace)
	parse(b.mistakes, "POD_NAMESPACE", b.to.OwnNamespace, parseNamespace)
	if err := b.err(redactor); err != nil {
		return Config{}, err
	}
	return b.to, nil
}
