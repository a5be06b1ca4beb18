package transform

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/internal/limits"
)

// patience is how long a helper may take to kill what it has started and to end,
// before it is killed itself.
const patience = 10 * time.Second

// run runs a program under the supervisor until it and all its descendants have ended,
// or the time is up or ctx is done; then they are killed. The error says how it ended,
// and its last lines; it wraps the cause of ctx if that was why.
func (t *Transform) run(ctx context.Context, todo job, out *output) error {
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out.room, out.full = t.options.Limits.Of(limits.CommandOutput), func() {
		stop(t.options.Limits.Exceeded(limits.CommandOutput, "its output", 0))
	}
	stdout, stderr := out.writer("stdout"), out.writer("stderr")
	end, err := startHelper(ctx, superviseStage, stdout, stderr, func(in io.Reader, to io.WriteCloser) (ending, error) {
		var end ending
		if err := gob.NewEncoder(to).Encode(todo); err != nil {
			return end, err
		}
		return end, gob.NewDecoder(in).Decode(&end)
	})
	stdout.flush()
	stderr.flush()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("killed with everything it had started: %w%s", context.Cause(ctx), quote(out.lines()))
	case end.Excess != nil:
		return fmt.Errorf("killed with everything it had started: %w%s", end.Excess.error(t.options.Limits), quote(out.lines()))
	case err != nil:
		return fmt.Errorf("supervise it: %w%s", err, quote(out.lines()))
	}
	if text := end.text(todo, t.options.Limits); text != "" {
		return errors.New(text + quote(out.lines()))
	}
	return nil
}

// error says what was used too much of.
func (e *excess) error(most limits.Limits) error {
	if e.Why != "" {
		return errors.New(e.Why)
	}
	return most.Exceeded(e.Limit, "its processes and files", e.Met)
}

// shellSignal is what shells add to the number of the signal that killed a program, for
// their own exit status.
const shellSignal = 128

// text says what went wrong; it is empty if nothing did.
func (e ending) text(todo job, most limits.Limits) string {
	switch {
	case e.Missing:
		return fmt.Sprintf("cannot be started: %s (is the interpreter in its first line, #!, installed?)", e.Failure)
	case e.Denied && todo.Reach != nil:
		return fmt.Sprintf("cannot be started: %s (it needs to be executable in git, and its interpreter in a directory of the system or on PATH)", e.Failure)
	case e.Denied:
		return fmt.Sprintf("cannot be started: %s (is it executable in git?)", e.Failure)
	case e.Failure != "":
		return "cannot be started: " + e.Failure
	case e.Signal == int(syscall.SIGXFSZ), e.Exit == shellSignal+int(syscall.SIGXFSZ):
		return "killed: " + most.Exceeded(limits.CommandFile, "a file", 0).Error()
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d (%s)", e.Signal, syscall.Signal(e.Signal))
	case e.Exit != 0:
		return fmt.Sprintf("exit status %d", e.Exit)
	}
	return ""
}

// quote formats the last lines of output for an error.
func quote(lines []string) string {
	if len(lines) == 0 {
		return ", without a word"
	}
	return "; its last lines:\n  " + strings.Join(lines, "\n  ")
}

// startHelper starts this binary as a helper, talks to it over two pipes, and waits
// until it has ended. When ctx is done the pipe to it is closed, which the supervisor
// takes as the order to end; if it does not it is killed, as others are at once. An error of talk counts only
// if the helper did not fail itself.
func startHelper[T any](ctx context.Context, what stage, stdout, stderr io.Writer, talk func(in io.Reader, to io.WriteCloser) (T, error)) (T, error) {
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
	cmd.Args = []string{"kubesync", string(what)}
	cmd.Env = []string{} // the helper must not know what the daemon knows
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{helperIn, helperOut}
	// A session has a terminal only if it opens one: nothing that runs here gets at the
	// user's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = to.Close
	if what != superviseStage {
		cmd.Cancel = func() error { return cmd.Process.Kill() }
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		return result, fmt.Errorf("start the helper process: %w", err)
	}
	_ = helperIn.Close()
	_ = helperOut.Close()
	result, talkErr := talk(in, to)
	_ = in.Close() // who still has something to say does not wait until it is heard
	err = cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the helper is done; another writer still holds its output
	}
	if err != nil {
		return result, fmt.Errorf("helper process: %w", err)
	}
	return result, talkErr
}
