package lease

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWebhooksThatMatchALease(t *testing.T) {
	t.Parallel()
	cluster, namespaced := admissionv1.ClusterScope, admissionv1.NamespacedScope
	rule := func(group, resource string, scope *admissionv1.ScopeType, operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{
			{Operations: []admissionv1.OperationType{admissionv1.Delete}, Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}}},
			{Operations: operations, Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: scope}},
		}
	}
	everything := rule("*", "*", nil, admissionv1.OperationAll)
	only := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	not := func(key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
	}
	for name, test := range map[string]struct {
		webhook askedWebhook
		want    bool
	}{
		"everything":               {askedWebhook{rules: everything}, true},
		"everything, also beneath": {askedWebhook{rules: rule("*", "*/*", nil, admissionv1.OperationAll)}, true},
		"leases":                   {askedWebhook{rules: rule("coordination.k8s.io", "leases", &namespaced, admissionv1.Update)}, true},
		"creating alone":           {askedWebhook{rules: rule("coordination.k8s.io", "*", nil, admissionv1.Create)}, true},
		"deleting alone":           {askedWebhook{rules: rule("*", "*", nil, admissionv1.Delete, admissionv1.Connect)}, false},
		"another group":            {askedWebhook{rules: rule("", "*", nil, admissionv1.OperationAll)}, false},
		"another resource":         {askedWebhook{rules: rule("coordination.k8s.io", "leasecandidates", nil, admissionv1.OperationAll)}, false},
		"cluster-scoped alone":     {askedWebhook{rules: rule("*", "*", &cluster, admissionv1.OperationAll)}, false},
		"no rules":                 {askedWebhook{}, false},
		"this namespace":           {askedWebhook{rules: everything, namespaceSelector: only(nameLabel, "kube-system")}, true},
		"another namespace":        {askedWebhook{rules: everything, namespaceSelector: only(nameLabel, "shop")}, false},
		"all but this namespace":   {askedWebhook{rules: everything, namespaceSelector: not(nameLabel, "kube-system")}, false},
		"objects with a label":     {askedWebhook{rules: everything, objectSelector: only("checked", "yes")}, false},
		"all but our label":        {askedWebhook{rules: everything, objectSelector: not("mine", "true")}, false},
		"unreadable selector":      {askedWebhook{rules: everything, objectSelector: not("mine")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.webhook.matchesLease(map[string]string{"mine": "true"}, map[string]string{nameLabel: "kube-system"}); got != test.want {
				t.Errorf("matches: %v, want %v", got, test.want)
			}
		})
	}
}
