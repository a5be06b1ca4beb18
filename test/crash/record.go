package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// record is a file of what has been tried, so that a long run can be taken up again: a
// line a point, "converged POINT" or "failed POINT", and "took DURATION" of N runs at
// the end of each.
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
		if result == "took" {
			if err := results.before(text); err != nil {
				return record{}, errors.Join(fmt.Errorf("record %s: %w", path, err), file.Close())
			}
			continue
		}
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

// close notes how long all of it took, and ends the record.
func (r record) close(took time.Duration, runs int) error {
	if r.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(r.file, "took %s %d runs\n", took.Round(time.Second), runs)
	return errors.Join(err, r.file.Close())
}

// before adds what an earlier session took.
func (t *tally) before(text string) error {
	var took string
	var runs int
	if _, err := fmt.Sscanf(text, "%s %d runs", &took, &runs); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	spent, err := time.ParseDuration(took)
	t.earlier += spent
	t.runsBefore += runs
	return err
}
