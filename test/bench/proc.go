package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/machine"
	"github.com/kubesync/kubesync/test/lab/process"
)

// ticksPerSecond is what /proc counts CPU time in: USER_HZ, 100 on all of Linux.
const ticksPerSecond = 100

// cpuTime returns the CPU time that a process has used, in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	// The name of the program, in brackets, may hold spaces; utime and stime are the
	// fields 14 and 15, the name being the second.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("CPU time of process %d: %q", pid, content)
	}
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// memory is what a process has in memory now, and the most it ever had.
type memory struct{ now, peak bytesize }

func memoryOf(pid int) (memory, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	now, err := kilobytes(machine.Field(path, "VmRSS"))
	if err != nil {
		return memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	peak, err := kilobytes(machine.Field(path, "VmHWM"))
	if err != nil {
		return memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return memory{now: now, peak: peak}, nil
}

// kilobytes reads what /proc says: "1234 kB", which are of 1,024 bytes.
func kilobytes(text string) (bytesize, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return bytesize(n * 1024), err
}

// ended is how a process that ended by itself did.
type ended struct {
	took time.Duration
	peak bytesize // VmHWM when it was last looked at, at most 5 ms before the end
}

// toEnd runs a process to its end, which has to be a success.
//
// The peak is not taken from wait4, whose ru_maxrss counts what the process was
// before it became another program: a copy of the bench.
func toEnd(ctx context.Context, spec process.Spec) (ended, error) {
	start := time.Now()
	p, err := process.Start(spec)
	if err != nil {
		return ended{}, err
	}
	defer p.Kill()
	var e ended
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.Done():
			e.took = time.Since(start)
			if p.Err() != nil {
				return ended{}, p.Exited()
			}
			return e, nil
		case <-ctx.Done():
			return ended{}, context.Cause(ctx)
		case <-tick.C:
			if m, err := memoryOf(p.PID); err == nil { // it may have ended meanwhile
				e.peak = m.peak
			}
		}
	}
}
