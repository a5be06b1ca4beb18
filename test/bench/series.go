package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// series is what the rounds of one measurement came to, in seconds.
type series []float64

func (s *series) add(d time.Duration) { *s = append(*s, d.Seconds()) }

// quantile returns the smallest value that at least the share q of all is not above.
func (s series) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(q*float64(len(s))))-1)]
}

// median is the middle value, or the mean of the two in the middle.
func (s series) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

// String is the median and, of several rounds, what lies around it.
func (s series) String() string {
	if len(s) < 2 {
		return seconds(s.median())
	}
	return fmt.Sprintf("%s (%s to %s)", seconds(s.median()), seconds(slices.Min(s)), seconds(slices.Max(s)))
}

// seconds words a time with three digits that mean something.
func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// bytesize is a number of bytes.
type bytesize int64

const megabyte bytesize = 1_000_000

func (b bytesize) String() string { return fmt.Sprintf("%.1f MB", float64(b)/float64(megabyte)) }
