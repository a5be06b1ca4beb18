package apply

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// calledWebhook finds the webhook that made a request fail: it denied the request, or
// could not be called.
var calledWebhook = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request|failed calling webhook "([^"]+)"`)

// webhookBehind returns the name of the webhook that made a request fail, "" if it was
// none. API servers tell that by the text alone.
func webhookBehind(err error) string {
	status, answered := apiStatus(err)
	if !answered {
		return ""
	}
	found := calledWebhook.FindStringSubmatch(status.Message)
	if found == nil {
		return ""
	}
	return found[1] + found[2]
}

// webhooks are the configurations of admission webhooks, by webhook, looked up at most
// once a sync: a webhook that fails may fail for every object.
type webhooks struct {
	mu    sync.Mutex // held during the look-up, which others want the answer of too
	known bool
	in    map[string][]string
}

// configurations returns which webhook configurations have a webhook, as kubectl names
// them; none if that may not be looked at.
func (w *webhooks) configurations(ctx context.Context, c *Cluster, webhook string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.known {
		w.in, w.known = c.listWebhooks(ctx), true
	}
	return w.in[webhook]
}

// listWebhooks returns the webhook configurations that there are, by webhook. What cannot
// be looked at is left out: it is asked for the sake of a message.
func (c *Cluster) listWebhooks(ctx context.Context) map[string][]string {
	in := map[string][]string{}
	admission := c.typed.AdmissionregistrationV1()
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

// blameWebhook adds to a failure that a webhook caused which configuration it is in, and
// how to get rid of that.
func (s *Set) blameWebhook(ctx context.Context, plan *Plan, err error) error {
	webhook := webhookBehind(err)
	if webhook == "" || plan == nil || plan.webhooks == nil {
		return err
	}
	names := slices.Compact(slices.Sorted(slices.Values(plan.webhooks.configurations(ctx, s.cluster, webhook))))
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; the webhook is in %s: mend what answers it, or take it out of git, else kubectl delete %s", err, names[0], names[0])
}
