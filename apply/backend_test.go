package apply

import (
	"testing"

	"github.com/kubesync/kubesync/apply/manifest"
)

func TestNotBefore(t *testing.T) {
	t.Parallel()
	const (
		service    = "{apiVersion: v1, kind: Service, metadata: {name: hook, namespace: guard}, spec: {selector: {app: hook}, ports: [{port: 443}]}}\n---\n"
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: hook, namespace: guard}, spec: {template: {metadata: {labels: {app: hook, tier: x}}, spec: {containers: [{name: a, image: b}]}}}}\n---\n"
		other      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, namespace: guard}, spec: {template: {metadata: {labels: {app: other}}, spec: {containers: [{name: a, image: b}]}}}}\n---\n"
		webhook    = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}, webhooks: [{name: a.b.c, clientConfig: {url: 'https://x'}}, {name: d.e.f, clientConfig: {service: {name: hook, namespace: guard}}}]}\n---\n"
		apiservice = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.x}, spec: {service: {name: hook, namespace: guard}}}\n---\n"
		config     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: guard}}\n---\n"
	)
	var (
		theService = manifest.ID{Kind: "Service", Namespace: "guard", Name: "hook"}
		theHook    = manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "guard", Name: "hook"}
		theOther   = manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "guard", Name: "other"}
	)
	for name, test := range map[string]struct {
		first, rest string
		id          manifest.ID
		action      Action
		want        string
	}{
		"all is well":              {webhook, service + deployment, theHook, Configured, ""},
		"its Service failed":       {webhook, service + deployment, theService, Failed, "waits for Service/guard/hook, which answers its requests and was failed"},
		"its Service was refused":  {apiservice, service, theService, Refused, "waits for Service/guard/hook, which answers its requests and was refused"},
		"the workload failed":      {webhook, service + deployment + other, theHook, Failed, "waits for Deployment/guard/hook, which is behind Service/guard/hook and was failed"},
		"another workload failed":  {webhook, service + deployment + other, theOther, Failed, ""},
		"another's Service":        {webhook, deployment, theHook, Failed, ""}, // its selector is not known
		"no webhook configuration": {config, service + deployment, theService, Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := objectsOf(t, test.first+test.rest)
			got := notBefore(all[0], all, []Outcome{{ID: test.id, Action: test.action}})
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
