package main

import (
	"fmt"
	"slices"
	"strings"
)

// fate is what befalls a request, or the daemon because of it.
type fate string

// The daemon is killed.
const (
	before fate = "before" // before the request is passed on
	after  fate = "after"  // when it was carried out, before the answer arrives
)

// crashes are the ways to die.
func crashes() []fate { return []fate{before, after} }

// deadly reports whether the daemon is killed.
func (f fate) deadly() bool { return slices.Contains(crashes(), f) }

// point is one request of the story with what befalls it.
type point struct {
	step    string
	fate    fate
	request string // its name
}

// String is how a point is written on the command line.
func (p point) String() string { return fmt.Sprintf("%s %s %s", p.step, p.fate, p.request) }

// parsePoint reads what String writes.
func parsePoint(text string) (point, error) {
	fields := strings.SplitN(text, " ", 3)
	if len(fields) != 3 || !slices.Contains(append(crashes(), falseAnswers()...), fate(fields[1])) {
		return point{}, fmt.Errorf("want STEP FATE REQUEST, not %q; fates are %v and %v", text, crashes(), falseAnswers())
	}
	return point{step: fields[0], fate: fate(fields[1]), request: fields[2]}, nil
}

// fault is what happens at the point.
func (p point) fault(s *site) fault {
	switch p.fate {
	case before:
		return killBefore(s.kill)
	case after:
		return killAfter(s.kill)
	}
	return s.tap.falsify(p)
}

// points are the requests that the reference made, by step, with these fates.
func (r reference) points(fates ...fate) map[string][]point {
	all := map[string][]point{}
	for step, requests := range r.requests {
		for _, f := range fates {
			for _, request := range requests {
				if f.fits(request) {
					all[step] = append(all[step], point{step: step, fate: f, request: request})
				}
			}
		}
	}
	return all
}

// count is how many points there are.
func count(points map[string][]point) (n int) {
	for _, of := range points {
		n += len(of)
	}
	return n
}

// runs packs all that is to be tried into runs of the story, in an order in which any
// number of the first are spread over fates, steps and requests.
func (r reference) runs(fates []fate) []run {
	var deadly, falsified []run
	if deaths := slices.DeleteFunc(slices.Clone(fates), func(f fate) bool { return !f.deadly() }); len(deaths) > 0 {
		deadly = pack(r.points(deaths...), 1)
	}
	kinds := make([][]run, 0, len(fates))
	for _, f := range fates {
		switch {
		case f.deadly():
		case f == stall:
			kinds = append(kinds, packSteps(r.points(f), falseAtOnce))
		default:
			kinds = append(kinds, pack(r.points(f), falseAtOnce))
		}
	}
	for i := range longest(kinds) {
		for _, of := range kinds {
			if i < len(of) {
				falsified = append(falsified, of[i])
			}
		}
	}
	var all []run
	for i := range max(len(deadly), len(falsified)) {
		if i < len(deadly) {
			deadly[i].waitOut = i%waitOutEvery == waitOutEvery-1
			all = append(all, deadly[i])
		}
		if i < len(falsified) {
			all = append(all, falsified[i])
		}
	}
	return all
}

func longest[T any](lists [][]T) (n int) {
	for _, list := range lists {
		n = max(n, len(list))
	}
	return n
}

// waitOutEvery says how many runs with crashes there are to one in which the dead
// daemon's Lease is left to run out.
const waitOutEvery = 10

// falseAtOnce is how many answers of one step are false in the same way in one run.
const falseAtOnce = 20

// run is one run of the story: what befalls which requests of its steps.
type run struct {
	points  map[string][]point
	waitOut bool // a dead daemon's Lease is waited out, not released
}

// pack makes runs of points, with so many of each step at most in one: a run costs
// little more than the story itself. A step that has few is spread over the runs, and
// so are they over its requests.
func pack(points map[string][]point, atOnce int) []run {
	rows := 0
	for _, of := range points {
		rows = max(rows, (len(of)+atOnce-1)/atOnce)
	}
	packed := make([]run, rows)
	for i := range packed {
		packed[i].points = map[string][]point{}
	}
	for step, of := range points {
		for i, p := range of {
			row := i % rows
			if len(of) < rows {
				row = i * rows / len(of)
			}
			packed[row].points[step] = append(packed[row].points[step], p)
		}
	}
	ordered := make([]run, 0, rows)
	for _, row := range spread(rows) {
		ordered = append(ordered, packed[row])
	}
	return ordered
}

// packSteps makes runs of points of one step each.
func packSteps(points map[string][]point, atOnce int) []run {
	var kinds [][]run
	for _, step := range sorted(points) {
		kinds = append(kinds, pack(map[string][]point{step: points[step]}, atOnce))
	}
	var all []run
	for i := range longest(kinds) {
		for _, of := range kinds {
			if i < len(of) {
				all = append(all, of[i])
			}
		}
	}
	return all
}

// spread returns the numbers below n in an order in which any number of the first
// lie far apart: multiples of the golden section.
func spread(n int) []int {
	stride := max(1, n*618/1000)
	for gcd(stride, n) > 1 {
		stride++
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i * stride % n
	}
	return order
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
