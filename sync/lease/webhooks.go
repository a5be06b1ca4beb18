package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// lookEvery is the time between two looks for the webhooks that slow down a Lease.
	lookEvery = time.Minute
	// lookTimeout bounds one.
	lookTimeout = 5 * time.Second
	// webhookTimeout is what a webhook has that does not say it.
	webhookTimeout = 10 * time.Second
	// nameLabel is on every Namespace.
	nameLabel = "kubernetes.io/metadata.name"
)

// askedWebhook is an admission webhook as far as it matters to whom it is asked about.
type askedWebhook struct {
	configuration     string // kind/name
	name              string
	rules             []admissionv1.RuleWithOperations
	namespaceSelector *metav1.LabelSelector
	objectSelector    *metav1.LabelSelector
	timeout           *int32
}

// String names it for a person.
func (w askedWebhook) String() string {
	timeout := webhookTimeout
	if w.timeout != nil {
		timeout = time.Duration(*w.timeout) * time.Second
	}
	return fmt.Sprintf("%s (webhook %s, up to %s each time)", w.configuration, w.name, timeout)
}

// matchesLease reports whether the webhook may be asked about a Lease with the labels, in a
// namespace with those. Conditions in CEL are not looked at.
func (w askedWebhook) matchesLease(lease, namespace map[string]string) bool {
	return slices.ContainsFunc(w.rules, ruleMatchesLease) && selects(w.objectSelector, lease) && selects(w.namespaceSelector, namespace)
}

// ruleMatchesLease reports whether a rule is for what keeps a Lease. Versions are not
// looked at: the API server asks about equivalent ones, too.
func ruleMatchesLease(rule admissionv1.RuleWithOperations) bool {
	has := func(all []string, wanted ...string) bool {
		return slices.ContainsFunc(all, func(one string) bool { return slices.Contains(wanted, one) })
	}
	writes := slices.ContainsFunc(rule.Operations, func(o admissionv1.OperationType) bool {
		return o == admissionv1.OperationAll || o == admissionv1.Create || o == admissionv1.Update
	})
	return writes && has(rule.APIGroups, "*", "coordination.k8s.io") && has(rule.Resources, "*", "*/*", "leases") &&
		(rule.Scope == nil || *rule.Scope != admissionv1.ClusterScope)
}

// selects reports whether a selector is for what has the labels; one that cannot be read
// may be.
func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true // of everything, as the API server fills it in
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(labels.Set(of))
}

// suspicion is what is known of why writes of the Lease take long.
type suspicion struct {
	looked   time.Time // when the API server was asked something else meanwhile
	listed   time.Time // when the configurations were listed, or that was denied
	readable bool      // it has answered that
	webhooks []string
	denied   bool // the configurations may not be read
}

// String says it for a person, and what to do.
func (s suspicion) String() string {
	const remedy = "exclude Leases from them, or the namespace, with their rules, namespaceSelector or matchConditions (docs/troubleshooting.md, A slow Lease)"
	switch {
	case len(s.webhooks) > 0:
		return "the API server asks admission webhooks about Leases: " + strings.Join(s.webhooks, ", ") + "; " + remedy
	case s.denied:
		return "kubesync may not list webhook configurations: see with kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml which of them match Leases, and " + remedy
	case s.readable:
		return "no admission webhook is asked about Leases, so that the API server or etcd itself is slow"
	}
	return ""
}

// suspectWhenSlow looks for webhooks when a write of the Lease has become slow, as long as
// it is under way. What it returns ends that.
func (l *Lease) suspectWhenSlow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(l.options.Timing.slowFrom()):
			l.suspect(ctx)
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// suspect finds out whether the API server answers reads, and, unless it is known from
// lately, which webhooks are asked about the Lease.
func (l *Lease) suspect(ctx context.Context) {
	l.mu.Lock()
	found := l.suspicion
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if time.Since(found.listed) < lookEvery {
		_, err := l.client.Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{})
		found.readable = err == nil || apierrors.IsNotFound(err)
	} else {
		found = l.findWebhooks(ctx)
	}
	found.looked = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suspicion = found
}

// findWebhooks asks the API server for all that may be asked about the Lease. It needs no
// right to do so: what it may not read, it does without.
func (l *Lease) findWebhooks(ctx context.Context) suspicion {
	var found suspicion
	webhooks, err := l.listWebhooks(ctx)
	if err != nil {
		found.denied = isDenied(err)
		if found.readable = found.denied; found.denied {
			found.listed = time.Now()
		}
		return found
	}
	found.readable, found.listed = true, time.Now()
	namespace := map[string]string{nameLabel: l.options.Namespace}
	// A list, as the rights that kubesync has anyway allow it.
	if read, err := l.core.Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + l.options.Namespace}); err == nil && len(read.Items) == 1 {
		namespace = read.Items[0].Labels
	}
	var own map[string]string
	if read, err := l.client.Leases(l.options.Namespace).Get(ctx, l.options.Name, metav1.GetOptions{}); err == nil {
		own = read.Labels
	}
	for _, webhook := range webhooks {
		if webhook.matchesLease(own, namespace) {
			found.webhooks = append(found.webhooks, webhook.String())
		}
	}
	return found
}

// listWebhooks returns all admission webhooks of the cluster.
func (l *Lease) listWebhooks(ctx context.Context) ([]askedWebhook, error) {
	var all []askedWebhook
	mutating, err := l.admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			all = append(all, askedWebhook{"MutatingWebhookConfiguration/" + c.Name, w.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.TimeoutSeconds})
		}
	}
	validating, err := l.admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			all = append(all, askedWebhook{"ValidatingWebhookConfiguration/" + c.Name, w.Name, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.TimeoutSeconds})
		}
	}
	return all, nil
}
