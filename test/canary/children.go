package canary

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// interval is how often processes are looked at. What lives shorter may be missed: a
// suite of many runs sees each kind of process sooner or later.
const interval = 20 * time.Millisecond

// Children remembers how the processes that a process starts, and those that they
// start, were called: their arguments and environments, which others on the machine
// may read.
type Children struct {
	root int
	once sync.Once
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex // guards what follows
	seen map[string][]byte
}

// Watch looks at the process and its descendants until Stop.
func Watch(pid int) *Children {
	c := &Children{root: pid, stop: make(chan struct{}), done: make(chan struct{}), seen: map[string][]byte{}}
	go c.run()
	return c
}

// Stop ends the watch; so does the end of the process.
func (c *Children) Stop() {
	c.once.Do(func() { close(c.stop) })
	<-c.done
}

// Seen returns what was seen, by what it is: "arguments of kubesync" and so on. The
// process's own environment is not among it: that is where it was given its secrets.
func (c *Children) Seen() map[string][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

func (c *Children) run() {
	defer close(c.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for c.look() {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
	}
}

// look notes what there is now. It returns whether the process is still there.
func (c *Children) look() bool {
	own := command(c.root)
	if len(own) == 0 {
		return false
	}
	c.note("arguments of kubesync", own)
	for _, pid := range descendants(c.root) {
		arguments := command(pid)
		if len(arguments) == 0 || bytes.Equal(arguments, own) {
			continue // ended, or not yet another program than the one it was forked from
		}
		name, _, _ := bytes.Cut(arguments, []byte{0})
		c.note(fmt.Sprintf("arguments of %s", filepath.Base(string(name))), arguments)
		if environment, err := os.ReadFile(process(pid, "environ")); err == nil && bytes.Equal(command(pid), arguments) {
			c.note(fmt.Sprintf("environment of %s", filepath.Base(string(name))), environment)
		}
	}
	return true
}

// note keeps a text once.
func (c *Children) note(what string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Contains(c.seen[what], text) {
		c.seen[what] = append(append(c.seen[what], text...), '\n')
	}
}

// command returns a process's arguments, nothing if it has ended.
func command(pid int) []byte {
	arguments, err := os.ReadFile(process(pid, "cmdline"))
	if err != nil {
		return nil
	}
	return arguments
}

// descendants returns the processes that a process has started, and theirs.
func descendants(pid int) []int {
	var all []int
	threads, err := filepath.Glob(process(pid, "task/*/children"))
	if err != nil {
		return nil // the pattern is right
	}
	for _, thread := range threads {
		children, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		for _, field := range bytes.Fields(children) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// process returns the path of a process's file in /proc.
func process(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
