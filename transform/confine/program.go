package confine

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/kubesync/kubesync/internal/limits"
)

// Program is what Run starts.
type Program struct {
	Path string   // absolute
	Args []string // the first one is the program's name
	Env  []string
	// Reach confines the program; nil means that it is not confined.
	Reach *Reach
}

// Run runs a program in INDIR, under the supervisor, until it and all its descendants
// have ended; when ctx is done, or they use more than they may, they are killed. The
// error says how it ended, and its last lines; it wraps the cause of ctx if that was why.
func (w *Workspace) Run(ctx context.Context, program Program, most limits.Limits, out *Output) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out.room, out.full = most.Of(limits.CommandOutput), func() {
		stop(most.Exceeded(limits.CommandOutput, "its output", 0))
	}
	todo := job{Program: program, Dir: w.Path(InDir), Most: allowanceIn(w.dir, most)}
	stdout, stderr := out.writer("stdout"), out.writer("stderr")
	end, err := startHelper(ctx, superviseHelper, stdout, stderr, func(in io.Reader, to io.WriteCloser) (ending, error) {
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
		return fmt.Errorf("killed with everything it had started: %w%s", context.Cause(ctx), out.Quote())
	case end.Excess != nil:
		return fmt.Errorf("killed with everything it had started: %w%s", end.Excess.error(most), out.Quote())
	case err != nil:
		return fmt.Errorf("supervise it: %w%s", err, out.Quote())
	}
	if text := end.text(todo, most); text != "" {
		return errors.New(text + out.Quote())
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
