package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/process"
)

// shell starts a shell script whose output is in the returned file.
func shell(t *testing.T, script string) (*process.Process, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	p, err := process.Start(process.Spec{Program: "/bin/sh", Args: []string{"-c", script}, Env: []string{"ONLY=this"}, Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, out
}

// said waits until the file holds text.
func said(p *process.Process, path, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return p.WaitUntil(ctx, func(context.Context) error {
		content, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(content), text) {
			err = errors.New("it has not said " + text)
		}
		return err
	})
}

func TestExitStatusAndOutput(t *testing.T) {
	t.Parallel()
	p, out := shell(t, `echo "got $ONLY"; echo trouble >&2; exit 7`)
	<-p.Done()
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.ExitCode() != 7 {
		t.Errorf("ended with %v", p.Err())
	}
	if err := p.Exited(); !strings.Contains(err.Error(), "trouble") {
		t.Errorf("the error lacks the end of the output: %v", err)
	}
	if content, err := os.ReadFile(out); err != nil || string(content) != "got this\ntrouble\n" {
		t.Errorf("output %q, %v", content, err)
	}
	if err := p.Signal(syscall.SIGTERM); err == nil {
		t.Error("a signal to what has ended succeeds")
	}
}

func TestKillEndsTheGroup(t *testing.T) {
	t.Parallel()
	p, out := shell(t, `sleep 1000 & echo child $!; wait`)
	if err := said(p, out, "child "); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Kill() // does nothing
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	child := strings.TrimSpace(strings.TrimPrefix(string(content), "child "))
	deadline := time.Now().Add(time.Minute)
	for {
		command, err := os.ReadFile("/proc/" + child + "/cmdline")
		if err != nil || len(command) == 0 { // gone, or waiting to be reaped
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the child %s lives", child)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWaitUntilNoticesTheEnd(t *testing.T) {
	t.Parallel()
	p, out := shell(t, `echo cannot start; exit 1`)
	if err := said(p, out, "ready"); err == nil || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("got %v", err)
	}
}

func TestNoSuchProgram(t *testing.T) {
	t.Parallel()
	spec := process.Spec{Program: "/no/such/program", Stdout: filepath.Join(t.TempDir(), "out")}
	if _, err := process.Start(spec); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
