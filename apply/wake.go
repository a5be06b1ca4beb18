package apply

// What the loops that keep sets in sync are woken by, besides their own clocks.

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
