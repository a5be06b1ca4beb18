package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// servedKind is how the API server serves one kind in one version.
type servedKind struct {
	GVR        schema.GroupVersionResource
	Namespaced bool
	HasStatus  bool // has a status subresource
	Listable   bool // supports list and delete, so that members can be found and pruned
}

// kinds is a snapshot of discovery. It is immutable; when a kind is missing the
// cluster takes a new one.
type kinds struct {
	served    map[schema.GroupVersionKind]servedKind
	preferred map[schema.GroupKind]schema.GroupVersionKind
	// unreachable holds the group versions that discovery could not look at (an
	// aggregated API server that is down), with the reason.
	unreachable map[schema.GroupVersion]error
}

// discoverKinds asks the API server what it serves: two requests with aggregated
// discovery. Groups that cannot be reached are recorded, not fatal.
func discoverKinds(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (*kinds, error) {
	groups, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, fmt.Errorf("discover the kinds the API server serves: %w", err)
	}
	k := &kinds{
		served:      map[schema.GroupVersionKind]servedKind{},
		preferred:   map[schema.GroupKind]schema.GroupVersionKind{},
		unreachable: map[schema.GroupVersion]error{},
	}
	if partial != nil {
		k.unreachable = partial.Groups
	}
	for _, list := range lists {
		k.add(list)
	}
	k.prefer(groups)
	return k, nil
}

// add takes over one group version's resources.
func (k *kinds) add(list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return // not a group version: nothing a manifest could name
	}
	withStatus := map[string]bool{}
	for _, r := range list.APIResources {
		if resource, found := strings.CutSuffix(r.Name, "/status"); found {
			withStatus[resource] = true
		}
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		k.served[gv.WithKind(r.Kind)] = servedKind{
			GVR:        gv.WithResource(r.Name),
			Namespaced: r.Namespaced,
			HasStatus:  withStatus[r.Name],
			Listable:   slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete"),
		}
	}
}

// prefer notes for each kind the version the server prefers among those that have it.
func (k *kinds) prefer(groups []*metav1.APIGroup) {
	rank := map[schema.GroupVersion]int{}
	for _, group := range groups {
		for i, v := range group.Versions {
			rank[schema.GroupVersion{Group: group.Name, Version: v.Version}] = i + 1
		}
		rank[schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}] = 0
	}
	for gvk := range k.served {
		gk := gvk.GroupKind()
		best, known := k.preferred[gk]
		if !known || rank[gvk.GroupVersion()] < rank[best.GroupVersion()] {
			k.preferred[gk] = gvk
		}
	}
}

// serves tells whether a resource is served in any version.
func (k *kinds) serves(resource schema.GroupResource) bool {
	for _, served := range k.served {
		if served.GVR.GroupResource() == resource {
			return true
		}
	}
	return false
}

// lookup returns how a kind is served in its preferred version.
func (k *kinds) lookup(gk schema.GroupKind) (servedKind, bool) {
	gvk, found := k.preferred[gk]
	return k.served[gvk], found
}

// scope tells whether objects of a kind live in namespaces.
func (k *kinds) scope(gvk schema.GroupVersionKind) Scope {
	switch served, found := k.served[gvk]; {
	case !found:
		return ScopeUnknown
	case served.Namespaced:
		return ScopeNamespaced
	default:
		return ScopeCluster
	}
}

// hasStatus tells whether a kind's status is a subresource of its own.
func (k *kinds) hasStatus(gvk schema.GroupVersionKind) bool { return k.served[gvk].HasStatus }

// groupUnreachable returns why a group's kinds could not be discovered, or nil.
func (k *kinds) groupUnreachable(group string) error {
	for gv, err := range k.unreachable {
		if gv.Group == group {
			return fmt.Errorf("the API group %s could not be discovered: %w", group, err)
		}
	}
	return nil
}
