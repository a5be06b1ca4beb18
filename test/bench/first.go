package main

import (
	"context"
	"fmt"
	"time"
)

// contestant is one of those who bring a set into an empty cluster, and what that
// came to.
type contestant struct {
	name     string
	user     string // in the audit log
	apply    func(context.Context, *site) (time.Duration, error)
	times    series
	requests int // of the last round
}

// race lets each of them bring the set into a cluster of its own, in turns.
func (l *lab) race(ctx context.Context, objects set, controllers bool, rounds int, all []*contestant) error {
	for round := range rounds {
		for _, c := range all {
			if err := l.turn(ctx, objects, controllers, c); err != nil {
				return fmt.Errorf("%s, round %d: %w", c.name, round+1, err)
			}
			l.Say("  round %d of %d: %s %s", round+1, rounds, c.name, seconds(c.times[len(c.times)-1]))
		}
	}
	return nil
}

func (l *lab) turn(ctx context.Context, objects set, controllers bool, c *contestant) error {
	s, err := l.newSite(ctx, controllers)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // its directory goes with the lab's
	mark, err := s.mark(ctx)
	if err != nil {
		return err
	}
	took, err := c.apply(ctx, s)
	if err != nil {
		return err
	}
	c.times.add(took)
	if _, err := s.versions(ctx, objects); err != nil {
		return err
	}
	requests, err := s.requests(ctx, serviceAccount(c.user), mark)
	c.requests = len(requests)
	return err
}

// ours is kubesync, as a process that ends when the repo is in sync; it notes the
// most memory that any of them took.
func (l *lab) ours(url string, peak *bytesize) *contestant {
	return &contestant{name: "kubesync", user: "kubesync", apply: func(ctx context.Context, s *site) (time.Duration, error) {
		e, err := l.once(ctx, s.on(url))
		*peak = max(*peak, e.peak)
		return e.took, err
	}}
}

// peerOf is another writer with the same objects.
func peerOf(name string, objects set, apply func(context.Context, *site, set) (time.Duration, error)) *contestant {
	return &contestant{name: name, user: "peer", apply: func(ctx context.Context, s *site) (time.Duration, error) {
		return apply(ctx, s, objects)
	}}
}

// firstSync measures the first sync of mixed objects.
func firstSync(ctx context.Context, l *lab) ([]line, error) {
	objects, url, err := l.newSet("first", mixed, l.mixed)
	if err != nil {
		return nil, err
	}
	var peak bytesize
	ours := l.ours(url, &peak)
	bare := peerOf("bare SSA", objects, bareSSA)
	flux := peerOf("fluxcd/pkg/ssa ApplyAllStaged", objects, fluxSSA)
	kubectl := peerOf("kubectl apply --server-side", objects, l.kubectlSSA)
	all := []*contestant{ours, bare, flux, kubectl}
	if err := l.race(ctx, objects, true, l.rounds, all); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("wall time, %d objects", len(objects.objects))
	return []line{
		atMost(what, ours.times, bare.name, bare.times, 1.2),
		fasterThan(what, ours.times, flux.name, flux.times, 2),
		fasterThan(what, ours.times, kubectl.name, kubectl.times, 10),
		requestLine(all),
		text("peak memory, the largest of all rounds", peak.String()),
	}, nil
}

// manyConfigs measures the first sync of many ConfigMaps, and what it takes of
// memory.
func manyConfigs(ctx context.Context, l *lab) ([]line, error) {
	objects, url, err := l.newSet("configs", configMaps, l.configs)
	if err != nil {
		return nil, err
	}
	var peak bytesize
	ours, bare := l.ours(url, &peak), peerOf("bare SSA", objects, bareSSA)
	all := []*contestant{ours, bare}
	if err := l.race(ctx, objects, false, l.configRounds, all); err != nil {
		return nil, err
	}
	return []line{
		atMost(fmt.Sprintf("wall time, %d ConfigMaps", l.configs), ours.times, bare.name, bare.times, 1.2),
		within("peak memory, the largest of all rounds", peak, 150*megabyte, bytesize.String),
		requestLine(all),
	}, nil
}

// requestLine tells how often each of them asked the API server.
func requestLine(all []*contestant) line {
	l := text("requests in the last round", fmt.Sprint(all[0].requests))
	for i, c := range all[1:] {
		if i > 0 {
			l.peer += ", "
		}
		l.peer += fmt.Sprintf("%s: %d", c.name, c.requests)
	}
	return l
}
