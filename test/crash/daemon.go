package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/test/lines"
	"github.com/kubesync/kubesync/test/process"
)

// daemon is a kubesync that runs.
type daemon struct {
	*process.Process
	log   *lines.Follower
	spoke bool // it has said something: it listens to signals by then
	last  map[string]logLine
	// trouble is what it says is wrong besides the syncs, "" for nothing.
	trouble string
}

// logLine is what counts of a line of the log.
type logLine struct {
	Level    string
	Message  string
	Repo     string
	Revision string
	Blocked  int      // objects that left git and are still there
	Objects  []string // what there is to say of which
}

// waits tells whether the sync left something to prune: strangers that look like the set's
// own are reported for ever.
func (l logLine) waits() bool {
	copies := 0
	for _, object := range l.Objects {
		if strings.Contains(object, "copied or restored") {
			copies++
		}
	}
	return l.Blocked > copies
}

// startDaemon starts kubesync on the site. Only what happens has it look at anything
// again: there is no interval to wait for.
func (s *site) startDaemon() error {
	s.tap.newDaemon()
	spec := process.Spec{
		Program: s.program, Dir: s.dir, Stdout: s.path("stdout"), Stderr: s.path("log"),
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"),
			"KUBECONFIG=" + s.kubeconfig(), "CONFIG=" + s.path("repos.yaml"), "INTERVAL=1h", "PRUNE_LIMIT=5",
			"LOG_FORMAT=json", "LOG_LEVEL=debug", "LISTEN=off", "PROBE_LISTEN=off",
		},
	}
	var before int64 // bytes of the log, which goes on
	if info, err := os.Stat(spec.Stderr); err == nil {
		before = info.Size()
	}
	d := &daemon{log: lines.Follow(spec.Stderr, before), last: map[string]logLine{}}
	var err error
	d.Process, err = process.Start(spec)
	if err != nil {
		return err
	}
	s.daemon, s.killed = d, false
	return nil
}

// stopDaemon stops it as an orchestrator does. One that is killed meanwhile has
// stopped as well.
func (s *site) stopDaemon(ctx context.Context) error {
	if err := s.daemon.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(20 * time.Second):
		return fmt.Errorf("kubesync does not stop:\n%s", s.daemon.Tail())
	case <-s.daemon.Done():
	}
	if s.killed {
		return s.mourn(ctx)
	}
	if s.daemon.Err() != nil {
		return s.daemon.Exited()
	}
	return nil
}

// mourn sees to what a killed daemon leaves.
func (s *site) mourn(ctx context.Context) error {
	if s.waitOut {
		return nil
	}
	return s.releaseLease(ctx)
}

// kill ends the daemon as the kernel does when memory is short.
func (s *site) kill() {
	s.killed = true
	s.daemon.Kill()
}

// forget has the daemon's word count only from now on.
func (d *daemon) forget() error {
	err := d.follow()
	d.last, d.trouble = map[string]logLine{}, ""
	return err
}

// synced tells whether the last that the daemon said of every repo is that it is in
// sync with its newest commit.
func (s *site) synced() (bool, error) {
	if err := s.daemon.follow(); err != nil {
		return false, err
	}
	for name, head := range s.heads {
		line := s.daemon.last[name]
		if line.Message != "synced" || line.waits() || line.Revision == "" || !strings.HasPrefix(head, line.Revision) {
			return false, nil
		}
	}
	return true, nil
}

// verdicts are the messages that tell how a sync of a repo ended.
func verdict(message string) bool {
	return message == "synced" || message == "synced in part" || message == "not synced" || message == "suspended" || message == "interrupted"
}

// follow reads what was logged since the last time.
func (d *daemon) follow() error {
	return d.log.Next(func(text []byte) {
		d.spoke = true
		var line logLine
		switch err := json.Unmarshal(text, &line); {
		case err != nil:
		case line.Repo != "" && verdict(line.Message):
			d.last[line.Repo] = line
		case line.Message == "housekeeping failed" || strings.HasPrefix(line.Message, "changes in the cluster are not seen"):
			d.trouble = line.Message
		}
	})
}
