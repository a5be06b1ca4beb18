package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/sync"
)

func TestConclusion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pass    sync.Pass
		want    string
		differs bool
	}{
		"all":               {sync.Pass{InSync: true}, `{"level":"info","repos":2,"message":"all repos are in sync"}`, false},
		"changed":           {sync.Pass{InSync: true, Changes: true}, `{"level":"info","repos":2,"message":"all repos are in sync"}`, true},
		"one waits":         {sync.Pass{InSync: true, WaitingPrunes: 1}, `{"level":"warn","repos":2,"prunes_waiting":1,"message":"all repos are in sync"}`, true},
		"not all":           {sync.Pass{}, `{"level":"error","repos":2,"message":"not all repos are in sync"}`, false},
		"not all, two wait": {sync.Pass{WaitingPrunes: 2}, `{"level":"error","repos":2,"prunes_waiting":2,"message":"not all repos are in sync"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			conclude(zerolog.New(&log), 2, test.pass, "all repos are in sync")
			if got := strings.TrimSpace(log.String()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := differs(test.pass); got != test.differs {
				t.Errorf("differs: %v, want %v", got, test.differs)
			}
		})
	}
}
