package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a running server whose output goes to a file.
type process struct {
	name string
	pid  int
	log  string
	done chan struct{} // closed when it has exited
	err  error         // of its exit; read after done
}

// startProcess runs program in the background. Unless detached it dies with
// this process, even if that is killed.
func startProcess(program, log string, detached bool, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), log: log, done: make(chan struct{})}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", p.name, err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(log), "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	go p.run(cmd, output, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return p, nil
}

// run starts cmd and waits for it on one locked thread: the kernel sends the
// parent-death signal when the thread that started the child ends, not the
// process.
func (p *process) run(cmd *exec.Cmd, output *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = output.Close() }()
	err := cmd.Start()
	if err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	p.err = cmd.Wait()
	close(p.done)
}

// kill ends the process at once and returns when it is gone. Killing what is
// gone does nothing.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		<-p.done
	}
}

// signal sends a signal to the process.
func (p *process) signal(s syscall.Signal) error {
	if err := syscall.Kill(p.pid, s); err != nil {
		return fmt.Errorf("signal %v to %s: %w", s, p.name, err)
	}
	return nil
}

// exited describes the end of a process that should be running.
func (p *process) exited() error {
	return fmt.Errorf("%s ended: %w\n%s", p.name, p.err, lastLines(p.log, 20))
}

// lastLines returns the end of a file for an error message.
func lastLines(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// waitUntil polls ready until it returns nil. It gives up when ctx ends or p
// does.
func (p *process) waitUntil(done <-chan struct{}, ready func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exited()
		case <-done:
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, err, lastLines(p.log, 20))
		case <-tick.C:
		}
	}
}
