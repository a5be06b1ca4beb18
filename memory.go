package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/kubesync/kubesync/internal/backoff"
)

// saveMemory has garbage collected sooner than Go would by itself: a daemon works
// for moments and holds its memory all day. GOGC, where it is set, says otherwise.
func saveMemory() {
	const percent = 50
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(percent)
	}
}

// forgetProfile stops the record of allocations, of which only /debug/pprof/ makes use: it
// takes 1.5 MB, as soon as there is something in it.
func forgetProfile() { runtime.MemProfileRate = 0 }

const (
	// returnInterval is how often Go collects garbage where nothing else makes it do so:
	// memory that is returned then costs no collection more.
	returnInterval = 2 * time.Minute
	// worthReturning is what a daemon that only polls does not gather in that time.
	worthReturning = 4 << 20
)

// returnMemory gives what a sync needed, and nothing needs any more, back to the system.
// Go itself keeps as much as it may need until the next collection, and a daemon at rest
// needs none.
func returnMemory(ctx context.Context) {
	for backoff.Sleep(ctx, returnInterval, nil) {
		if unusedMemory() > worthReturning {
			debug.FreeOSMemory()
		}
	}
}

// unusedMemory is what this process holds of the system's memory without need: garbage, and
// free memory.
func unusedMemory() uint64 {
	figures := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(figures)
	objects, unused, free, live := figures[0].Value.Uint64(), figures[1].Value.Uint64(), figures[2].Value.Uint64(), figures[3].Value.Uint64()
	return max(objects+unused+free, live) - live
}
