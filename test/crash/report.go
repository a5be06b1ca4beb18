package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kubesync/kubesync/test/lab/machine"
)

// report prints how it went, and with a file for the results writes them there. An
// error says that not all is well.
func (l *lab) report(ctx context.Context, out io.Writer, chosen settings, expected reference, results *tally) error {
	if chosen.out != "" {
		var text bytes.Buffer
		if err := l.write(ctx, &text, chosen, expected, results); err != nil {
			return err
		}
		if err := os.WriteFile(chosen.out, text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("results: %w", err)
		}
	}
	fmt.Fprintf(out, "%d of %d points tried, %d converged, in %d runs and %s\n",
		len(results.reached), results.known(expected, chosen.fates...), results.converged(nil), results.runs+results.runsBefore, results.spent(l.started))
	if len(results.failures) > 0 {
		return fmt.Errorf("%d runs failed", len(results.failures))
	}
	return nil
}

// known is how many points there are, of the undisturbed run or reached in another.
func (t *tally) known(expected reference, fates ...fate) int {
	all := map[point]bool{}
	for _, of := range expected.points(fates...) {
		for _, p := range of {
			all[p] = true
		}
	}
	for p := range t.reached {
		if slices.Contains(fates, p.fate) {
			all[p] = true
		}
	}
	return len(all)
}

// spent is the time that trying took, this time and as far as the record tells.
func (t *tally) spent(since time.Time) time.Duration {
	return (t.earlier + time.Since(since)).Round(time.Second)
}

// converged is how many points were tried and came out well, of those that match.
func (t *tally) converged(match func(point) bool) (n int) {
	for p := range t.reached {
		if (match == nil || match(p)) && !t.failed(p) {
			n++
		}
	}
	return n
}

// tried is how many points were tried, of those that match.
func (t *tally) tried(match func(point) bool) (n int) {
	for p := range t.reached {
		if match(p) {
			n++
		}
	}
	return n
}

// write writes the results.
func (l *lab) write(ctx context.Context, out io.Writer, chosen settings, expected reference, results *tally) error {
	described, err := machine.Describe(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# Results of `make crash`\n\nMade by `scripts/crash` in %s; do not edit. `doc.go` tells the story, what is checked, and\nhow to try one point alone.\n\n%s\n",
		results.spent(l.started), described.Table())
	fmt.Fprint(out, "| step | what happens | requests | killed | converged | answered falsely | converged |\n|---|---|---|---|---|---|---|\n")
	for _, at := range steps() {
		die := func(p point) bool { return p.step == at.name && p.fate.deadly() }
		answer := func(p point) bool { return p.step == at.name && !p.fate.deadly() }
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d | %d |\n", at.name, at.says, len(expected.requests[at.name]),
			results.tried(die), results.converged(die), results.tried(answer), results.converged(answer))
	}
	fmt.Fprint(out, "\n| what befalls a request | points | tried | converged |\n|---|---|---|---|\n")
	for _, f := range chosen.fates {
		of := func(p point) bool { return p.fate == f }
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", f.says(), results.known(expected, f), results.tried(of), results.converged(of))
	}
	fmt.Fprintf(out, "\n%d of %d points tried, %d converged, in %d tellings of the story. Points that were not tried are requests that\ncame in the uninterrupted run and not again: how often some things are asked is a matter of time.\n",
		len(results.reached), results.known(expected, chosen.fates...), results.converged(nil), results.runs+results.runsBefore)
	return nil
}

// says words a fate.
func (f fate) says() string {
	switch f {
	case before:
		return "killed before it is passed on"
	case after:
		return "killed when it was carried out"
	case retry429:
		return "429 with Retry-After"
	case stall:
		return "answered 30 s late"
	case reset:
		return "the connection breaks in mid-answer"
	case truncated:
		return "half an answer"
	case other:
		return "an answer about another object"
	}
	return string(f)
}
