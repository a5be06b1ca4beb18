package main

import (
	"context"
	"errors"
	"fmt"
)

// restart measures how long a daemon takes to see that nothing has changed since
// it ran last.
func restart(ctx context.Context, l *lab) ([]line, error) {
	objects, url, err := l.newSet("restart", mixed, l.mixed)
	if err != nil {
		return nil, err
	}
	ours, err := l.newSite(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ours.Close() }()
	theirs, err := l.newSite(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	if _, err := l.once(ctx, ours.on(url)); err != nil {
		return nil, err
	}
	if _, err := bareSSA(ctx, theirs, objects); err != nil {
		return nil, err
	}
	if err := errors.Join(ours.rest(ctx), theirs.rest(ctx)); err != nil {
		return nil, err
	}
	r := restarted{}
	var bare series
	for round := range l.rounds {
		if err := r.round(ctx, l, ours, url, objects); err != nil {
			return nil, err
		}
		took, err := bareSSA(ctx, theirs, objects)
		if err != nil {
			return nil, err
		}
		bare.add(took)
		l.Say("  round %d of %d: kubesync %s, bare SSA %s", round+1, l.rounds, seconds(r.times[round]), seconds(bare[round]))
	}
	return []line{
		atMost(fmt.Sprintf("from start to in sync, %d objects", len(objects.objects)), r.times, "bare SSA of all, again", bare, 0.5),
		exactly("objects whose resourceVersion changed", r.changed, 0, ""),
		text("requests without watches and Lease, at most", fmt.Sprintf("%d (%s)", len(r.asked), examples(r.asked))),
	}, nil
}

// restarted is what restarts came to.
type restarted struct {
	times   series
	changed int
	asked   []request
}

// round starts a daemon and stops it when it is in sync.
func (r *restarted) round(ctx context.Context, l *lab, s *site, url string, objects set) error {
	before, err := s.versions(ctx, objects)
	if err != nil {
		return err
	}
	mark, err := s.mark(ctx)
	if err != nil {
		return err
	}
	d, err := l.start(s.on(url))
	if err != nil {
		return err
	}
	defer d.Kill()
	done, err := d.synced(ctx, 1, "")
	if err != nil {
		return err
	}
	r.times.add(done.Sub(d.started))
	requests, err := s.requests(ctx, serviceAccount("kubesync"), mark)
	if err != nil {
		return err
	}
	if asked := work(requests); len(asked) > len(r.asked) {
		r.asked = asked
	}
	after, err := s.versions(ctx, objects)
	if err != nil {
		return err
	}
	r.changed += changed(before, after)
	if err := d.Stop(ctx); err != nil {
		return err
	}
	return s.rest(ctx)
}
