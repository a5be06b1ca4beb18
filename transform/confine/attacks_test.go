package confine_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kubesync/kubesync/transform/confine"
)

// attackVariable makes the test binary a hostile CMD: it names one of the attacks.
const attackVariable = "KUBESYNC_TEST_ATTACK"

// attackMain runs an attack, as CMD, and leaves in OUTDIR whether it worked.
func attackMain(name string) int {
	do, known := attacks()[name]
	result := "unknown"
	if known {
		result = "worked"
		if err := do(); err != nil {
			result = "failed: " + err.Error()
		}
	}
	// Where that is not possible any more the sync says why.
	_ = os.WriteFile(os.Getenv("OUTDIR")+"/out.yaml", []byte(result), 0o600)
	return 0
}

// daemonPID is the daemon that CMD runs for.
func daemonPID() int {
	pid, _ := strconv.Atoi(os.Getenv("DAEMON_PID"))
	return pid
}

// base is the directory with CMD's workspace and, beside it, what is not its business.
func base() string { return filepath.Dir(filepath.Dir(os.Getenv("OUTDIR"))) }

// attacks lists what a hostile CMD does. An attack returns nil if it came through.
func attacks() map[string]func() error {
	daemonFile := func(name string) func() error {
		return func() error {
			_, err := os.Open(fmt.Sprintf("/proc/%d/%s", daemonPID(), name))
			return err
		}
	}
	outside := func(do func(name string) error) func() error {
		return func() error { return do(filepath.Join(base(), "outside")) }
	}
	out, tmp := os.Getenv("OUTDIR"), os.Getenv("TMPDIR")
	return map[string]func() error{
		// Secrets.
		"read the daemon's environment": daemonFile("environ"),
		"read the daemon's memory":      daemonFile("mem"),
		"map the daemon's memory":       daemonFile("maps"),
		"list the daemon's open files":  daemonFile("fd"),
		"enter the daemon's root":       daemonFile("root/etc/passwd"),
		"read any environment":          readAnyEnvironment,
		"read the supervisor's memory":  func() error { return readMemory(os.Getppid()) },
		"read by process_vm_readv":      func() error { return readMemory(daemonPID()) },
		"trace the daemon":              func() error { return unix.PtraceAttach(daemonPID()) },
		"trace the supervisor":          func() error { return unix.PtraceSeize(os.Getppid()) },
		"take an open file":             takeOpenFile,
		"use an inherited file":         useInheritedFile,
		"read a file outside":           outside(func(name string) error { _, err := os.ReadFile(name); return err }),
		"link a file into OUTDIR":       outside(func(name string) error { return os.Link(name, filepath.Join(out, "stolen.yaml")) }),
		"move a file into OUTDIR":       outside(func(name string) error { return os.Rename(name, filepath.Join(out, "stolen.yaml")) }),
		"read by a user namespace":      readInNamespace,
		"read the key ring":             readKeyRing,

		// What lies outside.
		"write a file outside":        outside(func(name string) error { return os.WriteFile(name, []byte("x"), 0o600) }),
		"write through a link":        outside(writeThroughLink),
		"remove a file outside":       outside(os.Remove),
		"make a file outside":         func() error { return os.WriteFile(filepath.Join(base(), "new"), nil, 0o600) },
		"link OUTDIR to the outside":  func() error { return os.Link(filepath.Join(out, "../lock"), filepath.Join(out, "lock.yaml")) },
		"replace OUTDIR":              func() error { return os.Rename(out, out+"2") },
		"change a mode outside":       outside(func(name string) error { return os.Chmod(name, 0o777) }),
		"change times outside":        outside(func(name string) error { return os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)) }),
		"overwrite the program":       func() error { f, err := os.OpenFile("/proc/self/exe", os.O_WRONLY, 0); _ = f; return err },
		"mount something":             mountInNamespace,
		"make a device":               func() error { return unix.Mknod(filepath.Join(tmp, "d"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"connect to a socket outside": func() error { return connectUnix(filepath.Join(base(), "socket")) },
		"connect to an abstract one":  func() error { return connectUnix("@" + filepath.Join(base(), "abstract")) },

		// What OUTDIR leads to when it is read.
		"leave a pipe":        func() error { return unix.Mkfifo(filepath.Join(out, "p.yaml"), 0o600) },
		"leave a socket":      func() error { return bindUnix(filepath.Join(out, "s.yaml")) },
		"leave a link":        outside(func(name string) error { return os.Symlink(name, filepath.Join(out, "l.yaml")) }),
		"leave OUTDIR closed": func() error { return os.Chmod(out, 0) },

		// The other processes.
		"signal the daemon":         func() error { return unix.Kill(daemonPID(), 0) },
		"signal the daemon's group": signalGroup,
		"signal everybody":          signalAll,
		"signal the supervisor":     func() error { return unix.Kill(os.Getppid(), 0) },
		"signal by a pidfd":         signalByPidfd,
		"signal by an open file":    signalByFile,
		"limit the daemon's files":  func() error { return limitOf(daemonPID()) },
		"limit the supervisor":      func() error { return limitOf(os.Getppid()) },
		"starve the daemon":         func() error { return unix.Setpriority(unix.PRIO_PROCESS, daemonPID(), 19) },
		"starve the user":           func() error { return unix.Setpriority(unix.PRIO_USER, 0, 19) },
		"pin the daemon":            func() error { var set unix.CPUSet; set.Set(0); return unix.SchedSetaffinity(daemonPID(), &set) },
		"idle the daemon":           idleDaemon,
		"make the daemon the victim": func() error {
			return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", daemonPID()), []byte("1000"), 0)
		},
		"stop being the victim":     stopBeingVictim,
		"open the terminal":         func() error { f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); _ = f; return err },
		"type into the terminal":    typeIntoTerminal,
		"raise a limit":             raiseLimit,
		"dump core":                 dumpCore,
		"call by another interface": func() error { return errnoOf(unix.RawSyscall(confine.X32|unix.SYS_GETPID, 0, 0, 0)) },

		// What it leaves behind.
		"leave a session":      func() error { return leave(&syscall.SysProcAttr{Setsid: true}) },
		"leave a deaf process": func() error { return leave(&syscall.SysProcAttr{Setpgid: true}) },
		"leave a stopped one":  leaveStopped,
		"leave grandchildren":  leaveGrandchildren,
		"deaf":                 deaf,
		"fork and end for ever": func() error {
			for range 8 {
				forkChain()
			}
			return nil
		},

		// What it uses up.
		"memory":              func() error { return hold(make([]byte, 800<<20)) },
		"memory bit by bit":   memoryBitByBit,
		"memory of many":      func() error { return many(20, "40 MiB") },
		"40 MiB":              func() error { return hold(make([]byte, 40<<20)) },
		"shared memory":       sharedMemory,
		"processes":           func() error { return many(200, "wait") },
		"wait":                func() error { time.Sleep(5 * time.Minute); return nil },
		"threads":             threads,
		"fork bomb":           forkBomb,
		"one large file":      func() error { return writeFile(filepath.Join(out, "large"), 200<<20) },
		"disk":                func() error { return writeFiles(tmp, 100, 4<<20) },
		"disk of no name":     namelessFiles,
		"sparse files":        func() error { return sparseFiles(os.Getenv("INDIR")) },
		"many files":          func() error { return writeFiles(out, 5000, 0) },
		"deep directories":    func() error { return confine.DeepDirectories(out) },
		"deep in INDIR":       func() error { return confine.DeepDirectories(os.Getenv("INDIR")) },
		"much output":         func() error { return printFor(5*time.Minute, strings.Repeat("y\n", 1000)) },
		"one endless line":    func() error { return printFor(5*time.Minute, strings.Repeat("y", 4096)) },
		"control characters":  controlCharacters,
		"much that is deep":   func() error { return errors.Join(confine.DeepDirectories(tmp), os.Chmod(tmp, 0)) },
		"an ordinary program": ordinaryProgram,
	}
}

