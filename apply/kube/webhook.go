package kube

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// calledWebhook finds the webhook that made a request fail: it denied the request, or
// could not be called.
var calledWebhook = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request|failed calling webhook "([^"]+)"`)

// webhookBehind returns the name of the webhook that made a request fail, "" if it was
// none. API servers show that by the text alone.
func webhookBehind(err error) string {
	status, answered := Status(err)
	if !answered {
		return ""
	}
	found := calledWebhook.FindStringSubmatch(status.Message)
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

// Webhooks are the configurations of admission webhooks, by webhook, looked up at most
// once a sync: a webhook that fails may fail for every object.
type Webhooks struct {
	mu    sync.Mutex // held during the look-up, which others want the answer of too
	known bool
	in    map[string][]string
}

// Blame adds to a failure that a webhook caused which configuration it is in, and how
// to remove that. What may not be looked at is not named.
func (w *Webhooks) Blame(ctx context.Context, client kubernetes.Interface, err error) error {
	webhook := webhookBehind(err)
	if webhook == "" || w == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.known {
		w.in, w.known = listWebhooks(ctx, client), true
	}
	names := slices.Compact(slices.Sorted(slices.Values(w.in[webhook])))
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; the webhook is in %s: mend what answers it, or take it out of git, else kubectl delete %s", err, names[0], names[0])
}

// listWebhooks returns the webhook configurations that there are, by webhook. What cannot
// be looked at is left out: it is asked for the sake of a message.
func listWebhooks(ctx context.Context, client kubernetes.Interface) map[string][]string {
	in := map[string][]string{}
	admission := client.AdmissionregistrationV1()
	if list, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, one := range list.Items {
			for _, webhook := range one.Webhooks {
				in[webhook.Name] = append(in[webhook.Name], "validatingwebhookconfiguration/"+one.Name)
			}
		}
	}
	if list, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, one := range list.Items {
			for _, webhook := range one.Webhooks {
				in[webhook.Name] = append(in[webhook.Name], "mutatingwebhookconfiguration/"+one.Name)
			}
		}
	}
	return in
}
