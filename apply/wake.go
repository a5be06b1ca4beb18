package apply

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the loops that keep sets in sync are woken by, besides their own clocks.

// steered tells whether a parent's labels or annotations, by which people steer the
// set, are others than when the set last read or wrote it. What we write
// ourselves wakes nobody.
func (s *Set) steered(live metav1.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, labels := s.steering, s.steeringLabels
	s.steering, s.steeringLabels = nil, nil
	if live != nil {
		s.steering, s.steeringLabels = live.GetAnnotations(), live.GetLabels()
	}
	return !maps.Equal(before, s.steering) || !maps.Equal(labels, s.steeringLabels)
}

// wake has a repo synced now.
func (c *Cluster) wake(repo string) {
	c.mu.Lock()
	set := c.sets[repo]
	c.mu.Unlock()
	if set != nil {
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

// nudge asks for the housekeeping to be done now. It never waits.
func (c *Cluster) nudge() {
	select {
	case c.nudged <- struct{}{}:
	default: // one is pending, which will see everything that this one would
	}
}

// Nudged receives when something changed that the housekeeping is about.
func (c *Cluster) Nudged() <-chan struct{} { return c.nudged }
