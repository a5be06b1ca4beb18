package main

import (
	"strings"
	"testing"
	"time"
)

// TestGrown looks at daemons that grow in one way each.
func TestGrown(t *testing.T) {
	course := func(at func(n int) sample) []sample {
		var samples []sample
		for n := range 100 {
			s := at(n)
			s.at = time.Duration(n+1) * time.Minute
			samples = append(samples, s)
		}
		return samples
	}
	flat := sample{memory: 30 << 20, goroutines: 90, descriptors: 25}
	for name, c := range map[string]struct {
		samples []sample
		want    string
	}{
		"flat": {course(func(int) sample { return flat }), ""},
		"noise": {course(func(n int) sample {
			s := flat
			s.memory += float64(n % 7 << 20)
			s.descriptors += float64(n % 9)
			return s
		}), ""},
		"kinds that come and go": {course(func(n int) sample {
			s := flat
			s.descriptors += float64(n%5 + n/40)
			s.goroutines = 6 * s.descriptors
			return s
		}), ""},
		"goroutines beside the kinds": {course(func(n int) sample {
			s := flat
			s.descriptors += float64((100-n)%5 + (100-n)/60)
			s.goroutines = 6*s.descriptors + float64(n)/4
			return s
		}), "goroutines more"},
		"never alike": {course(func(n int) sample { s := flat; s.descriptors -= float64(n) / 5; return s }), "no two quiet points"},
		"memory":      {course(func(n int) sample { s := flat; s.memory += float64(n) * (1 << 20) / 4; return s }), "memory grew"},
		"goroutines":  {course(func(n int) sample { s := flat; s.goroutines += float64(n); return s }), "goroutines more"},
		"descriptors": {course(func(n int) sample { s := flat; s.descriptors += float64(n) / 2; return s }), "file descriptors grew"},
		"temp files":  {course(func(n int) sample { s := flat; s.tempFiles = float64(n / 50); return s }), "temporary files grew"},
		"too short":   {course(func(int) sample { return flat })[:6], "too few"},
	} {
		t.Run(name, func(t *testing.T) {
			err := grown(c.samples)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
