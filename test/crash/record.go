package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// record is a file of what has been tried, so that a long run can be taken up again: a
// line a point, "converged POINT" or "failed POINT".
type record struct{ file *os.File }

// openRecord opens the file of that path, none for "", and puts into results what it
// says. What failed is tried again.
func openRecord(path string, results *tally) (_ record, err error) {
	if path == "" {
		return record{}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return record{}, fmt.Errorf("record: %w", err)
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		result, text, _ := strings.Cut(lines.Text(), " ")
		p, err := parsePoint(text)
		if err != nil {
			return record{}, errors.Join(fmt.Errorf("record %s: %w", path, err), file.Close())
		}
		if result == "converged" {
			results.reached[p] = true
		}
	}
	if err := lines.Err(); err != nil {
		return record{}, errors.Join(fmt.Errorf("record %s: %w", path, err), file.Close())
	}
	return record{file: file}, nil
}

// note adds what came of points.
func (r record) note(result string, points []point) error {
	if r.file == nil {
		return nil
	}
	var text strings.Builder
	for _, p := range points {
		fmt.Fprintf(&text, "%s %s\n", result, p)
	}
	if _, err := r.file.WriteString(text.String()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

func (r record) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
