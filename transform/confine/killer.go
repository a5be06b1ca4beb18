package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// killAgain is how long the supervisor waits before it looks again for what it has to
// kill.
const killAgain = 2 * time.Millisecond

// killer kills all descendants of this process.
//
// To look for them and kill them one by one is a race that a program can win, if each of
// its processes starts another one and ends. Under Landlock there is a way that knows
// no race: the thread that starts the program gives up the right to signal anything
// outside, and then the kernel sends "to everybody" to the descendants alone.
type killer struct {
	thread int // the one that is scoped; 0 if none is
}

// scope takes from this thread, and all that it starts, the right to signal processes
// that it did not start. The calling goroutine must be locked to its thread. Where the
// kernel cannot do that, before 6.12, nothing happens.
func (k *killer) scope() {
	parent := os.Getppid()
	if LandlockABI() < 6 || unix.Kill(parent, 0) != nil {
		return
	}
	rules, err := llsyscall.LandlockCreateRuleset(&llsyscall.RulesetAttr{Scoped: llsyscall.ScopeSignal}, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(rules) }()
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil || llsyscall.LandlockRestrictSelf(rules, 0) != nil {
		return
	}
	// Without the proof that it works, what all does would kill all that this user runs.
	if errors.Is(unix.Kill(parent, 0), unix.EPERM) {
		k.thread = unix.Gettid()
	}
}

// all kills all descendants and returns when none is left. New ones may be born
// while it looks, which is why it looks again; what cannot be killed (it hangs in
// the kernel, or belongs to another user) keeps it here until the daemon loses
// patience and kills this process.
func (k *killer) all() {
	for {
		k.descendants()
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		time.Sleep(killAgain)
	}
}

// descendants sends SIGKILL to every process below this one.
func (k *killer) descendants() {
	if k.thread != 0 && k.thread == unix.Gettid() {
		_ = unix.Kill(-1, unix.SIGKILL) // that there is none is fine too
		return
	}
	children := map[int][]int{}
	names, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if parent, known := readFields(name)["PPid"]; known && err == nil { // else it has ended
			children[int(parent)] = append(children[int(parent)], pid)
		}
	}
	for generation := children[os.Getpid()]; len(generation) > 0; {
		var next []int
		for _, pid := range generation {
			_ = unix.Kill(pid, unix.SIGKILL) // gone is fine too
			next = append(next, children[pid]...)
		}
		generation = next
	}
}
