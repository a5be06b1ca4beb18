package confine

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// LandlockABI returns the version of Landlock that the kernel offers, 0 if it has none,
// or it is switched off, or a container runtime hides it. The kernel's version says
// nothing about that: Landlock can be left out or off at boot.
func LandlockABI() int {
	version, err := llsyscall.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// confine restricts this process, and all that it becomes and starts, to what is within
// reach, with all the kernel's Landlock can do; it is an error if there is no Landlock
// at all. The network stays open.
func (r Reach) confine() error {
	abi := LandlockABI()
	if abi == 0 {
		return errors.New("this kernel has no Landlock")
	}
	config := landlock.V11.BestEffort()
	config.HandledAccessNet = 0
	readDirs, readFiles := kinds(append(r.Read, fmt.Sprintf("/proc/%d", os.Getpid())))
	writeDirs, writeFiles := kinds(r.Write)
	inside := landlock.RWDirs(writeDirs...)
	if abi >= 2 {
		// Moving files between directories. Asking an older kernel for this would
		// switch the whole confinement off.
		inside = inside.WithRefer()
	}
	err := config.Restrict(
		landlock.RODirs(readDirs...).IgnoreIfMissing(), landlock.ROFiles(readFiles...).IgnoreIfMissing(),
		inside, landlock.RWFiles(writeFiles...).WithIoctlDev(),
	)
	if err != nil {
		return err
	}
	// Best effort includes doing nothing, which must not pass for success.
	if root, err := os.Open("/"); err == nil {
		return errors.Join(errors.New("no effect: the root directory can still be read"), root.Close())
	}
	return nil
}

// Isolate takes from this process, and all that it becomes and starts, everything that
// Landlock and the kernel can take: files, programs, TCP, and being looked at by others.
// Where the kernel has no Landlock it is only the last.
func Isolate() error {
	if err := ProtectProcess(); err != nil {
		return err
	}
	return landlock.V11.BestEffort().Restrict()
}
