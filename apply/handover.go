package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// othersPatience is how long a prune waits for the other repos to be read.
const othersPatience = 5 * time.Second

// An object that leaves one repo may be on its way to another: a commit here takes it
// out, a commit there puts it in, in either order. So nothing is deleted before
// every other repo has been polled and loaded since it was found to leave; what
// another declares by then is that one's, label and all.

// loadedAt notes that a repo's manifests were read and checked, from a poll that
// began then, and that its claims are those of that poll.
func (c *Cluster) loadedAt(repo string, polled time.Time) {
	c.mu.Lock()
	c.loaded[repo] = polled
	close(c.loading)
	c.loading = make(chan struct{})
	c.mu.Unlock()
	for _, s := range c.allSets() {
		if s.waitsFor(repo) {
			s.wake()
		}
	}
}

// notLoadedSince returns the other repos that were not polled and loaded since, and
// a channel that is closed when one is.
func (c *Cluster) notLoadedSince(repo string, since time.Time) ([]string, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		since = time.Time{} // each repo has one turn: to have had it is enough
	}
	var missing []string
	for _, other := range c.others(repo) {
		if !c.loaded[other].After(since) {
			missing = append(missing, other)
		}
	}
	return missing, c.loading
}

// others returns the other repos of this daemon, sorted. The caller holds mu.
func (c *Cluster) others(repo string) []string {
	names := map[string]bool{}
	for name := range c.listed {
		names[name] = true
	}
	if c.listed == nil {
		for name := range c.sets {
			names[name] = true
		}
	}
	delete(names, repo)
	return slices.Sorted(maps.Keys(names))
}

// awaitOthers has the other repos polled, and waits a while until they are loaded; not
// with ONCE, where one repo has its turn after the other.
func (c *Cluster) awaitOthers(ctx context.Context, repo string, since time.Time) {
	missing, change := c.notLoadedSince(repo, since)
	if c.watched() == nil {
		return
	}
	for _, other := range missing {
		c.wake(other)
	}
	for late := time.After(othersPatience); len(missing) > 0; missing, change = c.notLoadedSince(repo, since) {
		select {
		case <-change:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// sinceLeft notes when members were found to have left the set's declarations, and
// returns when the last of them was. It forgets those that are back, or gone.
func (s *Set) sinceLeft(leaving []member, polled time.Time) (last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := make(map[ID]time.Time, len(leaving))
	for _, m := range leaving {
		at, known := s.left[m.ID]
		if !known {
			at = polled
		}
		left[m.ID] = at
		if at.After(last) {
			last = at
		}
	}
	s.left = left
	return last
}

// settleOthers waits until it is certain that no other repo of this daemon declares
// what leaves this one. It tells what the prune waits for, "" if for nothing.
func (s *Set) settleOthers(ctx context.Context, plan *Plan) (waits string, err error) {
	since := s.sinceLeft(plan.leaving, plan.Revision.Polled)
	if len(plan.leaving) == 0 {
		return "", nil
	}
	s.cluster.awaitOthers(ctx, s.options.Name, since)
	if waits = s.unread(since); waits != "" || s.cluster.watched() == nil {
		return waits, nil
	}
	if err := s.survey(ctx, plan); err != nil { // another repo may have taken it over meanwhile
		return "", err
	}
	// Or more may be leaving, or another repo's loop may have ended.
	return s.unread(s.sinceLeft(plan.leaving, plan.Revision.Polled)), nil
}

// unread tells which other repos have to be read before anything is deleted that has
// left the set since, "" if none, and has the set woken when they are.
func (s *Set) unread(since time.Time) string {
	missing, _ := s.cluster.notLoadedSince(s.options.Name, since)
	if len(missing) == 0 {
		return ""
	}
	s.waitFor(missing...)
	// One that was loaded before that has woken nobody.
	if missing, _ = s.cluster.notLoadedSince(s.options.Name, since); len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("waits until %s been read again, since the object may have moved there", have(missing))
}

// spares returns why an object that has left the set is not to be deleted at this very
// moment, "" if it is. Since what leaves was sorted out others may have declared it; or
// have declared it and ended, to declare it again.
func (s *Set) spares(ctx context.Context, id ID) string {
	if other, claimed := s.cluster.claimant(id); claimed {
		s.wake() // it is that repo's by the next sync
		return fmt.Sprintf("repo %s declares it by now", other)
	}
	s.mu.Lock()
	since := s.left[id]
	s.mu.Unlock()
	if waits := s.unread(since); waits != "" || !s.abandoned {
		return waits
	}
	return s.stays(ctx)
}

// have words who has not done something yet.
func have(repos []string) string {
	if len(repos) == 1 {
		return "repo " + repos[0] + " has"
	}
	return "repos " + strings.Join(repos, ", ") + " have"
}

// waitFor notes that the set waits until other repos are read: to prune, or for an object
// that one of them has.
func (s *Set) waitFor(repos ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, repos...)
}

// waitsFor tells whether the set waits for a repo to be read.
func (s *Set) waitsFor(repo string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.waiting, repo)
}
