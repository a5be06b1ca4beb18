// Package daemon starts kubesync the way its users do and stops it the way an
// orchestrator does, for whatever tests or measures the program.
//
// Flow: Spec makes a directory for one daemon and says how to run it there, with
// nothing of the test's own environment; Start runs it; Lines reads what it logs;
// Stop ends it.
package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/test/lab/lines"
	"github.com/kubesync/kubesync/test/lab/process"
)

// StopTimeout is how long a daemon may take to end: the ten seconds that it promises,
// and some for a busy machine.
const StopTimeout = 15 * time.Second

// Env is some of the configuration of a kubesync, as variables of its environment.
type Env map[string]string

// Daemon is a kubesync that runs.
type Daemon struct {
	*process.Process
	Spec process.Spec // it was started with
	log  *lines.Follower
}

// Spec returns how a program is run with dir as its working directory, which is made if
// it is missing. Later variables replace earlier ones. Without any, kubesync logs JSON to
// Log(dir), serves on Socket(dir) and has its temporary files in Temp(dir).
func Spec(program, dir string, variables ...Env) (process.Spec, error) {
	if err := os.MkdirAll(Temp(dir), 0o755); err != nil {
		return process.Spec{}, fmt.Errorf("directory of a daemon: %w", err)
	}
	env := Env{
		"PATH": os.Getenv("PATH"), "HOME": dir, "TMPDIR": Temp(dir), "LOG_FORMAT": "json",
		// A socket, since a port may be taken.
		"LISTEN": "unix:" + Socket(dir), "PROBE_LISTEN": "off",
		// Else each end of a program with the race detector takes a second more.
		"GORACE": "atexit_sleep_ms=0",
	}
	for _, more := range variables {
		for name, value := range more {
			env[name] = value
		}
	}
	spec := process.Spec{Program: program, Dir: dir, Stdout: filepath.Join(dir, "stdout"), Stderr: Log(dir)}
	for name, value := range env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return spec, nil
}

// Log is the file that a daemon with this directory logs to. The next one appends to it.
func Log(dir string) string { return filepath.Join(dir, "log") }

// Socket is where a daemon with this directory serves.
func Socket(dir string) string { return filepath.Join(dir, "listen.sock") }

// Temp is the directory of its temporary files.
func Temp(dir string) string { return filepath.Join(dir, "tmp") }

// Start starts a daemon, which the caller has to Stop or Kill.
func Start(spec process.Spec) (*Daemon, error) {
	var before int64 // bytes of the log, which goes on
	if info, err := os.Stat(spec.Stderr); err == nil {
		before = info.Size()
	}
	started, err := process.Start(spec)
	if err != nil {
		return nil, err
	}
	return &Daemon{Process: started, Spec: spec, log: lines.Follow(spec.Stderr, before)}, nil
}

// Lines calls each for every line that the daemon has logged since the last call.
func (d *Daemon) Lines(each func(line []byte)) error { return d.log.Next(each) }

// Stop sends SIGTERM and waits. It is an error if the daemon does not end with exit
// status 0, or not within StopTimeout: then its goroutines are in its log.
func (d *Daemon) Stop(ctx context.Context) error {
	if err := d.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(StopTimeout):
		_ = d.Signal(syscall.SIGQUIT)
		select {
		case <-d.Done():
		case <-time.After(StopTimeout):
			d.Kill()
		}
		return fmt.Errorf("%s did not end within %s of SIGTERM\n%s", d.Name, StopTimeout, d.Tail())
	case <-d.Done():
		if d.Err() != nil {
			return d.Exited()
		}
		return nil
	}
}
