package confine

import (
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// outOfMemory is the exit status of a helper that used too much memory.
	outOfMemory = 3
	// memoryLook is how often a helper looks at its own memory.
	memoryLook = 5 * time.Millisecond
)

// LimitMemory limits the memory of a helper, which runs nothing but kubesync's binary:
// above so many bytes it ends itself.
func LimitMemory(most int64) error {
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(firstVictim), 0)
	debug.SetMemoryLimit(most / 4 * 3) // garbage does not count
	go func() {
		for {
			if memoryInUse() > uint64(most) {
				os.Exit(outOfMemory)
			}
			time.Sleep(memoryLook)
		}
	}()
	return nil
}

// memoryInUse returns what this process has from the kernel, in bytes.
func memoryInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// OutOfMemory reports whether a helper failed because it needed more than LimitMemory
// allows.
func OutOfMemory(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == outOfMemory
}
