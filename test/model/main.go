package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
)

func main() {
	os.Exit(testlab.Main("model", os.Stderr,
		func() (settings, error) { return parse(os.Args[1:], os.Stderr) },
		func(ctx context.Context, chosen settings) error { return walkAll(ctx, chosen, os.Stdout) }))
}

// settings are the flags.
type settings struct {
	seed        int
	steps       int
	walks       int
	budget      time.Duration
	parallel    int
	only        map[int]bool
	soak        time.Duration
	kubesync    string
	regressions string
	keep        string
	out         string
}

const usage = `Usage: scripts/model [-for DURATION] [-seed N] [-steps N] [-walks N] [-only STEPS] [-soak DURATION] …

Walks at random through what can happen to a kubesync, and holds status and cluster
against a model at every quiet point. The same -seed and -steps give the same walk.

`

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.IntVar(&s.seed, "seed", 0, "seed of the first walk, the next has the next (default random)")
	flags.IntVar(&s.steps, "steps", 25, "steps of a walk, quiet points included")
	flags.IntVar(&s.walks, "walks", 1, "how many walks, unless -for says how long")
	flags.DurationVar(&s.budget, "for", 0, "for how long walks are begun")
	flags.IntVar(&s.parallel, "parallel", 2, "how many walks at a time")
	only := flags.String("only", "", "take only these steps of the walk, such as 0-3,7,12")
	flags.DurationVar(&s.soak, "soak", 0, "walk on for so long with one daemon, and see whether it grows")
	flags.StringVar(&s.kubesync, "kubesync", "bin/kubesync", "the program to walk with")
	flags.StringVar(&s.regressions, "regressions", "", "file of seeds and steps to begin with, a walk a line")
	flags.StringVar(&s.keep, "keep", os.TempDir(), "where the logs of a walk that failed are kept")
	flags.StringVar(&s.out, "out", "", "file for what the soak found, besides stdout")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if s.seed == 0 {
		s.seed = 1 + rand.IntN(1<<30)
	}
	var err error
	s.only, err = parseOnly(*only)
	return s, err
}

// parseOnly reads which steps are taken; nil for all.
func parseOnly(text string) (map[int]bool, error) {
	if text == "" {
		return nil, nil
	}
	only := map[int]bool{}
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil {
			return nil, fmt.Errorf("-only: %q is no step, nor a range such as 3-7", part)
		}
		for n := first; n <= last; n++ {
			only[n] = true
		}
	}
	return only, nil
}

// walkAll starts the site, and takes the walks that were asked for.
func walkAll(ctx context.Context, chosen settings, out io.Writer) (err error) {
	begin := task{seed: chosen.seed, steps: chosen.steps, only: chosen.only}
	first, err := readRegressions(chosen.regressions)
	if err != nil {
		return err
	}
	s, err := newSite(ctx, chosen.kubesync, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if chosen.soak > 0 {
		return s.soak(ctx, chosen)
	}
	total, err := s.crew(ctx, chosen, append(first, begin))
	s.Say("%s", total)
	return err
}
