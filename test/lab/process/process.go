// Package process runs the servers and daemons of tests. None of them outlives
// its test: the kernel kills them when the test's process dies, however that
// happens.
package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Program string
	Args    []string
	Env     []string // complete; nothing is inherited
	Dir     string   // working directory; "" is the caller's
	Stdout  string   // path of a file that is appended to
	Stderr  string   // "" is Stdout
	// Detached processes live on when this one ends.
	Detached bool
}

// Process is a process that was started.
type Process struct {
	Name string // of the program, without its directory
	PID  int
	log  string
	done chan struct{} // closed when it has exited
	err  error         // of its exit; read after done
}

// Start runs a program in the background, as the leader of a process group.
func Start(spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Program, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	if spec.Stderr == "" {
		spec.Stderr = spec.Stdout
	}
	p := &Process{Name: filepath.Base(spec.Program), log: spec.Stderr, done: make(chan struct{})}
	stdout, err := appendTo(spec.Stdout)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stdout.Close() }() // the child has its own
	stderr, err := appendTo(spec.Stderr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stderr.Close() }()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !spec.Detached {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.Name, err)
	}
	return p, nil
}

func appendTo(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("output of a process: %w", err)
	}
	return file, nil
}

// run starts cmd and waits for it on one locked thread: the kernel sends the
// parent-death signal when the thread that started the child ends, not the
// process.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err != nil {
		started <- err
		return
	}
	p.PID = cmd.Process.Pid
	started <- nil
	p.err = cmd.Wait()
	close(p.done)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, once Done is closed: nil for exit status
// 0, else an *exec.ExitError.
func (p *Process) Err() error { return p.err }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(s syscall.Signal) error {
	if p.Ended() {
		return p.Exited()
	}
	if err := syscall.Kill(p.PID, s); err != nil {
		return fmt.Errorf("signal %v to %s: %w", s, p.Name, err)
	}
	return nil
}

// Freeze stops the process until Thaw. A signal stops one thread after the other: when it
// returns, all have stopped.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(freezeWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if p.frozen() {
			return nil
		}
	}
	return fmt.Errorf("%s still runs %s after SIGSTOP", p.Name, freezeWait)
}

// freezeWait is how long all threads of a process may take to stop.
const freezeWait = 10 * time.Second

// Thaw undoes Freeze.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// frozen reports whether all threads have stopped, by proc(5)'s stat: state T.
func (p *Process) frozen() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		_, state, found := strings.Cut(string(stat), ") ")
		if err != nil || !found || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Kill ends the process and its group at once and returns when it is gone.
// Killing what has ended does nothing.
func (p *Process) Kill() {
	if !p.Ended() {
		_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		<-p.done
	}
}

// Exited describes the end of a process that should be running.
func (p *Process) Exited() error {
	if p.err == nil {
		return fmt.Errorf("%s ended with exit status 0\n%s", p.Name, p.Tail())
	}
	return fmt.Errorf("%s ended: %w\n%s", p.Name, p.err, p.Tail())
}

// Tail returns the last lines of what the process wrote to stderr.
func (p *Process) Tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// WaitUntil polls ready until it returns nil. It gives up when ctx ends or the
// process does.
func (p *Process) WaitUntil(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.Exited()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.Name, err, p.Tail())
		case <-tick.C:
		}
	}
}
