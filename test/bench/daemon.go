package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/test/lines"
	"github.com/kubesync/kubesync/test/process"
)

// setup is some of the configuration of a kubesync, as variables.
type setup map[string]string

// program returns how kubesync is run, later variables in place of earlier ones: with nothing of the bench's environment,
// its output in a directory of its own.
func (l *lab) program(variables ...setup) (process.Spec, error) {
	dir, err := l.makeDir("kubesync")
	if err != nil {
		return process.Spec{}, err
	}
	merged := setup{
		"PATH": os.Getenv("PATH"), "HOME": dir, "TMPDIR": dir,
		"LOG_FORMAT": "json", "RECURSIVE": "on",
		// A socket, since the default port may be taken; what is served counts.
		"LISTEN": "unix:" + filepath.Join(dir, "listen.sock"), "PROBE_LISTEN": "off",
	}
	for _, more := range variables {
		for name, value := range more {
			merged[name] = value
		}
	}
	spec := process.Spec{Program: l.kubesync, Dir: dir, Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "log")}
	for name, value := range merged {
		spec.Env = append(spec.Env, name+"="+value)
	}
	return spec, nil
}

// on is the setup for a cluster and a repo.
func (s *site) on(url string) setup {
	return setup{"KUBECONFIG": s.kubesync.Kubeconfig, "REPO": url}
}

// once runs kubesync to its end.
func (l *lab) once(ctx context.Context, variables ...setup) (ended, error) {
	spec, err := l.program(append(variables, setup{"ONCE": "on"})...)
	if err != nil {
		return ended{}, err
	}
	return toEnd(ctx, spec)
}

// daemon is a kubesync that runs.
type daemon struct {
	*process.Process
	started time.Time
	log     *lines.Follower
	lines   []logLine
}

// logLine is what counts of a line of the log.
type logLine struct {
	Message  string
	Repo     string
	Revision string
}

// start starts a daemon, which the caller has to Kill or stop.
func (l *lab) start(variables ...setup) (*daemon, error) {
	spec, err := l.program(variables...)
	if err != nil {
		return nil, err
	}
	d := &daemon{started: time.Now(), log: lines.Follow(spec.Stderr, 0)}
	d.Process, err = process.Start(spec)
	return d, err
}

// stop stops the daemon as an orchestrator does.
func (d *daemon) stop(ctx context.Context) error {
	if err := d.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(20 * time.Second):
		return fmt.Errorf("kubesync does not stop:\n%s", d.Tail())
	case <-d.Done():
		if d.Err() != nil {
			return d.Exited()
		}
		return nil
	}
}

// syncPatience is how long a sync may take before the bench gives up on it.
const syncPatience = 15 * time.Minute

// synced waits until so many repos are in sync, with the revision if one is given.
func (d *daemon) synced(ctx context.Context, repos int, revision string) (time.Time, error) {
	return d.told(ctx, "synced", repos, revision)
}

// told waits until the daemon has said something of so many repos, of the revision
// if one is given. It returns when it saw that, to some milliseconds.
func (d *daemon) told(ctx context.Context, message string, repos int, revision string) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, syncPatience, fmt.Errorf("not %s after %s", message, syncPatience))
	defer cancel()
	for {
		if err := d.follow(); err != nil {
			return time.Time{}, err
		}
		said := map[string]bool{}
		for _, line := range d.lines {
			if line.Message == message && (revision == "" || strings.HasPrefix(revision, line.Revision)) {
				said[line.Repo] = true
			}
		}
		now := time.Now()
		if len(said) >= repos {
			return now, nil
		}
		select {
		case <-d.Done():
			return time.Time{}, d.Exited()
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%w; the end of the log of kubesync:\n%s", context.Cause(ctx), d.Tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// follow reads what was logged since the last time.
func (d *daemon) follow() error {
	return d.log.Next(func(text []byte) {
		var line logLine
		if json.Unmarshal(text, &line) == nil {
			d.lines = append(d.lines, line)
		}
	})
}
