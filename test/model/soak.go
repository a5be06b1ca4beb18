package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/machine"
)

// What is flat: the last quarter of a soak against the first. Every kind in use is a
// watch, that is a connection and some goroutines: of goroutines only quiet points are
// compared with as many descriptors, and of those there may be as many more as a walk
// has kinds.
const (
	flatMemoryShare = 0.15
	flatMemoryBytes = 4 << 20
	flatGoroutines  = 10
	flatDescriptors = 16
	flatTempFiles   = 0
)

// sample is what a daemon holds at a quiet point.
type sample struct {
	at                                 time.Duration // since the soak began
	memory                             float64       // RssAnon, in bytes
	goroutines, descriptors, tempFiles float64
}

// soak walks on with one daemon for as long as was asked for, others beside it, and
// reports whether it has grown. A walk beside it that fails is reported, and others go on.
func (s *site) soak(ctx context.Context, chosen settings) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	described, err := machine.Describe(ctx) // as it is now: the tree may change
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	var others stats
	var failures []error
	beside.Go(func() { others, failures = s.besides(ctx, chosen, began) })
	samples, own, err := s.longWalk(ctx, chosen, began)
	if err != nil {
		cancel(errors.New("the long walk failed"))
	}
	beside.Wait()
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	var results bytes.Buffer
	grown := writeSoak(&results, described, chosen, samples, own, others, len(failures))
	s.Say("\n%s", results.String())
	if chosen.out != "" {
		if err := os.WriteFile(chosen.out, results.Bytes(), 0o644); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	return errors.Join(append(failures, grown)...)
}

// besides takes walks until the soak is over, all but one of those that may be taken at
// a time.
func (s *site) besides(ctx context.Context, chosen settings, began time.Time) (total stats, failures []error) {
	const seeds = 100_000 // further on, after a failure
	next := task{seed: chosen.seed + 1, steps: chosen.steps}
	for chosen.parallel--; chosen.parallel > 0 && ctx.Err() == nil; next.seed += seeds {
		chosen.budget = chosen.soak - time.Since(began)
		if chosen.budget <= 0 {
			break
		}
		did, err := s.crew(ctx, chosen, []task{next})
		total.add(did)
		if err != nil && ctx.Err() == nil {
			s.Say("%v", err)
			failures = append(failures, err)
		}
	}
	return total, failures
}

// steady are the steps that leave the daemon running.
func steady() []op {
	return slices.DeleteFunc(weights(), func(o op) bool {
		return slices.Contains([]op{opRestart, opKill, opStandby, opNoStandby, opFailover, opRelease}, o)
	})
}

// reportEvery is how often a soak says how far it is.
const reportEvery = 3 * time.Minute

// longWalk walks until the time is over, and returns what was sampled.
func (s *site) longWalk(ctx context.Context, chosen settings, began time.Time) ([]sample, stats, error) {
	w, err := s.newWalk(ctx, chosen.seed)
	if err != nil {
		return nil, stats{}, err
	}
	defer w.close()
	var samples []sample
	reported := time.Now()
	w.samples = func(ctx context.Context, d *asked) error {
		one, err := d.sample(ctx, time.Since(began))
		if err != nil {
			return err
		}
		samples = append(samples, one)
		w.git.Log.Reset() // it would keep every request
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			s.Say("soak: %s, %d quiet points; %s", one.at.Round(time.Second), w.stats.quiets, one)
		}
		return nil
	}
	p := newPlanner(chosen.seed, steady())
	fail := func(err error) ([]sample, stats, error) {
		w.taken = w.taken[max(0, len(w.taken)-400):]
		return samples, w.stats, w.report(task{seed: chosen.seed, steps: chosen.steps}, chosen, err)
	}
	if err := w.start(); err != nil {
		return fail(err)
	}
	number := 0
	for steps := p.first(); ; steps = p.next() {
		for _, next := range steps {
			if err := w.take(ctx, number, next); err != nil {
				return fail(err)
			}
			number++
		}
		if steps[len(steps)-1].op == opQuiet && time.Since(began) > chosen.soak {
			break
		}
	}
	if err := w.finish(ctx); err != nil {
		return fail(err)
	}
	return samples, w.stats, nil
}

// sample looks at the daemon.
func (d *asked) sample(ctx context.Context, at time.Duration) (sample, error) {
	s := sample{at: at}
	proc := fmt.Sprintf("/proc/%d/", d.PID)
	memory, err := strconv.Atoi(strings.TrimSuffix(machine.Field(proc+"status", "RssAnon"), " kB"))
	if err != nil {
		return s, fmt.Errorf("memory of kubesync: %w", err)
	}
	s.memory = float64(memory) * 1024
	open, err := os.ReadDir(proc + "fd")
	if err != nil {
		return s, fmt.Errorf("file descriptors of kubesync: %w", err)
	}
	s.descriptors = float64(len(open))
	err = filepath.WalkDir(daemon.Temp(d.Spec.Dir), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			s.tempFiles++
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("temporary files of kubesync: %w", err)
	}
	metrics, err := d.get(ctx, "/metrics")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(metrics)) {
		if value, found := strings.CutPrefix(line, "go_goroutines "); found {
			s.goroutines, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
			return s, err
		}
	}
	return s, errors.New("the metrics of kubesync do not tell how many goroutines there are")
}

