package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	Lasting    bool // moreover supports watch: such objects stay, in contrast to mere requests
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
		err = fmt.Errorf("discover the kinds the API server serves: %w", err)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) { // a login page, say
			err = fmt.Errorf("%w; does something else answer in its place?", err)
		}
		return nil, err
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
	if err := k.plausible(); err != nil {
		return nil, err
	}
	return k, nil
}

// plausible is the error of an answer that cannot be the discovery of any Kubernetes
// API server: everything would seem to be gone. What lacks these kinds comes from
// something that answers in its place, or from one that is not up yet.
func (k *kinds) plausible() error {
	for _, gk := range []schema.GroupKind{namespaceKind, {Kind: "ConfigMap"}} {
		if _, found := k.lookup(gk); !found {
			return fmt.Errorf("discover the kinds the API server serves: its answer lacks kind %s, which every API server serves; does something else answer in its place?", gk.Kind)
		}
	}
	return nil
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
		listable := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete")
		k.served[gv.WithKind(r.Kind)] = servedKind{
			GVR:        gv.WithResource(r.Name),
			Namespaced: r.Namespaced,
			HasStatus:  withStatus[r.Name],
			Listable:   listable,
			// Not patch: while a CRD is being deleted its objects cannot be written, and
			// nobody tells when what was discovered then is over.
			Lasting: listable && slices.Contains(r.Verbs, "watch"),
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

// lasting tells whether objects of a kind can be kept as they are declared. What is not
// served may be so one day.
func (k *kinds) lasting(gvk schema.GroupVersionKind) bool {
	served, found := k.served[gvk]
	return !found || served.Lasting
}

// groupUnreachable returns why a group's kinds could not be discovered, or nil.
func (k *kinds) groupUnreachable(group string) error {
	return k.unreached(func(gv schema.GroupVersion) bool { return gv.Group == group })
}

// allUnreachable returns which groups' kinds could not be discovered, or nil.
func (k *kinds) allUnreachable() error {
	return k.unreached(func(schema.GroupVersion) bool { return true })
}

// unreached names those group versions, among the ones that match, that could not be
// discovered: always in the same order, so that the same trouble is told in the same words.
func (k *kinds) unreached(matching func(schema.GroupVersion) bool) error {
	var names []string
	var first error
	for _, gv := range slices.SortedFunc(maps.Keys(k.unreachable), compareVersions) {
		if matching(gv) {
			names = append(names, gv.String())
			first = cmp.Or(first, k.unreachable[gv])
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the API server cannot tell what %s serves, probably because the server behind it is down (kubectl get apiservices): %w",
		strings.Join(names, ", "), first)
}

// compareVersions orders group versions by name.
func compareVersions(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