func readAnyEnvironment() error {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for pid := 2; pid < os.Getpid(); pid++ {
		names = append(names, fmt.Sprintf("/proc/%d/environ", pid))
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "DAEMON_SECRET") {
			return nil
		}
	}
	return errors.New("no process with a secret can be read")
}

func readMemory(pid int) error {
	local := make([]byte, 1)
	from := uintptr(unsafe.Pointer(&local[0])) // mapped in most processes of the same binary, which tells EFAULT from EPERM
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &local[0], Len: 1}}, []unix.RemoteIovec{{Base: from, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func takeOpenFile() error {
	process, err := unix.PidfdOpen(daemonPID(), 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(process, 2, 0)
	return err
}

// useInheritedFile looks for files that were open when the program started: those that
// it has opened itself are marked to be closed when another one starts.
func useInheritedFile() error {
	for fd := 3; fd < confine.MostOpen; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return errors.New("there is none")
}

func writeThroughLink(name string) error {
	link := filepath.Join(os.Getenv("OUTDIR"), "l.yaml")
	if err := os.Symlink(name, link); err != nil {
		return err
	}
	defer func() { _ = os.Remove(link) }()
	return os.WriteFile(link, []byte("x"), 0o600)
}

// inNamespace runs a shell as the root of a user namespace.
func inNamespace(script string) error {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), attackVariable+"=")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

func readInNamespace() error { return inNamespace("cat " + filepath.Join(base(), "outside")) }

func mountInNamespace() error { return inNamespace("mount --rbind / " + os.Getenv("TMPDIR")) }

func readKeyRing() error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	return err
}

func connectUnix(name string) error {
	conn, err := net.Dial("unix", name)
	if err != nil {
		return err
	}
	return conn.Close()
}

func bindUnix(name string) error {
	socket, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	socket.(*net.UnixListener).SetUnlinkOnClose(false)
	return socket.Close()
}

func signalGroup() error {
	group, err := unix.Getpgid(daemonPID())
	if err != nil {
		return err
	}
	return unix.Kill(-group, 0)
}

// signalAll kills all that it can. That it still runs is no proof; the
// sync's success is.
func signalAll() error { return unix.Kill(-1, unix.SIGKILL) }

func signalByPidfd() error {
	process, err := unix.PidfdOpen(daemonPID(), 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(process, 0, nil, 0)
}

// signalByFile has the kernel send a signal when a file can be read, to the supervisor:
// it wakes up and ignores it.
func signalByFile() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETOWN, daemonPID()); err != nil {
		return err
	}
	return errors.New("the kernel asks when it sends it")
}

