package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ProtectProcess makes the calling process non-dumpable: unless they have
// CAP_SYS_PTRACE, other processes, also those of the same user, can then neither
// trace it nor read its environment, memory and open files through /proc.
// main calls it before it starts anything.
func ProtectProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protect the process against other processes of its user: prctl(PR_SET_DUMPABLE): %w", err)
	}
	return nil
}
