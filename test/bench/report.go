package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/machine"
)

// report is what a run came to.
type report struct {
	machine machine.Machine
	scale   scale
	seed    uint64
	took    time.Duration
	parts   []part
}

// part is what one benchmark came to.
type part struct {
	benchmark benchmark
	lines     []line
	err       error
}

func (r *report) add(b benchmark, lines []line, err error) {
	r.parts = append(r.parts, part{benchmark: b, lines: lines, err: err})
}

// write writes the results as Markdown.
func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "# Results of `make bench`\n\n")
	fmt.Fprintf(w, "Made by `scripts/bench -size %s -seed %d` in %s; do not edit. `doc.go` says how each figure was measured and\n"+
		"how to read it: ratios travel, seconds do not. Times are medians, smallest and largest behind them.\n\n",
		r.scale.name, r.seed, r.took.Round(time.Second))
	if r.scale.name != "full" {
		fmt.Fprintf(w, "**This run was smaller than what the targets are for.**\n\n")
	}
	fmt.Fprint(w, r.machine.Table())
	fmt.Fprintf(w, "\n| measured | kubesync | compared with | ratio | target | met |\n|---|---|---|---|---|---|\n")
	for _, p := range r.parts {
		fmt.Fprintf(w, "| **%s**: %s | | | | | |\n", p.benchmark.name, p.benchmark.measures)
		for _, l := range p.lines {
			fmt.Fprintf(w, "| %s |\n", strings.Join(l.cells(), " | "))
		}
		if p.err != nil {
			fmt.Fprintf(w, "| **not measured**: %s | | | | | no |\n", cell(p.err.Error()))
		}
	}
	fmt.Fprintf(w, "\n## Targets\n\nWhat the rows above are held against, for two cores:\n\n")
	for _, p := range r.parts {
		fmt.Fprintf(w, "- **%s**: %s\n", p.benchmark.name, p.benchmark.target)
	}
}

func (l line) cells() []string {
	cells := []string{l.what, l.ours, l.peer, l.ratio, l.target, l.met}
	for i := range cells {
		cells[i] = cell(cells[i])
	}
	return cells
}

// String is how the line is printed while the bench runs.
func (l line) String() string {
	s := l.what + ": " + l.ours
	for _, more := range []struct{ label, value string }{{"", l.peer}, {"ratio ", l.ratio}, {"target ", l.target}, {"met: ", l.met}} {
		if more.value != "" {
			s += "; " + more.label + more.value
		}
	}
	return s
}

// cell makes a text fit into a table.
func cell(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ReplaceAll(s, "|", "/")
}
