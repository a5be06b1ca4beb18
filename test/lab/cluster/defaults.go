package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// waitForDefaults waits for what every cluster has soon after its start and
// tests rely on: the first namespaces and, from the controllers, their default
// ServiceAccounts and the rules of the ClusterRole admin.
func (c *Cluster) waitForDefaults(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.defaults(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster's first objects: %w", errors.Join(err, c.exits()))
		case <-tick.C:
		}
	}
}

func (c *Cluster) defaults(ctx context.Context, client kubernetes.Interface) error {
	for _, namespace := range []string{"default", "kube-system"} {
		if _, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("namespace: %w", err)
		}
		if !c.opts.controllers {
			continue
		}
		if _, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return fmt.Errorf("default ServiceAccount of %s: %w", namespace, err)
		}
	}
	if !c.opts.controllers {
		return nil
	}
	admin, err := client.RbacV1().ClusterRoles().Get(ctx, "admin", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("ClusterRole admin: %w", err)
	}
	if len(admin.Rules) == 0 {
		return errors.New("ClusterRole admin has no rules yet")
	}
	return nil
}

// exits reports which of the servers have ended though no one stopped them.
func (c *Cluster) exits() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range c.processes() {
		if p.Ended() {
			errs = append(errs, p.Exited())
		}
	}
	return errors.Join(errs...)
}
