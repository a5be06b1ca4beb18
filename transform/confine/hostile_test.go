package confine_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform"
	"github.com/kubesync/kubesync/transform/confine"
)

// attempt is an attack of a hostile CMD and what becomes of it: "worked", "failed", or
// the error of the sync.
type attempt struct {
	confined, free string
	// kernel is the version of Landlock from which it is contained; what is confined
	// by an older one is as good as free. 0 stands for the first.
	kernel int
	limits map[limits.Limit]int64
}

// allow is a limit that is lower than by default.
func allow(limit limits.Limit, most int64) map[limits.Limit]int64 {
	return map[limits.Limit]int64{limit: most}
}

// notYet is the version of Landlock for what none can contain.
const notYet = 1 << 30

// attempts lists them by the names that attacks knows them by. Only where an attack
// works when CMD is free says its failure something of the confinement; the others are
// contained by something else as well, such as the daemon not being dumpable.
func attempts() map[string]attempt {
	const failed, worked = "failed: ", "worked"
	return map[string]attempt{
		"read the daemon's environment": {confined: failed, free: failed},
		"read the daemon's memory":      {confined: failed, free: failed},
		"map the daemon's memory":       {confined: failed, free: failed},
		"list the daemon's open files":  {confined: failed, free: failed},
		"enter the daemon's root":       {confined: failed, free: failed},
		"read any environment":          {confined: failed, free: failed},
		"read by process_vm_readv":      {confined: failed, free: failed},
		"trace the daemon":              {confined: failed, free: failed},
		"trace the supervisor":          {confined: failed, free: worked},
		"take an open file":             {confined: failed, free: failed},
		"use an inherited file":         {confined: failed, free: failed},
		"read a file outside":           {confined: failed, free: worked},
		"link a file into OUTDIR":       {confined: failed, free: worked},
		"move a file into OUTDIR":       {confined: failed, free: worked},
		"read by a user namespace":      {confined: failed, free: worked},
		"read the key ring":             {confined: failed, free: worked},

		"write a file outside":        {confined: failed, free: worked},
		"write through a link":        {confined: failed, free: worked},
		"remove a file outside":       {confined: failed, free: worked},
		"make a file outside":         {confined: failed, free: worked},
		"link OUTDIR to the outside":  {confined: failed, free: worked},
		"replace OUTDIR":              {confined: failed, free: "OUTDIR is not there"},
		"overwrite the program":       {confined: failed, free: failed},
		"mount something":             {confined: failed, free: worked},
		"make a device":               {confined: failed, free: failed},
		"connect to an abstract one":  {confined: failed, free: worked, kernel: 6},
		"connect to a socket outside": {confined: failed, free: worked, kernel: 9},
		"change a mode outside":       {confined: failed, free: worked, kernel: notYet},
		"change times outside":        {confined: failed, free: worked, kernel: notYet},

		"leave a pipe":        {confined: "OUTDIR/p.yaml is neither a file nor a directory", free: "OUTDIR/p.yaml is neither"},
		"leave a socket":      {confined: "OUTDIR/s.yaml is neither a file nor a directory", free: "OUTDIR/s.yaml is neither"},
		"leave a link":        {confined: "symbolic link OUTDIR/l.yaml points to ", free: "symbolic link OUTDIR/l.yaml points to "},
		"leave OUTDIR closed": {confined: "look for kustomization.yaml in OUTDIR: ", free: "permission denied"},

		"signal the daemon":          {confined: failed, free: worked, kernel: 6},
		"signal the daemon's group":  {confined: failed, free: worked, kernel: 6},
		"signal everybody":           {confined: worked, kernel: 6}, // when it is free it would reach other tests
		"signal the supervisor":      {confined: failed, free: worked, kernel: 6},
		"signal by a pidfd":          {confined: failed, free: worked, kernel: 6},
		"limit the daemon's files":   {confined: failed, free: worked},
		"limit the supervisor":       {confined: failed, free: worked},
		"starve the daemon":          {confined: failed, free: worked},
		"starve the user":            {confined: failed, free: worked},
		"pin the daemon":             {confined: failed, free: worked},
		"idle the daemon":            {confined: failed, free: worked},
		"make the daemon the victim": {confined: failed, free: failed},
		"stop being the victim":      {confined: failed, free: worked},
		"open the terminal":          {confined: failed, free: failed},
		"type into the terminal":     {confined: failed, free: failed},
		"raise a limit":              {confined: failed, free: failed},
		"dump core":                  {confined: failed, free: failed},
		"call by another interface":  {confined: failed, free: failed},

		"leave a session":       {confined: worked, free: worked},
		"leave a deaf process":  {confined: worked, free: worked},
		"leave a stopped one":   {confined: worked, free: worked},
		"leave grandchildren":   {confined: worked, free: worked},
		"fork and end for ever": {confined: worked, kernel: 6}, // when it is free nothing can end it

		// Where CMD is free the same limits hold; some show it.
		"memory":             {confined: `the limit "cmd-memory"`, free: `LIMITS=cmd-memory=`, limits: allow(limits.CommandMemory, 300<<20)},
		"memory bit by bit":  {confined: `the limit "cmd-memory"`, limits: allow(limits.CommandMemory, 300<<20)},
		"memory of many":     {confined: `the limit "cmd-memory"`, limits: allow(limits.CommandMemory, 300<<20)},
		"shared memory":      {confined: `the limit "cmd-memory"`, limits: allow(limits.CommandMemory, 300<<20)},
		"processes":          {confined: `the limit "cmd-processes"`, limits: allow(limits.CommandProcesses, 50)},
		"threads":            {confined: `the limit "cmd-processes"`, limits: allow(limits.CommandProcesses, 50)},
		"fork bomb":          {confined: `the limit "cmd-processes"`, free: `the limit "cmd-processes"`, limits: allow(limits.CommandProcesses, 50)},
		"one large file":     {confined: "file too large", free: "file too large", limits: allow(limits.CommandFile, 64<<20)},
		"disk":               {confined: `the limit "cmd-disk"`, limits: allow(limits.CommandDisk, 64<<20)},
		"disk of no name":    {confined: failed, free: failed},
		"sparse files":       {confined: `the limit "cmd-disk"`, free: `LIMITS=cmd-disk=`, limits: allow(limits.CommandDisk, 64<<20)},
		"many files":         {confined: `the limit "cmd-files"`, free: `the limit "cmd-files"`, limits: allow(limits.CommandFiles, 500)},
		"deep directories":   {confined: `the limit "cmd-depth"`, free: `the limit "cmd-depth"`},
		"deep in INDIR":      {confined: `the limit "cmd-depth"`},
		"much output":        {confined: `the limit "cmd-output"`, free: `the limit "cmd-output"`, limits: allow(limits.CommandOutput, 1<<20)},
		"one endless line":   {confined: `the limit "cmd-output"`, limits: allow(limits.CommandOutput, 1<<20)},
		"control characters": {confined: "a\uFFFD[2Jb\uFFFDc\uFFFDd\uFFFDe\uFFFDf\n", free: "a\uFFFD[2Jb"},

		"an ordinary program": {confined: worked, free: worked},
	}
}

