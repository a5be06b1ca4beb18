package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/process"
)

// spec returns how kubesync is run in a directory of its own.
func (l *lab) spec(variables ...daemon.Env) (process.Spec, error) {
	dir, err := l.MakeDir("kubesync")
	if err != nil {
		return process.Spec{}, err
	}
	return daemon.Spec(l.Program, dir, append([]daemon.Env{{"RECURSIVE": "on"}}, variables...)...)
}

// on is the configuration for a cluster and a repo.
func (s *site) on(url string) daemon.Env {
	return daemon.Env{"KUBECONFIG": s.kubesync.Kubeconfig, "REPO": url}
}

// once runs kubesync to its end.
func (l *lab) once(ctx context.Context, variables ...daemon.Env) (ended, error) {
	spec, err := l.spec(append(variables, daemon.Env{"ONCE": "on"})...)
	if err != nil {
		return ended{}, err
	}
	return toEnd(ctx, spec)
}

// running is a daemon and what it has logged.
type running struct {
	*daemon.Daemon
	started time.Time
	lines   []logLine
}

// logLine is what counts of a line of the log.
type logLine struct {
	Message  string
	Repo     string
	Revision string
}

// start starts a daemon, which the caller has to Kill or Stop.
func (l *lab) start(variables ...daemon.Env) (*running, error) {
	spec, err := l.spec(variables...)
	if err != nil {
		return nil, err
	}
	d := &running{started: time.Now()}
	d.Daemon, err = daemon.Start(spec)
	return d, err
}

// syncPatience is how long a sync may take before the bench gives up on it.
const syncPatience = 15 * time.Minute

// synced waits until so many repos are in sync, with the revision if one is given.
func (d *running) synced(ctx context.Context, repos int, revision string) (time.Time, error) {
	return d.logged(ctx, "synced", repos, revision)
}

// logged waits until the daemon has logged something of so many repos, of the revision
// if one is given. It returns when it saw that, to some milliseconds.
func (d *running) logged(ctx context.Context, message string, repos int, revision string) (time.Time, error) {
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
func (d *running) follow() error {
	return d.Lines(func(text []byte) {
		var line logLine
		if json.Unmarshal(text, &line) == nil {
			d.lines = append(d.lines, line)
		}
	})
}