func (s sample) String() string {
	return fmt.Sprintf("%.1f MB, %.0f goroutines, %.0f file descriptors, %.0f temporary files", s.memory/(1<<20), s.goroutines, s.descriptors, s.tempFiles)
}

// medians sums samples up.
func medians(samples []sample) sample {
	median := func(of func(sample) float64) float64 {
		values := make([]float64, len(samples))
		for n, s := range samples {
			values[n] = of(s)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return sample{
		at:          samples[len(samples)-1].at,
		memory:      median(func(s sample) float64 { return s.memory }),
		goroutines:  median(func(s sample) float64 { return s.goroutines }),
		descriptors: median(func(s sample) float64 { return s.descriptors }),
		tempFiles:   median(func(s sample) float64 { return s.tempFiles }),
	}
}

// between returns the samples of a part of the time.
func between(samples []sample, from, to float64) []sample {
	end := samples[len(samples)-1].at.Seconds()
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
		return s.at.Seconds() < from*end || s.at.Seconds() > to*end
	})
}

// grown returns in what a daemon has grown from the first quarter to the last; nil if
// all is flat.
func grown(samples []sample) error {
	first, last := between(samples, 0, 0.25), between(samples, 0.75, 1)
	if len(first) < 3 || len(last) < 3 {
		return fmt.Errorf("too few quiet points to tell: %d in the first quarter, %d in the last", len(first), len(last))
	}
	a, b := medians(first), medians(last)
	var problems []error
	if a.memory*(1+flatMemoryShare)+flatMemoryBytes < b.memory {
		problems = append(problems, fmt.Errorf("memory grew from %.1f to %.1f MB", a.memory/(1<<20), b.memory/(1<<20)))
	}
	if b.tempFiles > a.tempFiles+flatTempFiles {
		problems = append(problems, fmt.Errorf("the number of temporary files grew from %.0f to %.0f", a.tempFiles, b.tempFiles))
	}
	if b.descriptors > a.descriptors+flatDescriptors {
		problems = append(problems, fmt.Errorf("the number of file descriptors grew from %.0f to %.0f", a.descriptors, b.descriptors))
	}
	switch more, points := moreGoroutines(first, last); {
	case points == 0:
		problems = append(problems, errors.New("no two quiet points of the first and the last quarter have as many file descriptors"))
	case more > flatGoroutines:
		problems = append(problems, fmt.Errorf("there are %.0f goroutines more at the end, with as many file descriptors", more))
	}
	return errors.Join(problems...)
}

// moreGoroutines tells by how many goroutines a daemon has more at the end of a soak, at
// quiet points with as many descriptors: medians of each number of those, weighed by how
// often it came, and how many points that are.
func moreGoroutines(first, last []sample) (more float64, points int) {
	before, after := byDescriptors(first), byDescriptors(last)
	for descriptors := range before {
		weight := min(len(before[descriptors]), len(after[descriptors]))
		if weight == 0 {
			continue
		}
		points += weight
		more += float64(weight) * (medians(after[descriptors]).goroutines - medians(before[descriptors]).goroutines)
	}
	return more / float64(max(points, 1)), points
}

// byDescriptors sorts samples by how many file descriptors there were.
func byDescriptors(samples []sample) map[float64][]sample {
	sorted := map[float64][]sample{}
	for _, s := range samples {
		sorted[s.descriptors] = append(sorted[s.descriptors], s)
	}
	return sorted
}

// soakRows is how many rows the table of a soak has.
const soakRows = 12

// writeSoak writes what a soak found, and returns in what the daemon has grown.
func writeSoak(out io.Writer, on machine.Machine, chosen settings, samples []sample, own, others stats, failures int) error {
	err := grown(samples)
	verdict := "flat"
	if err != nil {
		verdict = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	fmt.Fprintf(out, "# A soak of %s\n\nWritten by `make soak`; package test/model tells what it does and what is flat.\n\n", chosen.soak)
	fmt.Fprintf(out, "%s\n", on.Table())
	more, points := moreGoroutines(between(samples, 0, 0.25), between(samples, 0.75, 1))
	fmt.Fprintf(out, "- the daemon: **%s**; from the first quarter to the last %+.1f goroutines, by %d quiet points with as many file descriptors\n", verdict, more, points)
	fmt.Fprintf(out, "- its walk (seed %d): %s\n- beside it (seeds from %d): %s\n- walks that failed: %d\n\n", chosen.seed, own, chosen.seed+1, others, failures)
	fmt.Fprintf(out, "Medians of each part of the time:\n\n| until | quiet points | RssAnon | goroutines | file descriptors | temporary files |\n|---|---|---|---|---|---|\n")
	for row := range soakRows {
		part := between(samples, float64(row)/soakRows, float64(row+1)/soakRows)
		if len(part) == 0 {
			continue
		}
		m := medians(part)
		fmt.Fprintf(out, "| %s | %d | %.1f MB | %.0f | %.0f | %.0f |\n", m.at.Round(time.Second), len(part), m.memory/(1<<20), m.goroutines, m.descriptors, m.tempFiles)
	}
	return err
}
