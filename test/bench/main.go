package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/machine"
)

func main() {
	os.Exit(testlab.Main("bench", os.Stderr,
		func() (settings, error) { return parse(os.Args[1:], os.Stderr) },
		func(ctx context.Context, chosen settings) error { return measure(ctx, chosen, os.Stdout, os.Stderr) }))
}

// settings are the flags.
type settings struct {
	run      *regexp.Regexp
	scale    scale
	seed     uint64
	kubesync string
	out      string
}

const usage = `Usage: scripts/bench [-run REGEXP] [-size small|full] [-idle DURATION] [-seed N] [-out FILE]

Measures the kubesync that this tree builds, prints a table, and with -out writes
it to a file. The benchmarks are:

`

func parse(args []string, stderr io.Writer) (settings, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		for _, b := range benchmarks() {
			fmt.Fprintf(stderr, "  %-10s %s\n", b.name, b.measures)
		}
		fmt.Fprintln(stderr)
		flags.PrintDefaults()
	}
	pattern := flags.String("run", "", "run only the benchmarks whose name matches")
	size := flags.String("size", "full", "full, which the targets are for, or small")
	idle := flags.Duration("idle", 0, "how long to look at an idle daemon (default 5m, with -size small 8s)")
	seed := flags.Uint64("seed", 1, "seed of what is generated")
	kubesync := flags.String("kubesync", "bin/kubesync", "the program to measure")
	out := flags.String("out", "", "file for the table, besides stdout")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	expression, err := regexp.Compile(*pattern)
	if err != nil {
		return settings{}, fmt.Errorf("-run: %w", err)
	}
	scale, err := scaleNamed(*size)
	if err != nil {
		return settings{}, err
	}
	if *idle > 0 {
		scale.idle = *idle
	}
	return settings{run: expression, scale: scale, seed: *seed, kubesync: *kubesync, out: *out}, nil
}

// measure runs what was chosen, one after the other. What fails does not keep the
// rest from being measured.
func measure(ctx context.Context, chosen settings, stdout, stderr io.Writer) (err error) {
	started := time.Now()
	lab, err := newLab(chosen, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.close()) }()
	results := report{scale: chosen.scale, seed: chosen.seed}
	if results.machine, err = machine.Describe(ctx); err != nil {
		return err
	}
	var failures []error
	for _, b := range benchmarks() {
		if !chosen.run.MatchString(b.name) {
			continue
		}
		lab.Say("%s: %s", b.name, b.measures)
		lines, err := b.run(ctx, lab)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", b.name, err)
			lab.Say("%v", err)
			failures = append(failures, err)
		}
		for _, l := range lines {
			lab.Say("%s: %s", b.name, l)
		}
		results.add(b, lines, err)
	}
	results.took = time.Since(started)
	var table bytes.Buffer
	results.write(&table)
	if _, err := stdout.Write(table.Bytes()); err != nil {
		failures = append(failures, err)
	}
	if chosen.out != "" {
		if err := os.WriteFile(chosen.out, table.Bytes(), 0o644); err != nil {
			failures = append(failures, fmt.Errorf("results: %w", err))
		}
	}
	return errors.Join(failures...)
}
