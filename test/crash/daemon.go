package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/kubesync/kubesync/test/lab/daemon"
)

// watched is a daemon and what its log says of the repos.
type watched struct {
	*daemon.Daemon
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

// waits reports whether the sync left something to prune: objects of other owners that look
// like the set's own are reported for ever.
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
	spec, err := daemon.Spec(s.program, s.dir, daemon.Env{
		"KUBECONFIG": s.kubeconfig(), "CONFIG": s.path("repos.yaml"), "INTERVAL": "1h", "PRUNE_LIMIT": "5",
		"LOG_LEVEL": "debug", "LISTEN": "off",
	})
	if err != nil {
		return err
	}
	started, err := daemon.Start(spec)
	if err != nil {
		return err
	}
	s.daemon, s.killed = &watched{Daemon: started, last: map[string]logLine{}}, false
	return nil
}

// stopDaemon stops it as an orchestrator does. One that is killed meanwhile has
// stopped as well.
func (s *site) stopDaemon(ctx context.Context) error {
	err := s.daemon.Stop(ctx)
	if s.killed && s.daemon.Ended() {
		return s.mourn(ctx)
	}
	return err
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
func (d *watched) forget() error {
	err := d.follow()
	d.last, d.trouble = map[string]logLine{}, ""
	return err
}

// synced reports whether the last that the daemon said of every repo is that it is in
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
	return message == "synced" || message == "sync partial" || message == "sync failed" || message == "suspended" || message == "interrupted"
}

// follow reads what was logged since the last time.
func (d *watched) follow() error {
	return d.Lines(func(text []byte) {
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
