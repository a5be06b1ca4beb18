package transform

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"syscall"
)

// job is what the helpers need to know to start a program.
type job struct {
	Path string   // absolute
	Args []string // the first one is the program's name
	Env  []string
	Dir  string
	// Reach confines the program; nil means that it is not confined.
	Reach *reach
}

// ending is how a program ended, or why it did not start.
type ending struct {
	Failure string // why it did not start; empty if it did
	Missing bool   // the failure was that a file is missing: the program's interpreter, usually
	Denied  bool   // the failure was that it may not be executed
	Exit    int
	Signal  int
}

// supervise starts the program of the job it reads, tells how it ended, and ends when
// none of its descendants is left. As soon as its parent closes the connection, or
// dies, it kills them all.
func supervise(in, out *os.File) int {
	// The program's parent death signal is bound to the thread that started it.
	runtime.LockOSThread()
	var todo job
	if err := gob.NewDecoder(in).Decode(&todo); err != nil {
		return 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report(out, ending{Failure: fmt.Sprintf("become the parent of orphans: %v", err)})
	}
	pid, end := startLauncher(todo)
	if pid == 0 {
		return report(out, end)
	}
	go func() {
		// Nothing more is ever sent: this ends when the connection does.
		_, _ = io.Copy(io.Discard, in)
		killDescendants()
	}()
	end = await(pid)
	killAll()
	return report(out, end)
}

func report(out *os.File, end ending) int {
	if err := gob.NewEncoder(out).Encode(end); err != nil {
		return 1
	}
	return 0
}

// startLauncher starts the helper that becomes the program, in a process group of
// its own, and waits until it has. The process id is 0 if that failed.
func startLauncher(todo job) (int, ending) {
	fail := func(err error) (int, ending) { return 0, ending{Failure: err.Error()} }
	jobRead, jobWrite, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer jobRead.Close()
	defer jobWrite.Close()
	endRead, endWrite, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer endRead.Close()
	defer endWrite.Close()
	// os/exec would wait for this process alone, and so would compete with await.
	pid, err := syscall.ForkExec(self, []string{"kubesync", string(launchStage)}, &syscall.ProcAttr{
		Dir:   todo.Dir,
		Env:   []string{},
		Files: []uintptr{0, 1, 2, jobRead.Fd(), endWrite.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fail(fmt.Errorf("start a helper in %s: %w", todo.Dir, err))
	}
	_ = endWrite.Close()
	if err := gob.NewEncoder(jobWrite).Encode(todo); err != nil {
		killAll()
		return fail(fmt.Errorf("tell the helper what to start: %w", err))
	}
	// The other end is closed by becoming the program, without a word.
	var end ending
	switch err := gob.NewDecoder(endRead).Decode(&end); {
	case errors.Is(err, io.EOF):
		return pid, ending{}
	case err != nil:
		end.Failure = fmt.Sprintf("hear from the helper: %v", err)
	}
	killAll()
	return 0, end
}

// await waits for a child, and meanwhile reaps all orphans that end.
func await(pid int) ending {
	for {
		var status unix.WaitStatus
		switch done, err := unix.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return ending{Failure: fmt.Sprintf("wait for the program: %v", err)}
		case done == pid && status.Signaled():
			return ending{Signal: int(status.Signal())}
		case done == pid && status.Exited():
			return ending{Exit: status.ExitStatus()}
		}
	}
}

// killAll kills all descendants and returns when none is left. New ones may be born
// while it looks, which is why it looks again; what cannot be killed (it hangs in
// the kernel, or belongs to another user) keeps it here until the daemon loses
// patience and kills this process.
func killAll() {
	for {
		killDescendants()
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// killDescendants kills every process below this one that it sees in /proc.
func killDescendants() {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		pid, parent, ok := readStat(name)
		if ok {
			children[parent] = append(children[parent], pid)
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

// readStat reads a process's id and its parent's from its stat file in /proc.
func readStat(name string) (pid, parent int, ok bool) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, false // it has ended
	}
	return parseStat(string(data))
}

// parseStat parses "12 (name) S 1 …". The name can hold anything, brackets included.
func parseStat(stat string) (pid, parent int, ok bool) {
	first, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, err == nil
}