// precious is what lies outside of CMD's directories.
const precious = "precious, and no one's business"

// Every attack of a hostile CMD ends as it is said to. Afterwards nothing outside of its
// directories is changed, nothing that it started runs, and nothing of it remains.
func TestHostileCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("has forty commands fill, fork and spin until they are stopped: 12 s of CPU time")
	}
	for name, attempt := range attempts() {
		for _, mode := range []transform.SandboxMode{transform.SandboxRequire, transform.SandboxOff} {
			if attempt.free == "" && (mode == transform.SandboxOff || confine.LandlockABI() < attempt.kernel) {
				continue
			}
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				t.Parallel()
				want := attempt.confined
				if mode == transform.SandboxOff || confine.LandlockABI() < attempt.kernel {
					want = attempt.free
				}
				runAttempt(t, name, attempt, mode, want)
			})
		}
	}
}

func runAttempt(t *testing.T, name string, attempt attempt, mode transform.SandboxMode, want string) {
	dir := daemonDir(t)
	outside := filepath.Join(dir, "outside")
	if err := os.WriteFile(outside, []byte(precious), 0o644); err != nil {
		t.Fatal(err)
	}
	giveAway(t, outside)
	listenUnix(t, filepath.Join(dir, "socket"))
	listenUnix(t, "@"+filepath.Join(dir, "abstract"))
	cmd, out := startDaemon(t, daemonJob{Command: attacker(t, dir), WorkDir: dir, Sandbox: mode, Limits: attempt.limits, Attack: name})
	giveTerminal(t, cmd)
	cmd.ExtraFiles = []*os.File{os.Stderr} // that the daemon knows nothing of
	_ = cmd.Run()                          // what it prints is what counts
	text := out.String()
	if strings.Contains(text, "hunter2") || strings.Contains(text, precious) {
		t.Errorf("a secret is shown: %s", text)
	}
	if !strings.Contains(text, want) {
		t.Errorf("want %q: %s", want, text)
	}
	checkNoProcessIn(t, dir)
	if mode == transform.SandboxOff {
		return
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != precious {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 3 {
		t.Errorf("beside the program, the file and the socket there is %v", left)
	}
}

// attacker puts this program where the small daemon can run it.
func attacker(t *testing.T, dir string) string {
	t.Helper()
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "attacker")
	if os.Link(this, name) == nil {
		return name
	}
	program, err := os.ReadFile(this)
	if err == nil {
		err = os.WriteFile(name, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// listenUnix opens a socket that everybody may connect to.
func listenUnix(t *testing.T, name string) {
	t.Helper()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if name[0] != '@' {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// giveTerminal starts a command at a terminal, as a person does.
func giveTerminal(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	cmd.Stdin = terminal
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
}

// checkNoProcessIn finds processes whose environment names a directory.
func checkNoProcessIn(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(dir)) {
			t.Errorf("%s still runs", filepath.Dir(name))
		}
	}
}
