package transform

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

// impose limits the memory of this process, which runs nothing but kubesync's binary:
// above the limit it ends itself.
func (p plenty) impose() error {
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(firstVictim), 0)
	debug.SetMemoryLimit(p.Memory / 4 * 3) // garbage does not count
	go func() {
		for {
			if memoryInUse() > uint64(p.Memory) {
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

// ranOutOfMemory reports whether a helper failed because it had no more memory.
func ranOutOfMemory(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == outOfMemory
}

// size returns the bytes of all documents.
func (b built) size() int64 {
	size := int64(0)
	for _, doc := range b.Documents {
		size += int64(len(doc.YAML))
	}
	return size
}
