package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/manifest"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// liveNamespaces is what the cluster's namespaces were at one moment.
type liveNamespaces struct {
	labels      map[string]map[string]string
	terminating map[string]bool
}

// listNamespaces reads the cluster's namespaces: one request per 500.
func (c *Cluster) listNamespaces(ctx context.Context) (liveNamespaces, error) {
	found := liveNamespaces{labels: map[string]map[string]string{}, terminating: map[string]bool{}}
	err := c.own.ListMetadata(ctx, namespacesResource, "", "", func(ns *metav1.PartialObjectMetadata) {
		found.labels[ns.Name] = ns.Labels
		if ns.DeletionTimestamp != nil {
			found.terminating[ns.Name] = true
		}
	})
	return found, err
}

// listAllows reports whether an allow-list, unless it is nil, has a namespace.
func listAllows(allowed []string, namespace string) bool {
	return allowed == nil || slices.Contains(allowed, namespace)
}

// has reports whether there is a namespace, if only one that is being deleted.
func (n liveNamespaces) has(name string) bool {
	_, found := n.labels[name]
	return found
}

// exists reports whether objects can be created in a namespace.
func (n liveNamespaces) exists(name string) bool {
	_, found := n.labels[name]
	return found && !n.terminating[name]
}

// isSystem reports whether a namespace is closed to application repos: by name, by
// being the daemon's own, or by the label that says so.
func (c *Cluster) isSystem(name string, live liveNamespaces) bool {
	return name == c.options.OwnNamespace ||
		slices.Contains(c.options.SystemNamespaces, name) ||
		live.labels[name][manifest.TierLabel] == manifest.System.String()
}
