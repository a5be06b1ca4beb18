package confine

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubesync/kubesync/internal/limits"
)

// job is what the helpers need to know to start a program.
type job struct {
	Program
	Dir string
	// Most is what the program and all that it starts may use.
	Most allowance
}

// ending is how a program ended, or why it did not start.
type ending struct {
	Failure string // why it did not start; empty if it did
	Missing bool   // the failure was that a file is missing: the program's interpreter, usually
	Denied  bool   // the failure was that it may not be executed
	Exit    int
	Signal  int
	Excess  *excess // what it was killed for
}

// excess is what a program used too much of.
type excess struct {
	Limit limits.Limit
	Met   int64  // 0 if no one knows
	Why   string // in place of these, where no limit of kubesync's was met
}

// supervise starts the program of the job it reads, reports how it ended, and ends when
// none of its descendants is left. As soon as its parent closes the connection, or
// dies, it kills them all; also when they use more than they may.
func supervise(in, out *os.File) int {
	// The program's parent death signal is bound to the thread that started it, and so
	// is the right to kill all that it started.
	runtime.LockOSThread()
	var todo job
	if err := gob.NewDecoder(in).Decode(&todo); err != nil {
		return 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report(out, ending{Failure: fmt.Sprintf("become the parent of orphans: %v", err)})
	}
	kill := &killer{}
	if todo.Reach != nil {
		kill.scope()
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	pid, end := startLauncher(todo, kill)
	if pid == 0 {
		return report(out, end)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// Nothing more is ever sent: this ends when the connection does.
		_, _ = io.Copy(io.Discard, in)
	}()
	watch := newWatch(todo.Most)
	end = await(pid, kill, watch, children, gone)
	kill.all()
	if left := watch.stop(); end.Excess == nil {
		end.Excess = left
	}
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
func startLauncher(todo job, kill *killer) (int, ending) {
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
	pid, err := syscall.ForkExec(self, []string{"kubesync", stage + launchHelper}, &syscall.ProcAttr{
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
		kill.all()
		return fail(fmt.Errorf("send the helper what to start: %w", err))
	}
	// The other end is closed by becoming the program, without a word.
	var end ending
	switch err := gob.NewDecoder(endRead).Decode(&end); {
	case errors.Is(err, io.EOF):
		return pid, ending{}
	case err != nil:
		end.Failure = fmt.Sprintf("read from the helper: %v", err)
	}
	kill.all()
	return 0, end
}

// await waits for a child, and meanwhile reaps all orphans that end. When the other
// side is gone, or the child and all that it started use more than they may, it kills
// them and goes on waiting.
func await(pid int, kill *killer, watch *watch, children <-chan os.Signal, gone <-chan struct{}) ending {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var excess *excess
	for {
		if end, ended := reap(pid); ended {
			end.Excess = excess
			return end
		}
		select {
		case <-children:
			continue
		case <-gone:
		case found := <-watch.disk:
			excess = found
		case <-look.C:
			if excess == nil {
				excess = watch.processes()
			}
			if excess == nil {
				continue
			}
		}
		// Until the child is reaped: what is born while all are being killed, and every
		// sign of it, leads here again.
		kill.descendants()
		time.Sleep(killAgain)
	}
}

// reap waits for all children that have ended, and reports how the one did.
func reap(pid int) (ending, bool) {
	for {
		var status unix.WaitStatus
		switch done, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return ending{Failure: fmt.Sprintf("wait for the program: %v", err)}, true
		case done == 0:
			return ending{}, false
		case done == pid && status.Signaled():
			return ending{Signal: int(status.Signal())}, true
		case done == pid && status.Exited():
			return ending{Exit: status.ExitStatus()}, true
		}
	}
}
