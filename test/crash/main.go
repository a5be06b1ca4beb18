package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
)

func main() {
	os.Exit(testlab.Main("crash", os.Stderr,
		func() (settings, error) { return parse(os.Args[1:], os.Stderr) },
		func(ctx context.Context, chosen settings) error { return try(ctx, chosen, os.Stdout, os.Stderr) }))
}

// settings are the flags.
type settings struct {
	kubesync string
	workers  int
	fates    []fate
	sample   int
	minutes  float64
	points   []point
	list     bool
	record   string
	out      string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.kubesync, "kubesync", "bin/kubesync", "the program to kill")
	flags.IntVar(&s.workers, "workers", 3, "stories run side by side")
	flags.IntVar(&s.sample, "sample", 0, "try only so many points, spread over all")
	flags.Float64Var(&s.minutes, "minutes", 0, "try only what fits into so many minutes, spread over all")
	flags.BoolVar(&s.list, "list", false, "print the points and try none")
	flags.Func("only", "try only crashes, or answers, or one fate; may be repeated", func(text string) error {
		switch all := append(crashes(), falseAnswers()...); {
		case text == "crashes":
			s.fates = append(s.fates, crashes()...)
		case text == "answers":
			s.fates = append(s.fates, falseAnswers()...)
		case slices.Contains(all, fate(text)):
			s.fates = append(s.fates, fate(text))
		default:
			return fmt.Errorf("want crashes, answers or one of %v", all)
		}
		return nil
	})
	flags.StringVar(&s.record, "record", "", "file of what has been tried, which is not tried again")
	flags.StringVar(&s.out, "out", "", "file for the results, besides stdout")
	flags.Func("point", "try only this point, \"STEP FATE REQUEST\"; may be repeated", func(text string) error {
		p, err := parsePoint(text)
		s.points = append(s.points, p)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	if len(s.fates) == 0 {
		s.fates = append(crashes(), falseAnswers()...)
	}
	return s, nil
}

// lab is what all stories share.
type lab struct {
	*testlab.Lab
	started time.Time
}

func try(ctx context.Context, chosen settings, stdout, stderr io.Writer) (err error) {
	l := &lab{started: time.Now()}
	if l.Lab, err = testlab.Open("crash", chosen.kubesync, stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	expected, err := l.tellReference(ctx)
	if err != nil {
		return fmt.Errorf("the story without a crash: %w", err)
	}
	results := &tally{reached: map[point]bool{}}
	if results.record, err = openRecord(chosen.record, results); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.record.close(time.Since(l.started), results.runs)) }()
	runs := expected.runs(chosen.fates)
	switch {
	case chosen.list:
		return list(stdout, expected, chosen.fates)
	case len(chosen.points) > 0:
		runs = again(chosen.points)
	case chosen.sample > 0:
		runs = firstOf(runs, chosen.sample)
	}
	if chosen.minutes == 0 && len(chosen.points) == 0 {
		runs = results.left(runs)
	}
	if err := l.work(ctx, chosen, expected, runs, results); err != nil {
		return err
	}
	if missed := results.missed(runs); chosen.minutes == 0 && len(missed) > 0 {
		l.Say("%d points did not come, and are tried again", len(missed))
		if err := l.work(ctx, chosen, expected, again(missed), results); err != nil {
			return err
		}
	}
	return l.report(ctx, stdout, chosen, expected, results)
}

// list prints all points.
func list(out io.Writer, expected reference, fates []fate) error {
	for _, at := range steps() {
		for _, p := range expected.points(fates...)[at.name] {
			if _, err := fmt.Fprintln(out, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstOf returns so many of the runs that they hold n points, and no more.
func firstOf(runs []run, n int) []run {
	for i, r := range runs {
		if n -= count(r.points); n <= 0 {
			return runs[:i+1]
		}
	}
	return runs
}
