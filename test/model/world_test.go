package main

import (
	"reflect"
	"testing"
)

// TestPlan plans many walks, which needs no server.
func TestPlan(t *testing.T) {
	counts := map[op]int{}
	for seed := range 300 {
		planned := plan(seed, 40)
		if again := plan(seed, 40); !reflect.DeepEqual(planned, again) {
			t.Fatalf("seed %d gives two different walks", seed)
		}
		w := newWorld()
		for _, s := range planned {
			counts[s.op]++
			if !w.allows(s) {
				t.Fatalf("seed %d: %s is not allowed", seed, s)
			}
			if s.op == opQuiet {
				w.settle()
				w.begin()
				continue
			}
			w.act(s)
		}
	}
	t.Log(counts)
	for _, o := range weights() {
		if counts[o] == 0 {
			t.Errorf("no walk has the step %s", o)
		}
	}
}
