package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally is what came of the points.
type tally struct {
	mu       sync.Mutex // guards what follows
	reached  map[point]bool
	failures []failure
	runs     int
	took     []time.Duration // of each run
	record   record
	// earlier and runsBefore are what the record tells of earlier sessions.
	earlier    time.Duration
	runsBefore int
}

// add notes what came of a run, and prints it.
func (t *tally) add(l *lab, r run, of int, reached []point, failed *failure, took time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.took = append(t.took, took)
	for _, p := range reached {
		t.reached[p] = true
	}
	l.Say("run %d of %d: %s: %d of %d points reached, %s", t.runs, of, r.fates(), len(reached), count(r.points), took.Round(time.Second))
	well := reached
	if failed != nil {
		t.failures = append(t.failures, *failed)
		l.Say("%s", failed)
		well = slices.DeleteFunc(slices.Clone(reached), func(p point) bool { return p.step == failed.step })
		if err := t.record.note("failed", failed.points); err != nil {
			return err
		}
	}
	return t.record.note("converged", well)
}

// left are the runs without the points that were reached before.
func (t *tally) left(runs []run) []run {
	var left []run
	for _, r := range runs {
		points := map[string][]point{}
		for step, of := range r.points {
			if of = slices.DeleteFunc(slices.Clone(of), func(p point) bool { return t.reached[p] }); len(of) > 0 {
				points[step] = of
			}
		}
		if len(points) > 0 {
			left = append(left, run{points: points, waitOut: r.waitOut})
		}
	}
	return left
}

// missed are the points of runs that were not reached, and did not fail either.
func (t *tally) missed(runs []run) []point {
	var missed []point
	for _, r := range runs {
		for _, of := range r.points {
			for _, p := range of {
				if !t.reached[p] && !t.failed(p) {
					missed = append(missed, p)
				}
			}
		}
	}
	slices.SortFunc(missed, func(a, b point) int { return strings.Compare(a.String(), b.String()) })
	return missed
}

// failed reports whether a point was among those that failed.
func (t *tally) failed(p point) bool {
	return slices.ContainsFunc(t.failures, func(f failure) bool { return slices.Contains(f.points, p) })
}

// again packs points that have to be tried once more.
func again(points []point) []run {
	of := map[fate]map[string][]point{}
	for _, p := range points {
		if of[p.fate] == nil {
			of[p.fate] = map[string][]point{}
		}
		of[p.fate][p.step] = append(of[p.fate][p.step], p)
	}
	var all []run
	for _, f := range sorted(of) {
		atOnce := len(points)
		if f.deadly() {
			atOnce = 1
		}
		all = append(all, pack(of[f], atOnce)...)
	}
	return all
}

// work tells stories side by side, until all runs are done or time is up.
func (l *lab) work(ctx context.Context, chosen settings, expected reference, runs []run, results *tally) error {
	queue := make(chan run, len(runs))
	for _, r := range runs {
		queue <- r
	}
	close(queue)
	of := results.runs + len(runs) // with those of an earlier call
	errs := make([]error, chosen.workers)
	var all sync.WaitGroup
	for i := range chosen.workers {
		all.Go(func() {
			for r := range queue {
				if !l.timeFor(chosen, results) {
					return
				}
				if errs[i] = l.one(ctx, expected, r, results, of); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// timeFor reports whether another run is likely to end in time.
func (l *lab) timeFor(chosen settings, results *tally) bool {
	if chosen.minutes == 0 {
		return true
	}
	results.mu.Lock()
	defer results.mu.Unlock()
	usual := time.Minute
	if len(results.took) > 0 {
		usual = slices.Max(results.took)
	}
	end := l.started.Add(time.Duration(chosen.minutes * float64(time.Minute)))
	return time.Now().Add(usual).Before(end)
}

// one tells one story. If a step fails, the points of those behind it are tried in another.
func (l *lab) one(ctx context.Context, expected reference, r run, results *tally, of int) error {
	for len(r.points) > 0 {
		started := time.Now()
		reached, failed, err := l.tell(ctx, expected, r)
		if err != nil {
			return err
		}
		if err := results.add(l, r, of, reached, failed, time.Since(started)); err != nil {
			return err
		}
		if failed == nil {
			return nil
		}
		r.points = behind(r.points, failed.step)
	}
	return nil
}

// fates names what befalls a run's requests.
func (r run) fates() string {
	names := map[string]bool{}
	for _, of := range r.points {
		for _, p := range of {
			names[string(p.fate)] = true
		}
	}
	return strings.Join(sorted(names), ", ")
}

// behind returns the points of the steps after one.
func behind(points map[string][]point, step string) map[string][]point {
	left, seen := map[string][]point{}, false
	for _, at := range steps() {
		if of, there := points[at.name]; there && seen {
			left[at.name] = of
		}
		seen = seen || at.name == step
	}
	return left
}
