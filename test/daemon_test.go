package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/canary"
	labdaemon "github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/process"
)

const (
	// runTimeout bounds a run in the foreground.
	runTimeout = 3 * time.Minute
	// program is what is tested, found on the script's PATH.
	program = "kubesync"
)

// daemon is kubesync in the background.
type daemon struct {
	*labdaemon.Daemon
	name   string
	log    string // path of what it wrote to stderr
	stdout string // path
	seen   int64  // bytes of log at the last mark
	before int64  // bytes of log when the script last did something
	over   bool   // its end is accounted for
}

// configure sets and unsets variables of kubesync's environment.
func (s *scenario) configure(args []string) error {
	for _, arg := range args {
		name, value, set := strings.Cut(arg, "=")
		if !set {
			delete(s.config, name)
			continue
		}
		s.config[name] = value
		s.noticeSecret(name, value)
	}
	return nil
}

// expand replaces ${name} in files.
func (s *scenario) expand(args []string) error {
	variable := regexp.MustCompile(`\$\{\w+\}`)
	for _, name := range args {
		path := s.ts.MkAbs(name)
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("expand: %w", err)
		}
		content = variable.ReplaceAllFunc(content, func(found []byte) []byte {
			return []byte(s.ts.Getenv(string(found[2 : len(found)-1])))
		})
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("expand: %w", err)
		}
	}
	return nil
}

// environ is what kubesync is started with: the variables of config and those
// given for this start.
func (s *scenario) environ(more []string) []string {
	env := maps.Clone(s.config)
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "KUBECONFIG"} {
		if _, set := env[name]; !set && s.ts.Getenv(name) != "" {
			env[name] = s.ts.Getenv(name)
		}
	}
	for _, variable := range more {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
		s.noticeSecret(name, value)
	}
	var list []string
	if err := s.noticeFiles(env); err != nil {
		s.t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func (s *scenario) kubesync(args []string) error {
	if len(args) == 0 {
		return errors.New("want kubesync start, stop, once, dryrun, run and so on")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "start":
		return s.startDaemon(rest)
	case "once":
		return s.runOnce(verb, rest, "ONCE=1")
	case "dryrun":
		return s.runOnce(verb, rest, "ONCE=1", "DRYRUN=1")
	case "run":
		return s.runOnce(verb, rest)
	case "wait":
		return s.waitForDaemon(rest)
	default:
		return s.signalDaemon(verb, rest)
	}
}

func (s *scenario) startDaemon(args []string) error {
	var variables []string
	name := "daemon"
	for i, arg := range args {
		switch {
		case strings.Contains(arg, "="):
			variables = append(variables, arg)
		case i == 0:
			name = arg
		default:
			return fmt.Errorf("want NAME=VALUE: %q", arg)
		}
	}
	if d := s.daemons[name]; d != nil && !d.over {
		return fmt.Errorf("the daemon %q runs already", name)
	}
	path, err := s.programPath()
	if err != nil {
		return err
	}
	d := &daemon{name: name, log: filepath.Join(s.output(), name+".log"), stdout: filepath.Join(s.output(), name+".stdout")}
	if before := s.daemons[name]; before != nil {
		d.seen, d.before = before.seen, before.before // the log goes on
	}
	d.Daemon, err = labdaemon.Start(process.Spec{
		Program: path, Env: s.environ(variables), Dir: s.work, Stdout: d.stdout, Stderr: d.log,
	})
	if err != nil {
		return err
	}
	s.daemons[name] = d
	s.children = append(s.children, canary.Watch(d.PID))
	return nil
}

// programPath finds the program in the script's PATH.
func (s *scenario) programPath() (string, error) {
	dir, _, _ := strings.Cut(s.ts.Getenv("PATH"), string(os.PathListSeparator))
	path := filepath.Join(dir, program)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the program that is tested: %w", err)
	}
	return path, nil
}

