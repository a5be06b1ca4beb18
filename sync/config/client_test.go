package config

import (
	"errors"
	"strings"
	"testing"
)

func TestAClientNeedsLittle(t *testing.T) {
	t.Parallel()
	token := writeFile(t, "token", "client-token-1234\n")
	settings, err := buildClient(environment{Listen: "unix:/run/kubesync", ListenTokenFile: token, ListenTLSCertFile: "/not/looked/at"}, host{})
	if err != nil {
		t.Fatal(err)
	}
	if settings.Listen.Address != "/run/kubesync" || !settings.ListenToken.Given() || settings.OwnNamespace != "kube-system" || settings.ListenTLS.CertFile != "" {
		t.Errorf("%+v", settings)
	}
	if settings, err = buildClient(environment{}, host{}); err != nil || settings.Listen.Address != "127.0.0.1:9797" {
		t.Errorf("without any variable: %+v, %v", settings.Listen, err)
	}
}

func TestAClientsMistakesAreToldTogether(t *testing.T) {
	t.Parallel()
	_, err := buildClient(environment{Listen: "nowhere", ListenTokenFile: "/does/not/exist", KubectlOptions: "--what", PodNamespace: "A"}, host{})
	var found Errors
	if !errors.As(err, &found) || len(found) != 4 {
		t.Fatalf("%d mistakes: %v", len(found), err)
	}
	for _, variable := range []string{"LISTEN", "LISTEN_TOKEN_FILE", "KUBECTL_OPTIONS", "POD_NAMESPACE"} {
		if !strings.Contains(err.Error(), variable+":") {
			t.Errorf("%s is not named: %v", variable, err)
		}
	}
}
