package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// self is the binary that runs: also after it was replaced on disk.
const self = "/proc/self/exe"

// stage starts the hidden argument with which the binary is started again to be a
// helper. The helper's name follows.
const stage = "kubesync:"

// The helpers of this package, which doc.go names.
const (
	superviseHelper = "supervise"
	launchHelper    = "launch"
)

// File descriptors of a helper, after stdin, stdout and stderr.
const (
	fromParent = 3
	toParent   = 4
)

// patience is how long a helper may take to kill what it has started and to end,
// before it is killed itself.
const patience = 10 * time.Second

// Helper is what a helper process does. It reads what its parent has for it from in,
// answers on out, and returns its exit status.
type Helper func(in, out *os.File) int

// Main is what the binary does when it was started as a helper: one of this package, or
// one of the others, by their names. It is the first thing that main calls, before it
// looks at its environment or starts anything, with its arguments (os.Args); if ran is
// true, main exits with code.
func Main(args []string, others map[string]Helper) (code int, ran bool) {
	if len(args) != 2 {
		return 0, false
	}
	name, ok := strings.CutPrefix(args[1], stage)
	if !ok {
		return 0, false
	}
	run := others[name]
	switch name {
	case superviseHelper:
		run = supervise
	case launchHelper:
		run = launch
	}
	if run == nil {
		return 0, false
	}
	// What the helper starts must not inherit its connection to its parent.
	unix.CloseOnExec(fromParent)
	unix.CloseOnExec(toParent)
	in, out := os.NewFile(fromParent, "from parent"), os.NewFile(toParent, "to parent")
	return run(in, out), true
}

// Talk starts this binary as one of the others of Main, talks to it, and waits until it
// has ended; when ctx is done it is killed. What it prints goes to out. An error of talk
// counts only if the helper did not fail itself.
func Talk[T any](ctx context.Context, helper string, out *Output, talk func(in io.Reader, to io.WriteCloser) (T, error)) (T, error) {
	printed := out.writer(helper)
	defer printed.flush()
	return startHelper(ctx, helper, printed, printed, talk)
}

// startHelper starts this binary as a helper, talks to it over two pipes, and waits
// until it has ended. When ctx is done the pipe to it is closed, which the supervisor
// takes as the order to end; if it does not it is killed, as others are at once. An
// error of talk counts only if the helper did not fail itself.
func startHelper[T any](ctx context.Context, helper string, stdout, stderr io.Writer, talk func(in io.Reader, to io.WriteCloser) (T, error)) (T, error) {
	var result T
	helperIn, to, err := os.Pipe()
	if err != nil {
		return result, err
	}
	defer helperIn.Close()
	defer to.Close()
	in, helperOut, err := os.Pipe()
	if err != nil {
		return result, err
	}
	defer in.Close()
	defer helperOut.Close()

	cmd := exec.CommandContext(ctx, self)
	cmd.Args = []string{"kubesync", stage + helper}
	cmd.Env = []string{} // the helper must not know what the daemon knows
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{helperIn, helperOut}
	// A session has a terminal only if it opens one: nothing that runs here gets at the
	// user's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = to.Close
	if helper != superviseHelper {
		cmd.Cancel = func() error { return cmd.Process.Kill() }
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		return result, fmt.Errorf("start the helper process: %w", err)
	}
	_ = helperIn.Close()
	_ = helperOut.Close()
	result, talkErr := talk(in, to)
	_ = in.Close() // what still writes to it does not wait until that is read
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the helper is done; another writer still holds its output
	}
	if err != nil {
		return result, fmt.Errorf("helper process: %w", err)
	}
	return result, talkErr
}
