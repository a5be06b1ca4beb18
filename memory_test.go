package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestUnusedMemory holds that garbage counts as unused until it is returned.
func TestUnusedMemory(t *testing.T) { // not parallel: it is about the whole process
	const size = 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // else the allocation itself may have its garbage collected
	debug.FreeOSMemory()
	runtime.KeepAlive(make([]byte, size))
	if unused := unusedMemory(); unused < size {
		t.Errorf("%d bytes are unused, of at least %d", unused, size)
	}
	debug.FreeOSMemory()
	if unused := unusedMemory(); unused >= size/2 {
		t.Errorf("%d bytes are unused after they were returned", unused)
	}
}
