package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// mostOpen is how many files a process may have open.
	mostOpen = 4096
	// niceness is how much a program stands back behind the daemon, which has a lease
	// to renew.
	niceness = 5
	// firstVictim makes the kernel end a program before anything else when memory is
	// short. Taking that back takes more rights than it has.
	firstVictim = "1000"
)

// impose limits this process, and all that it becomes and starts, by what the kernel
// can do about each process by itself. The supervisor's watch adds them up. It alone
// sees to memory: RLIMIT_AS and RLIMIT_DATA count what is reserved and never used.
func (a allowance) impose() error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_CORE:   0,
		unix.RLIMIT_FSIZE:  uint64(a.File),
		unix.RLIMIT_NOFILE: mostOpen,
	} {
		if err := lower(resource, most); err != nil {
			return err
		}
	}
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, niceness); err != nil && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("setpriority: %w", err) // EACCES: it stands further back already
	}
	// Where /proc is read-only there is no way, and no need to fail.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(firstVictim), 0)
	return nil
}

// lower lowers a resource limit of this process for good; one that is lower stays.
func lower(resource int, most uint64) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &limit); err != nil {
		return fmt.Errorf("getrlimit %d: %w", resource, err)
	}
	limit.Max = min(limit.Max, most)
	limit.Cur = min(limit.Cur, limit.Max)
	if err := unix.Prlimit(0, resource, &limit, nil); err != nil {
		return fmt.Errorf("setrlimit %d to %d: %w", resource, most, err)
	}
	return nil
}