func limitOf(pid int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil) // the same: this is no test of the daemon's death
}

func idleDaemon() error {
	return unix.SchedSetAttr(daemonPID(), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
}

func stopBeingVictim() error {
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(text)) != confine.FirstVictim {
		return nil
	}
	return os.WriteFile("/proc/self/oom_score_adj", []byte("999"), 0)
}

func typeIntoTerminal() error {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSTI, 'x')
}

func errnoOf(_, _ uintptr, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func raiseLimit() error {
	for _, resource := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_CORE, unix.RLIMIT_NOFILE} {
		limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 40}
		if err := unix.Prlimit(0, resource, &limit, nil); err != nil {
			return err
		}
	}
	return nil
}

func dumpCore() error {
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit); err != nil {
		return err
	}
	if limit.Max == 0 {
		return errors.New("it may not")
	}
	return nil
}

// start starts this program again with another attack.
func start(attack string, how *syscall.SysProcAttr) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), attackVariable+"="+attack)
	cmd.SysProcAttr = how
	return cmd, cmd.Start()
}

func leave(how *syscall.SysProcAttr) error {
	_, err := start("deaf", how)
	return err
}

func leaveStopped() error {
	cmd, err := start("deaf", &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return err
	}
	return cmd.Process.Signal(unix.SIGSTOP)
}

