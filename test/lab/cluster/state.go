package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stateFile, in a cluster's directory, names the processes it consists of.
const stateFile = "processes.json"

// Server is one process of a cluster as its directory remembers it.
type Server struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Running bool   `json:"-"`
}

// save records the processes, after each start, so that Down finds them even if
// this process is killed next.
func (c *Cluster) save() error {
	var servers []Server
	for _, p := range c.processes() {
		servers = append(servers, Server{Name: p.Name, PID: p.PID})
	}
	content, err := json.MarshalIndent(servers, "", "  ")
	if err != nil {
		return fmt.Errorf("processes of the cluster: %w", err)
	}
	if err := os.WriteFile(c.path(stateFile), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("processes of the cluster: %w", err)
	}
	return nil
}

// Status returns the servers of the cluster in dir, and an error that is
// os.ErrNotExist if there is no cluster.
func Status(dir string) ([]Server, error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("no control plane in %s: %w", dir, err)
	}
	var servers []Server
	if err := json.Unmarshal(content, &servers); err != nil {
		return nil, fmt.Errorf("processes of the cluster in %s: %w", dir, err)
	}
	for i, s := range servers {
		servers[i].Running = runs(s, dir)
	}
	return servers, nil
}

// runs reports whether the server's process is still the one that was started:
// a process id may have gone to another writer since.
func runs(s Server, dir string) bool {
	command, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "cmdline"))
	if err != nil {
		return false
	}
	words := strings.Split(string(command), "\x00")
	return filepath.Base(words[0]) == s.Name && strings.Contains(string(command), "="+dir+string(filepath.Separator))
}

// Down kills the servers of the Detached cluster in dir and removes dir. Without
// a cluster there it does nothing.
func Down(dir string) error {
	servers, err := Status(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := end(s, dir); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing a cluster's directory: %w", err)
	}
	return nil
}

// end kills one server and waits until it is gone.
func end(s Server, dir string) error {
	deadline := time.Now().Add(10 * time.Second)
	for runs(s, dir) {
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending %s (process %d): %w", s.Name, s.PID, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (process %d) does not end", s.Name, s.PID)
		}
		time.Sleep(10 * time.Millisecond) // it is not our child, so there is nothing to wait on
	}
	return nil
}
