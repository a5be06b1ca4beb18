package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubesync/kubesync/apply/manifest"
)

// othersPatience is how long a prune waits for the other repos to be read.
const othersPatience = 5 * time.Second

// An object that leaves one repo may be on its way to another: a commit here takes it
// out, a commit there puts it in, in either order. So nothing is deleted before
// every other repo has been polled and read since it was found to leave; what
// another declares by then is that one's, label and all.

// readAt notes that a repo's manifests were read and checked, from a poll that began then,
// and that its claims are those of that poll.
func (c *Cluster) readAt(repo string, polled time.Time) {
	c.claims.Read(repo, polled)
	for _, s := range c.allSets() {
		if s.waitsFor(repo) {
			s.wake()
		}
	}
}

// unreadSince returns the other repos that were not polled and read since, and a channel
// that is closed when one is.
func (c *Cluster) unreadSince(repo string, since time.Time) ([]string, <-chan struct{}) {
	c.mu.Lock()
	others := c.others(repo)
	if c.seen == nil {
		since = time.Time{} // each repo has one turn: to have had it is enough
	}
	c.mu.Unlock()
	return c.claims.Unread(others, since)
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

// awaitOthers has the other repos polled, and waits a while until they are read; not
// with ONCE, where one repo has its turn after the other.
func (c *Cluster) awaitOthers(ctx context.Context, repo string, since time.Time) {
	missing, change := c.unreadSince(repo, since)
	if c.watched() == nil {
		return
	}
	for _, other := range missing {
		c.wake(other)
	}
	for late := time.After(othersPatience); len(missing) > 0; missing, change = c.unreadSince(repo, since) {
		select {
		case <-change:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settleOthers waits until it is certain that no other repo of this daemon declares
// what leaves this one. It returns what the prune waits for, "" if for nothing.
func (p *pruning) settleOthers(ctx context.Context) (waits string, err error) {
	since := p.plan.set.ledger.Left(p.plan.leaving, p.plan.Revision.Polled)
	if len(p.plan.leaving) == 0 {
		return "", nil
	}
	p.plan.set.cluster.awaitOthers(ctx, p.plan.set.options.Name, since)
	if waits = p.plan.set.unread(since); waits != "" || p.plan.set.cluster.watched() == nil {
		return waits, nil
	}
	if err := p.plan.survey(ctx); err != nil { // another repo may have taken it over meanwhile
		return "", err
	}
	// Or more may be leaving, or another repo's loop may have ended.
	return p.plan.set.unread(p.plan.set.ledger.Left(p.plan.leaving, p.plan.Revision.Polled)), nil
}

// unread returns which other repos have to be read before anything is deleted that has
// left the set since, "" if none, and has the set woken when they are.
func (s *Set) unread(since time.Time) string {
	missing, _ := s.cluster.unreadSince(s.options.Name, since)
	if len(missing) == 0 {
		return ""
	}
	s.waitFor(missing...)
	// One that was read before that has woken no one.
	if missing, _ = s.cluster.unreadSince(s.options.Name, since); len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("waits until %s been read again, since the object may have moved there", have(missing))
}

// postponed returns why an object that has left the set is not deleted at this
// moment, "" if it is. Since what leaves was sorted out others may have declared it; or
// have declared it and ended, to declare it again.
func (p *pruning) postponed(ctx context.Context, id manifest.ID) string {
	if other, claimed := p.plan.set.cluster.claims.Holder(id); claimed {
		p.plan.set.wake() // it is that repo's by the next sync
		return fmt.Sprintf("repo %s declares it by now", other)
	}
	if waits := p.plan.set.unread(p.plan.set.ledger.LeftAt(id)); waits != "" || !p.plan.set.unlisted {
		return waits
	}
	return p.plan.set.deletionRevoked(ctx)
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

// waitsFor reports whether the set waits for a repo to be read.
func (s *Set) waitsFor(repo string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.waiting, repo)
}
