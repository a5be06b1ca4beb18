package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubesync/kubesync/internal/limits"
)

const (
	// lookEvery is how often the processes are looked at: what the machine can do
	// harm with in that time is what a limit can be overrun by.
	lookEvery = 50 * time.Millisecond
	// diskPause is the shortest time between two looks at the files, and diskShare how
	// many times as long as the look itself it lasts at least.
	diskPause = 250 * time.Millisecond
	diskShare = 10
	// leastFree is what has to stay free of a file system, unless a twentieth of it is
	// less: other repos need it too.
	leastFree = 64 << 20
)

// allowance is what a program and all that it starts may use together.
//
// RLIMIT_NPROC would bound the processes of the user, of all pods of the node that run
// as the same user, and so is nothing to count on; RLIMIT_CPU says what TIMEOUT says.
type allowance struct {
	Memory    int64  // bytes
	Processes int64  // and threads
	Dir       string // what is in it counts:
	Disk      int64  // bytes
	Files     int64  // and directories
	Depth     int64  // of directories
	File      int64  // bytes, of one file
}

// allowanceIn returns what a program may use that works in a directory.
func allowanceIn(dir string, most limits.Limits) allowance {
	return allowance{
		Memory:    most.Of(limits.CommandMemory),
		Processes: most.Of(limits.CommandProcesses),
		Dir:       dir,
		Disk:      most.Of(limits.CommandDisk),
		Files:     most.Of(limits.CommandFiles),
		Depth:     most.Of(limits.CommandDepth),
		File:      most.Of(limits.CommandFile),
	}
}

// watch looks at what a program uses.
type watch struct {
	most allowance
	disk chan *excess // what was found on the disk, once
	end  chan struct{}
	done chan struct{}
}

// newWatch begins to look at the disk, which can take long, on its own.
func newWatch(most allowance) *watch {
	w := &watch{most: most, disk: make(chan *excess, 1), end: make(chan struct{}), done: make(chan struct{})}
	go w.files()
	return w
}

// stop ends watching when no process is left, with a last look at what they left.
func (w *watch) stop() *excess {
	close(w.end)
	<-w.done
	select {
	case found := <-w.disk:
		return found
	default:
		return w.usage()
	}
}

// files looks at the disk until it finds too much.
func (w *watch) files() {
	defer close(w.done)
	for {
		begun := time.Now()
		found := w.full()
		if found == nil {
			found = w.usage()
		}
		if found != nil {
			w.disk <- found
			return
		}
		select {
		case <-time.After(max(diskPause, diskShare*time.Since(begun))):
		case <-w.end:
			return
		}
	}
}

// full reports whether the file system is about to be full, whoever fills it: also files
// that have no name any more do.
func (w *watch) full() *excess {
	var is unix.Statfs_t
	if unix.Statfs(w.most.Dir, &is) != nil || is.Blocks == 0 {
		return nil
	}
	total, free := int64(is.Blocks)*is.Bsize, int64(is.Bavail)*is.Bsize
	if free >= min(leastFree, total/20) {
		return nil
	}
	return &excess{Why: fmt.Sprintf("the file system that TMPDIR is on is full: only %d of %d MiB are free", free>>20, total>>20)}
}

// usage adds up what is in the directory. What cannot be read does not count.
func (w *watch) usage() *excess {
	u := &usage{most: w.most}
	u.add(w.most.Dir, 0)
	return u.found
}

// usage is what was counted so far.
type usage struct {
	most         allowance
	bytes, files int64
	found        *excess
}

// add counts what is in a directory. Files that are there under several names count
// several times.
func (u *usage) add(dir string, depth int64) {
	if depth > u.most.Depth {
		u.found = &excess{Limit: limits.CommandDepth}
		return
	}
	// CMD may put something else in a directory's place meanwhile: a pipe would not open
	// until a user writes to it, and a link leads elsewhere.
	open, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENAMETOOLONG) {
		u.found = &excess{Limit: limits.CommandDepth}
	}
	if err != nil {
		return
	}
	defer open.Close()
	for u.found == nil {
		entries, err := open.ReadDir(1000)
		for _, entry := range entries {
			u.entry(dir, entry, depth)
		}
		if len(entries) == 0 || err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// entry counts one file, or a directory and what is in it.
func (u *usage) entry(dir string, entry fs.DirEntry, depth int64) {
	if u.found != nil {
		return
	}
	if u.files++; u.files > u.most.Files {
		u.found = &excess{Limit: limits.CommandFiles}
		return
	}
	info, err := entry.Info()
	if err != nil {
		return // it is gone
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok {
		// A file with holes costs time to read, if no room.
		u.bytes += max(is.Blocks*512, is.Size)
	}
	if u.bytes > u.most.Disk {
		u.found = &excess{Limit: limits.CommandDisk}
		return
	}
	if entry.IsDir() {
		u.add(filepath.Join(dir, entry.Name()), depth+1)
	}
}

// processes adds up what the processes below this one use.
func (w *watch) processes() *excess {
	all, tasks := descend(os.Getpid(), w.most.Processes)
	if tasks > w.most.Processes {
		return &excess{Limit: limits.CommandProcesses}
	}
	bytes := int64(0)
	for _, p := range all {
		bytes += p.resident
	}
	if bytes <= w.most.Memory {
		return nil
	}
	// What processes share was counted for each of them. This looks closer, at a price.
	bytes = 0
	for _, p := range all {
		bytes += p.proportional()
	}
	if bytes <= w.most.Memory {
		return nil
	}
	return &excess{Limit: limits.CommandMemory, Met: bytes}
}

// process is one that was found in /proc.
type process struct {
	pid      int
	threads  int64
	resident int64 // bytes of memory, what it shares with its kin included
}

// descend returns the processes below one, and the number of their threads. It stops
// when there are too many.
func descend(pid int, most int64) (all []process, tasks int64) {
	for next := childrenOf(pid); len(next) > 0 && tasks <= most; {
		p := look(next[0])
		all, tasks = append(all, p), tasks+p.threads
		next = append(next[1:], childrenOf(p.pid)...)
	}
	return all, tasks
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) []int {
	var children []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // it may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// look reads what a process uses; nothing if it has ended.
func look(pid int) process {
	fields := readFields(fmt.Sprintf("/proc/%d/status", pid))
	return process{pid, fields["Threads"], (fields["RssAnon"] + fields["RssShmem"]) << 10}
}

// proportional returns the memory of a process, in bytes, with its part of what it
// shares. Of a process that does not let itself be looked at, or where the kernel does
// not say, it is all.
func (p process) proportional() int64 {
	fields := readFields(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	if anonymous, known := fields["Pss_Anon"]; known {
		return (anonymous + fields["Pss_Shmem"]) << 10
	}
	return p.resident
}

// readFields reads a file of "Name: number" or "Name: number kB" lines.
func readFields(name string) map[string]int64 {
	text, _ := os.ReadFile(name)
	fields := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		field, rest, _ := strings.Cut(line, ":")
		if number, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
			fields[field] = number
		}
	}
	return fields
}