// theDaemon returns a daemon that was started.
func (s *scenario) theDaemon(args []string) (*daemon, error) {
	name, err := nameOr(args, "daemon")
	if err != nil {
		return nil, err
	}
	if d := s.daemons[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("no daemon %q was started", name)
}

func (s *scenario) signalDaemon(verb string, args []string) error {
	d, err := s.theDaemon(args)
	if err != nil {
		return err
	}
	switch verb {
	case "stop":
		return d.stop(s.t.Context())
	case "kill":
		d.over = true
		if err := d.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-d.Done()
		return nil
	case "term":
		return d.Signal(syscall.SIGTERM)
	case "hup":
		return d.Signal(syscall.SIGHUP)
	case "freeze":
		return d.Signal(syscall.SIGSTOP)
	case "thaw":
		return d.Signal(syscall.SIGCONT)
	}
	return fmt.Errorf("kubesync has no verb %q here", verb)
}

func (s *scenario) waitForDaemon(args []string) error {
	status := 0
	args, err := flags("wait", args, func(f *flag.FlagSet) { f.IntVar(&status, "status", 0, "") })
	if err != nil {
		return err
	}
	d, err := s.theDaemon(args)
	if err != nil {
		return err
	}
	select {
	case <-d.Done():
	case <-time.After(runTimeout):
		return fmt.Errorf("%s did not end within %s", d.name, runTimeout)
	}
	d.over = true
	return expectStatus(d.Err(), status)
}

// stop asks a daemon to end and expects it to do so in time and cleanly.
func (d *daemon) stop(ctx context.Context) error {
	d.over = true
	return d.Stop(ctx)
}

// end stops a daemon at the end of a script and reports what is wrong with it.
func (d *daemon) end(t testing.TB) {
	switch {
	case d.over:
	case d.Ended():
		t.Errorf("the daemon %s ended by itself: %v", d.name, d.Err())
	case t.Failed():
		d.Kill()
	default:
		_ = d.Signal(syscall.SIGCONT)
		if err := d.stop(context.Background()); err != nil {
			t.Errorf("the daemon %s at the end of the script: %v", d.name, err)
		}
	}
	d.Kill() // what the script asked to end and did not wait for
	content, err := os.ReadFile(d.log)
	if err != nil {
		t.Error(err)
		return
	}
	if wrong := wrongWith(string(content)); wrong != "" {
		t.Errorf("the daemon %s: %s", d.name, wrong)
	}
	if t.Failed() {
		t.Logf("end of the log of %s:\n%s", d.name, tail(string(content), 80))
	}
}

// wrongWith returns what no output of kubesync may contain, if it does: reports
// of Go's runtime.
func wrongWith(output string) string {
	runtimeReport := regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: |goroutine \d+ \[)`)
	at := runtimeReport.FindStringIndex(output)
	if at == nil {
		return ""
	}
	return output[at[0]:min(len(output), at[0]+5000)]
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// runOnce runs kubesync in the foreground.
func (s *scenario) runOnce(verb string, args []string, variables ...string) error {
	status := 0
	args, err := flags(verb, args, func(f *flag.FlagSet) { f.IntVar(&status, "status", 0, "") })
	if err != nil {
		return err
	}
	if verb != "run" {
		variables, args = append(variables, args...), nil
	}
	path, err := s.programPath()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), runTimeout)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = s.work, s.environ(variables)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = labdaemon.StopTimeout
	if err := cmd.Start(); err != nil {
		return err
	}
	watch := canary.Watch(cmd.Process.Pid)
	s.children = append(s.children, watch)
	err = cmd.Wait()
	watch.Stop()
	s.print(verdict{printed: true, stdout: stdout.String(), stderr: stderr.String()})
	s.runs++
	for kind, text := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
		file := filepath.Join(s.output(), "run-"+strconv.Itoa(s.runs)+"."+kind)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fmt.Errorf("output of %s: %w", verb, err)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("kubesync did not end within %s", runTimeout)
	}
	if wrong := wrongWith(stderr.String()); wrong != "" {
		return errors.New(wrong)
	}
	return expectStatus(err, status)
}

// expectStatus checks how a process ended.
func expectStatus(end error, want int) error {
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(end, &exit) && exit.Exited():
		got = exit.ExitCode()
	case end != nil:
		return fmt.Errorf("it ended by %w", end)
	}
	if got != want {
		return fmt.Errorf("exit status %d, want %d", got, want)
	}
	return nil
}
