package promrules

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// The operator's objects have no field that it does not know, and lead to the daemon.
func TestOperatorObjects(t *testing.T) {
	t.Parallel()
	documents := bytes.Split(read(t, "servicemonitor.yaml"), []byte("\n---\n"))
	if len(documents) != 2 {
		t.Fatalf("there are %d documents, want a Service and a ServiceMonitor", len(documents))
	}
	var service corev1.Service
	var monitor monitoringv1.ServiceMonitor
	var rule monitoringv1.PrometheusRule
	for object, document := range map[any][]byte{&service: documents[0], &monitor: documents[1], &rule: read(t, "rules.yaml")} {
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(service.Labels)) || monitor.Namespace != service.Namespace {
		t.Errorf("the ServiceMonitor looks for %s in %s, the Service has %v in %s", selector, monitor.Namespace, service.Labels, service.Namespace)
	}
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor's endpoints are %+v, the Service's ports %+v", monitor.Spec.Endpoints, service.Spec.Ports)
	}
	if len(rule.Spec.Groups) != 1 || len(rule.Spec.Groups[0].Rules) != len(alerts(t)) {
		t.Errorf("the rules are not those that the other tests prove: %+v", rule.Spec.Groups)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(monitoring, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
