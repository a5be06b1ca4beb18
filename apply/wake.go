package apply

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the loops that keep sets in sync are woken by, besides their own clocks.

// note notes the parent as it is now, nil if there is none, and reports whether its
// labels or annotations, by which people steer the set, are others than when it was
// last noted, which we do of what we write ourselves. What the set has never seen
// has not changed.
func (s *Set) note(live metav1.Object) (steered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	annotations, labels := s.steering, s.steeringLabels
	s.steering, s.steeringLabels = nil, nil
	if live != nil {
		s.steering, s.steeringLabels = live.GetAnnotations(), live.GetLabels()
	}
	return annotations != nil && (!maps.Equal(annotations, s.steering) || !maps.Equal(labels, s.steeringLabels))
}

// noteParent is note for what a sync has read or written.
func (s *Set) noteParent(live *corev1.ConfigMap) (steered bool) {
	if live == nil {
		return s.note(nil)
	}
	return s.note(live)
}

// wake has a repo synced now.
func (c *Cluster) wake(repo string) {
	if set := c.setByName(repo); set != nil {
		set.wake()
	}
}

// wake has the set synced now.
func (s *Set) wake() {
	s.wakes.Add(1)
	if s.options.Wake != nil {
		s.options.Wake()
	}
}

// wakePending has those repos synced now that have pending objects.
func (c *Cluster) wakePending() {
	for _, s := range c.allSets() {
		if s.hasPending() {
			s.wake()
		}
	}
}

// anyPending reports whether some repo has pending objects.
func (c *Cluster) anyPending() bool {
	for _, s := range c.allSets() {
		if s.hasPending() {
			return true
		}
	}
	return false
}

// allSets returns the sets that are open.
func (c *Cluster) allSets() []*Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := make([]*Set, 0, len(c.sets))
	for _, s := range c.sets {
		sets = append(sets, s)
	}
	return sets
}

// hasPending reports whether the last sync left objects pending.
func (s *Set) hasPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// housedMeanwhile reports whether there is by now a Namespace for which the plan held back an
// object, or is none any more where one was being deleted. Whoever saw it before the
// set was noted as pending did not wake it.
func (p *Plan) housedMeanwhile() bool {
	w := p.set.cluster.watched()
	return w != nil && slices.ContainsFunc(p.held, func(o Outcome) bool {
		home := o.ID.Home()
		ns, there := w.namespaces.Get(home)
		return there && !ns.terminating && !p.live.exists(home) || !there && p.live.terminating[home]
	})
}

// requestHousekeeping asks for the housekeeping to be done now. It never waits.
func (c *Cluster) requestHousekeeping() {
	select {
	case c.housekeeping <- struct{}{}:
	default: // one is pending, which will see everything that this one would
	}
}

// HousekeepingDue receives when something changed that the housekeeping is about.
func (c *Cluster) HousekeepingDue() <-chan struct{} { return c.housekeeping }