func leaveGrandchildren() error {
	// As whoever adopts orphans itself, so that they do not come to the supervisor.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	cmd, err := start("leave a session", &syscall.SysProcAttr{Setsid: true, Pdeathsig: 0})
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// deaf ignores all signals that it can.
func deaf() error {
	signal.Ignore()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return err
	}
	time.Sleep(5 * 5 * time.Minute)
	return nil
}

// forkChain starts a process that starts another one and ends, for ever.
//
//go:norace
func forkChain() {
	if pid, _, _ := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); pid != 0 {
		return
	}
	for {
		if pid, _, _ := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); pid != 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}

// forkBomb doubles itself until it is killed, or has done so more often than any limit
// of a test allows.
//
//go:norace
func forkBomb() error {
	for range 11 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	}
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PSELECT6, 0, 0, 0, 0, 0, 0)
	}
}

// hold touches memory and keeps it.
func hold(memory []byte) error {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	time.Sleep(5 * time.Minute)
	runtime.KeepAlive(memory)
	return nil
}

func memoryBitByBit() error {
	var all [][]byte
	for range 800 {
		bit := bytes.Repeat([]byte{1}, 1<<20)
		all = append(all, bit)
		time.Sleep(time.Millisecond)
	}
	return hold(all[0])
}

func sharedMemory() error {
	memory, err := unix.Mmap(-1, 0, 800<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return hold(memory)
}

// many starts processes and waits for them.
func many(n int, attack string) error {
	for range n {
		if _, err := start(attack, nil); err != nil {
			return err
		}
	}
	time.Sleep(5 * time.Minute)
	return nil
}

func threads() error {
	for range 200 {
		go func() {
			runtime.LockOSThread()
			_ = unix.Nanosleep(&unix.Timespec{Sec: 300}, nil)
		}()
	}
	time.Sleep(5 * time.Minute)
	return nil
}

func writeFile(name string, size int) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for size > 0 {
		n, err := file.Write(piece[:min(size, len(piece))])
		if err != nil {
			return err
		}
		size -= n
	}
	return nil
}

func writeFiles(dir string, n, size int) error {
	for i := range n {
		if err := writeFile(filepath.Join(dir, strconv.Itoa(i)), size); err != nil {
			return err
		}
	}
	time.Sleep(5 * time.Minute)
	return nil
}

func sparseFiles(dir string) error {
	for i := range 100 {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600), os.Truncate(filepath.Join(dir, strconv.Itoa(i)), 16<<20)); err != nil {
			return err
		}
	}
	return nil
}

// namelessFiles opens as many files as it can and takes their names away.
func namelessFiles() error {
	var open []*os.File
	defer func() {
		for _, file := range open {
			_ = file.Close()
		}
	}()
	for i := range confine.MostOpen + 1 {
		file, err := os.Create(filepath.Join(os.Getenv("TMPDIR"), strconv.Itoa(i)))
		if err != nil {
			return err
		}
		open = append(open, file)
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
	}
	return nil
}

func printFor(long time.Duration, text string) error {
	for end := time.Now().Add(long); time.Now().Before(end); {
		if _, err := fmt.Print(text); err != nil {
			return err
		}
	}
	return nil
}

func controlCharacters() error {
	fmt.Print("a\x1b[2Jb\rc\u202ed\u2028e\x00f\n", "{\"level\":\"error\"}\n")
	os.Exit(1)
	return nil
}

// ordinaryProgram does what programs do: none of it may be refused.
func ordinaryProgram() error {
	var set unix.CPUSet
	var limit unix.Rlimit
	file := filepath.Join(os.Getenv("TMPDIR"), "f")
	return errors.Join(
		unix.SchedGetaffinity(0, &set),
		unix.SchedSetaffinity(0, &set),
		unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit),
		unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil),
		unix.Setpriority(unix.PRIO_PROCESS, 0, 10),
		os.WriteFile(file, []byte("x"), 0o644), os.Chmod(file, 0o755), os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)),
		bindUnix(filepath.Join(os.Getenv("TMPDIR"), "s")),
		exec.Command("/bin/sh", "-c", "ulimit -n 512; nice -n 11 true; sleep 0 & wait").Run(),
	)
}
