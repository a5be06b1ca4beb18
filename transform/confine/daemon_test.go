package confine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubesync/kubesync/internal/limits"
	"github.com/kubesync/kubesync/transform"
	"github.com/kubesync/kubesync/transform/confine"
)

// daemonVariable makes the test binary a small daemon: it holds a daemonJob as JSON.
const daemonVariable = "KUBESYNC_TEST_DAEMON"

// daemonJob is what the small daemon does: it runs a transform once and prints the
// manifests, or the error.
type daemonJob struct {
	Command string
	Script  string // the program of Command, in the repository
	WorkDir string
	Sandbox transform.SandboxMode
	Limits  map[limits.Limit]int64
	Attack  string
}

func daemonMain() int {
	if err := daemonRun(); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func daemonRun() error {
	var todo daemonJob
	if err := json.Unmarshal([]byte(os.Getenv(daemonVariable)), &todo); err != nil {
		return err
	}
	if err := confine.ProtectProcess(); err != nil {
		return err
	}
	var most limits.Limits
	for limit, value := range todo.Limits {
		most = most.With(limit, value)
	}
	tr, err := transform.New(transform.Options{
		RepoName: "daemon", Command: todo.Command, WorkDir: todo.WorkDir, Sandbox: todo.Sandbox, Limits: most, Timeout: 4 * time.Minute,
		Environ: append(os.Environ(), fmt.Sprintf("DAEMON_PID=%d", os.Getpid()), attackVariable+"="+todo.Attack), OwnVariables: []string{daemonVariable, "DAEMON_SECRET"},
	})
	if err != nil {
		return err
	}
	defer tr.Close()
	result, err := tr.Run(context.Background(), revision(todo.Script))
	if err != nil {
		return err
	}
	data, err := fs.ReadFile(result.Files, "OUTDIR/out.yaml")
	fmt.Println(string(data))
	return err
}

// revision is a revision whose only file is an executable script; it has none if the script
// is empty.
func revision(script string) transform.Input {
	files := fstest.MapFS{}
	if script != "" {
		files["script"] = &fstest.MapFile{Data: []byte(script), Mode: 0o755}
	}
	return transform.Input{Revision: "1", Files: files, Checkout: func(_ context.Context, dir string) error {
		return os.CopyFS(dir, files)
	}}
}

// testPath is a PATH without the directories of this machine's users.
const testPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// nobody is a user id without any rights, for when the tests run as root.
const nobody = 65534

// daemonDir makes a directory for the small daemon to work in.
func daemonDir(t *testing.T) string {
	t.Helper()
	// Not t.TempDir, which nobody cannot enter.
	dir, err := os.MkdirTemp("", "kubesync-daemon-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	giveAway(t, dir)
	return dir
}

// giveAway makes a file the small daemon's.
func giveAway(t *testing.T, name string) {
	t.Helper()
	if os.Geteuid() == 0 {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// startDaemon prepares the small daemon, as a user without privileges.
func startDaemon(t *testing.T, todo daemonJob) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	if todo.WorkDir == "" {
		todo.WorkDir = daemonDir(t)
	}
	text, err := json.Marshal(todo)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), confine.Self)
	cmd.Env = []string{"PATH=" + testPath, daemonVariable + "=" + string(text), "DAEMON_SECRET=hunter2", "PUBLIC=yes"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// The daemon's environment can be read neither by a confined CMD nor by an unconfined
// one, and a process that is not dumpable can still start its helpers.
func TestDaemonIsProtected(t *testing.T) {
	t.Parallel()
	const script = `#!/bin/sh
exec > $OUTDIR/out.yaml 2>&1
echo public: $PUBLIC
for file in environ maps mem cmdline; do
	head -c 1000 /proc/$1/$file | tr '\0' '\n'
done
ls -l /proc/$1/fd /proc/$1/cwd
for file in /proc/[0-9]*/environ; do
	tr '\0' '\n' < $file
done
exit 0
`
	for _, mode := range []transform.SandboxMode{transform.SandboxRequire, transform.SandboxOff} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			cmd, out := startDaemon(t, daemonJob{Command: "script $DAEMON_PID", Script: script, Sandbox: mode})
			err := cmd.Run()
			text := out.String()
			if err != nil || !strings.Contains(text, "public: yes") {
				t.Fatalf("%v: %s", err, text)
			}
			denied := []string{"environ", "maps", "mem", "fd"}
			if mode == transform.SandboxRequire {
				denied = append(denied, "cmdline")
			}
			for _, name := range denied {
				if !strings.Contains(text, fmt.Sprintf("/proc/%d/%s' for reading: Permission denied", cmd.Process.Pid, name)) &&
					!strings.Contains(text, fmt.Sprintf("/proc/%d/%s': Permission denied", cmd.Process.Pid, name)) {
					t.Errorf("the daemon's %s was not denied: %s", name, text)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("CMD got at the daemon's environment: %s", text)
			}
		})
	}
}

// When the daemon is killed, so is all that CMD has started.
func TestDaemonDies(t *testing.T) {
	t.Parallel()
	// Not t.TempDir, which nobody cannot enter.
	dir, err := os.MkdirTemp("", "kubesync-fifo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	fifo := filepath.Join(dir, "alive")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(fifo, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\nexec 9> " + fifo + "\nsetsid sleep 1000 &\nsleep 1000\n"
	cmd, out := startDaemon(t, daemonJob{Command: "script", Script: script, Sandbox: transform.SandboxOff})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Opening waits until CMD has opened it, too; at the end comes when the last process
	// that has it open is gone.
	alive, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := alive.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("CMD outlives the daemon: %v: %s", err, out)
	}
	_ = cmd.Wait()
}
