package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// task is a walk to take.
type task struct {
	seed, steps int
	only        map[int]bool
}

// readRegressions reads a file of walks, "SEED STEPS" a line; # begins a comment.
func readRegressions(path string) ([]task, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("walks to begin with: %w", err)
	}
	var tasks []task
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: %q is no seed and number of steps", path, line)
		}
		var t task
		if t.seed, err = strconv.Atoi(words[0]); err == nil {
			t.steps, err = strconv.Atoi(words[1])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// crew takes walks, some at a time: those of the list, then more like its last, until
// there were enough or the time for them is over. The first that fails is the last.
func (s *site) crew(ctx context.Context, chosen settings, tasks []task) (stats, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deadline := time.Now().Add(chosen.budget)
	var (
		mu    sync.Mutex // guards what follows
		total stats
		first error
		begun int
	)
	next := func() (task, bool) {
		mu.Lock()
		defer mu.Unlock()
		listed := begun < len(tasks)
		last := tasks[len(tasks)-1]
		t := task{seed: last.seed + begun - len(tasks) + 1, steps: last.steps, only: last.only}
		if listed {
			t = tasks[begun]
		}
		begun++
		enough := begun >= len(tasks)+max(chosen.walks, 1)
		if chosen.budget > 0 {
			enough = !time.Now().Before(deadline)
		}
		return t, listed || !enough
	}
	var workers sync.WaitGroup
	for range chosen.parallel {
		workers.Go(func() {
			for ctx.Err() == nil {
				t, more := next()
				if !more {
					return
				}
				did, err := s.walk(ctx, chosen, t)
				mu.Lock()
				total.add(did)
				if first == nil && err != nil {
					first = err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return total, first
}

// walk takes one walk. An error tells all that is needed to understand it.
func (s *site) walk(ctx context.Context, chosen settings, t task) (stats, error) {
	w, err := s.newWalk(ctx, t.seed)
	if err != nil {
		return stats{}, fmt.Errorf("seed %d: %w", t.seed, err)
	}
	defer w.close()
	began := time.Now()
	err = w.run(ctx, t.steps, t.only)
	switch {
	case err == nil:
		s.Say("seed %d: %d steps, %d quiet points, %s", t.seed, w.stats.steps, w.stats.quiets, time.Since(began).Round(time.Second))
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), fmt.Errorf("seed %d was interrupted: %w", t.seed, err))
	default:
		err = w.report(t, chosen, err)
	}
	return w.stats, err
}

// report tells how a walk failed: what was done, what is wrong, and how to see it again.
func (w *walk) report(t task, chosen settings, err error) error {
	kept := filepath.Join(chosen.keep, fmt.Sprintf("kubesync-model-%d", t.seed))
	tail := "the daemons' logs could not be kept"
	if keepErr := os.MkdirAll(kept, 0o755); keepErr == nil {
		for n := 1; n <= w.started; n++ {
			log, _ := os.ReadFile(w.path("d" + strconv.Itoa(n) + "/log")) // none is none
			_ = os.WriteFile(filepath.Join(kept, fmt.Sprintf("daemon-%d.log", n)), log, 0o644)
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			tail = strings.Join(lines[max(0, len(lines)-25):], "\n")
		}
	}
	return fmt.Errorf("seed %d failed (INTERVAL=%s)\nsteps:\n%s\n\nwhat is wrong:\n%w\n\nend of the last daemon's log, all of them in %s:\n%s\n\nto see it again:\n  scripts/model -seed %d -steps %d",
		t.seed, w.interval, strings.Join(w.taken, "\n"), err, kept, tail, t.seed, t.steps)
}

// add adds up what walks have done.
func (s *stats) add(more stats) {
	s.walks += more.walks
	s.steps += more.steps
	s.quiets += more.quiets
	s.objects += more.objects
	s.waits = append(s.waits, more.waits...)
}

// String sums up.
func (s stats) String() string {
	slices.Sort(s.waits)
	text := fmt.Sprintf("%d walks, %d steps, %d quiet points at which %d objects were looked at", s.walks, s.steps, s.quiets, s.objects)
	if n := len(s.waits); n > 0 {
		text += fmt.Sprintf("; quiet after %s (median), %s (the slowest)", s.waits[n/2].Round(time.Millisecond), s.waits[n-1].Round(time.Millisecond))
	}
	return text
}
