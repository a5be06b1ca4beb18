package apply

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the loops that keep sets in sync are woken by, besides their own clocks.

// note notes the parent as it is now, nil if there is none, and tells whether its
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
	if s.options.Wake != nil {
		s.options.Wake()
	}
}

// wakeParked has those repos synced now that have parked objects.
func (c *Cluster) wakeParked() {
	for _, s := range c.allSets() {
		if s.hasParked() {
			s.wake()
		}
	}
}

// anyParked tells whether some repo has parked objects.
func (c *Cluster) anyParked() bool {
	for _, s := range c.allSets() {
		if s.hasParked() {
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

// hasParked tells whether the last sync left objects parked.
func (s *Set) hasParked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked
}

// housedMeanwhile tells whether there is by now a Namespace for which the plan parked an
// object, or is none any more where one was being deleted. Whoever heard of it before the
// set was noted as parked did not wake it.
func (s *Set) housedMeanwhile(plan *Plan) bool {
	w := s.cluster.watched()
	return w != nil && slices.ContainsFunc(plan.held, func(o Outcome) bool {
		home := o.ID.home()
		ns, there := w.namespaces.Get(home)
		return there && !ns.terminating && !plan.live.exists(home) || !there && plan.live.terminating[home]
	})
}

// nudge asks for the housekeeping to be done now. It never waits.
func (c *Cluster) nudge() {
	select {
	case c.nudged <- struct{}{}:
	default: // one is pending, which will see everything that this one would
	}
}

// Nudged receives when something changed that the housekeeping is about.
func (c *Cluster) Nudged() <-chan struct{} { return c.nudged }
