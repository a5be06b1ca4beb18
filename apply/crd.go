package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// awaitKinds waits until the kinds that the step's CRDs define are served (that
// is later than Established: discovery follows), and returns discovery as it is
// then. A CRD that failed is not waited for. When the wait ends in vain, its
// custom resources are parked.
func (s *Set) awaitKinds(ctx context.Context, known *kinds, objects []Object, outcomes []Outcome) (*kinds, error) {
	written := map[ID]bool{}
	for _, outcome := range outcomes {
		written[outcome.ID] = outcome.Action == Created || outcome.Action == Configured || outcome.Action == Unchanged
	}
	var awaited []schema.GroupVersionKind
	for _, o := range objects {
		if o.ID().GroupKind() == crdKind && written[o.ID()] {
			awaited = append(awaited, definedKinds(o.Tree())...)
		}
	}
	deadline := time.Now().Add(servedWait)
	for !servesAll(known, awaited) && time.Now().Before(deadline) {
		if err := pause(ctx); err != nil {
			return known, err
		}
		fresh, err := s.cluster.refreshKinds(ctx)
		if err != nil {
			return known, fmt.Errorf("wait for the kinds of new CRDs: %w", err)
		}
		known = fresh
	}
	if w := s.cluster.watched(); w != nil && len(awaited) > 0 && slices.Contains(w.members.missing(known), s) {
		s.wake() // what is written of a kind that was not there yet is followed from the next plan on
	}
	return known, nil
}

// definedKinds returns the kinds that a CRD serves.
func definedKinds(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var defined []schema.GroupVersionKind
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		defined = append(defined, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
	}
	return defined
}

// servesAll tells whether every kind is served.
func servesAll(k *kinds, wanted []schema.GroupVersionKind) bool {
	for _, gvk := range wanted {
		if _, found := k.served[gvk]; !found {
			return false
		}
	}
	return true
}
