package kube

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

	"github.com/kubesync/kubesync/apply/manifest"
)

// ServedKind is how the API server serves one kind in one version.
type ServedKind struct {
	GVR        schema.GroupVersionResource
	Namespaced bool
	HasStatus  bool // has a status subresource
	Listable   bool // supports list and delete, so that members can be found and pruned
	Lasting    bool // moreover supports watch: such objects stay, in contrast to mere requests
}

// Kinds is a snapshot of discovery. It is immutable; when a kind is missing the
// cluster takes a new one.
type Kinds struct {
	Served    map[schema.GroupVersionKind]ServedKind
	Preferred map[schema.GroupKind]schema.GroupVersionKind
	// Unreachable holds the group versions that discovery could not look at (an
	// aggregated API server that is down), with the reason.
	Unreachable map[schema.GroupVersion]error
}

// Discover asks the API server what it serves: two requests with aggregated
// discovery. Groups that cannot be reached are recorded, not fatal.
func Discover(ctx context.Context, client discovery.DiscoveryInterfaceWithContext) (*Kinds, error) {
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
	k := &Kinds{
		Served:      map[schema.GroupVersionKind]ServedKind{},
		Preferred:   map[schema.GroupKind]schema.GroupVersionKind{},
		Unreachable: map[schema.GroupVersion]error{},
	}
	if partial != nil {
		k.Unreachable = partial.Groups
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
func (k *Kinds) plausible() error {
	for _, gk := range []schema.GroupKind{manifest.NamespaceKind, {Kind: "ConfigMap"}} {
		if _, found := k.Lookup(gk); !found {
			return fmt.Errorf("discover the kinds the API server serves: its answer lacks kind %s, which every API server serves; does something else answer in its place?", gk.Kind)
		}
	}
	return nil
}

// add takes over one group version's resources.
func (k *Kinds) add(list *metav1.APIResourceList) {
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
		k.Served[gv.WithKind(r.Kind)] = ServedKind{
			GVR:        gv.WithResource(r.Name),
			Namespaced: r.Namespaced,
			HasStatus:  withStatus[r.Name],
			Listable:   listable,
			// Not patch: while a CRD is being deleted its objects cannot be written, and
			// nothing reports when what was discovered then is over.
			Lasting: listable && slices.Contains(r.Verbs, "watch"),
		}
	}
}

// prefer notes for each kind the version the server prefers among those that have it.
func (k *Kinds) prefer(groups []*metav1.APIGroup) {
	rank := map[schema.GroupVersion]int{}
	for _, group := range groups {
		for i, v := range group.Versions {
			rank[schema.GroupVersion{Group: group.Name, Version: v.Version}] = i + 1
		}
		rank[schema.GroupVersion{Group: group.Name, Version: group.PreferredVersion.Version}] = 0
	}
	for gvk := range k.Served {
		gk := gvk.GroupKind()
		best, known := k.Preferred[gk]
		if !known || rank[gvk.GroupVersion()] < rank[best.GroupVersion()] {
			k.Preferred[gk] = gvk
		}
	}
}

// Serves reports whether a resource is served in any version.
func (k *Kinds) Serves(resource schema.GroupResource) bool {
	for _, served := range k.Served {
		if served.GVR.GroupResource() == resource {
			return true
		}
	}
	return false
}

// Lookup returns how a kind is served in its preferred version.
func (k *Kinds) Lookup(gk schema.GroupKind) (ServedKind, bool) {
	gvk, found := k.Preferred[gk]
	return k.Served[gvk], found
}

// Scope reports whether objects of a kind live in namespaces.
func (k *Kinds) Scope(gvk schema.GroupVersionKind) manifest.Scope {
	switch served, found := k.Served[gvk]; {
	case !found:
		return manifest.ScopeUnknown
	case served.Namespaced:
		return manifest.ScopeNamespaced
	default:
		return manifest.ScopeCluster
	}
}

// HasStatus reports whether a kind's status is a subresource of its own.
func (k *Kinds) HasStatus(gvk schema.GroupVersionKind) bool { return k.Served[gvk].HasStatus }

// Lasting reports whether objects of a kind can be kept as they are declared. What is not
// Served may be so one day.
func (k *Kinds) Lasting(gvk schema.GroupVersionKind) bool {
	served, found := k.Served[gvk]
	return !found || served.Lasting
}

// GroupUnreachable returns why a group's kinds could not be discovered, or nil.
func (k *Kinds) GroupUnreachable(group string) error {
	return k.unreached(func(gv schema.GroupVersion) bool { return gv.Group == group })
}

// AllUnreachable returns which groups' kinds could not be discovered, or nil.
func (k *Kinds) AllUnreachable() error {
	return k.unreached(func(schema.GroupVersion) bool { return true })
}

// unreached names those group versions, among the ones that match, that could not be
// discovered: always in the same order, so that the same failure gives the same message.
func (k *Kinds) unreached(matching func(schema.GroupVersion) bool) error {
	var names []string
	var first error
	for _, gv := range slices.SortedFunc(maps.Keys(k.Unreachable), compareVersions) {
		if matching(gv) {
			names = append(names, gv.String())
			first = cmp.Or(first, k.Unreachable[gv])
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the API server cannot report which kinds %s has, probably because the server behind it is down (kubectl get apiservices): %w",
		strings.Join(names, ", "), first)
}

// compareVersions orders group versions by name.
func compareVersions(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
