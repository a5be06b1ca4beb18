package main

import (
	"path/filepath"
	"testing"
	"time"
)

func TestARecordIsTakenUpAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	well := point{step: "move", fate: after, request: "api GET /api #1"}
	ill := point{step: "move", fate: reset, request: "git ls-refs /shop.git #2"}
	for session := range 2 {
		results := &tally{reached: map[point]bool{}}
		opened, err := openRecord(path, results)
		if err != nil {
			t.Fatal(err)
		}
		if results.reached[well] != (session == 1) || results.reached[ill] {
			t.Errorf("session %d begins with %v", session, results.reached)
		}
		if want := time.Duration(session) * time.Minute; results.earlier != want || results.runsBefore != 3*session {
			t.Errorf("session %d: %s and %d runs before", session, results.earlier, results.runsBefore)
		}
		if err := opened.note("converged", []point{well}); err != nil {
			t.Fatal(err)
		}
		if err := opened.note("failed", []point{ill}); err != nil {
			t.Fatal(err)
		}
		if err := opened.close(time.Minute, 3); err != nil {
			t.Fatal(err)
		}
	}
}
