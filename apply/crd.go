package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubesync/kubesync/apply/kube"
	"github.com/kubesync/kubesync/apply/manifest"
)

// awaitKinds waits until the kinds that the step's CRDs define are served (that
// is later than Established: discovery follows), and returns discovery as it is
// then. A CRD that failed is not waited for. When the wait ends in vain, its
// custom resources are pending, and it is not waited for again until it is written:
// it may want a name that another one has, which can last.
func (s *Set) awaitKinds(ctx context.Context, known *kube.Kinds, objects []manifest.Object, outcomes []Outcome) (*kube.Kinds, error) {
	actions := map[manifest.ID]Action{}
	for _, outcome := range outcomes {
		actions[outcome.ID] = outcome.Action
	}
	defined := map[manifest.ID][]schema.GroupVersionKind{}
	var awaited []schema.GroupVersionKind // and with patience
	for _, o := range objects {
		id, action := o.ID(), actions[o.ID()]
		if id.GroupKind() != manifest.CRDKind || action != Created && action != Configured && action != Unchanged {
			continue
		}
		defined[id] = manifest.Defines(o.Tree())
		if action != Unchanged || !s.inVain[id] {
			awaited = append(awaited, defined[id]...)
		}
	}
	all := slices.Concat(slices.Collect(maps.Values(defined))...)
	known, err := s.cluster.awaitServed(ctx, known, all, awaited)
	if err != nil {
		return known, fmt.Errorf("wait for the kinds of new CRDs: %w", err)
	}
	s.inVain = map[manifest.ID]bool{}
	for id, kinds := range defined {
		s.inVain[id] = !servesAll(known, kinds)
	}
	if w := s.cluster.watched(); w != nil && len(all) > 0 && slices.Contains(w.members.Missing(known), s.user) {
		s.wake() // what is written of a kind that was not there yet is followed from the next plan on
	}
	return known, nil
}

// awaitServed looks at discovery until the awaited kinds are served, or for
// servedWait; once, if only others of all the kinds are not.
func (c *Cluster) awaitServed(ctx context.Context, known *kube.Kinds, all, awaited []schema.GroupVersionKind) (*kube.Kinds, error) {
	deadline := time.Now().Add(servedWait)
	for looked := false; !servesAll(known, all); looked = true {
		if looked && (servesAll(known, awaited) || time.Now().After(deadline)) {
			break
		}
		if err := pause(ctx); err != nil {
			return known, err
		}
		fresh, err := c.refreshKinds(ctx)
		if err != nil {
			return known, err
		}
		known = fresh
	}
	return known, nil
}

// servesAll reports whether every kind is served.
func servesAll(k *kube.Kinds, wanted []schema.GroupVersionKind) bool {
	for _, gvk := range wanted {
		if _, found := k.Served[gvk]; !found {
			return false
		}
	}
	return true
}
