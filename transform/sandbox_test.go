package transform

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kubesync/kubesync/transform/confine"
)

func TestConfinement(t *testing.T) {
	t.Parallel()
	work, elsewhere := t.TempDir(), t.TempDir()
	secret := filepath.Join(elsewhere, "token")
	neighbour := filepath.Join(work, "kubesync-other", "INDIR")
	for _, dir := range []string{neighbour} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{secret, filepath.Join(neighbour, "file")} {
		if err := os.WriteFile(name, []byte("hunter2\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "@kubesync-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	// It answers, so that CMD, where it can connect, waits for nothing.
	daemon := &httptest.Server{Listener: socket, Config: &http.Server{Handler: http.NotFoundHandler()}}
	daemon.Start()
	t.Cleanup(daemon.Close)
	url, requests := server(t)

	tests := map[string]struct {
		script  string // its output counts
		denied  bool   // when confined, it must fail; when not, it works
		works   string // when it works, its output holds this
		kernels int    // the Landlock ABI from which it can be denied
	}{
		"read a secret":              {script: "cat " + secret, denied: true, works: "hunter2"},
		"read it through a link":     {script: "ln -s " + secret + " link && cat link", denied: true, works: "hunter2"},
		"read it through a file":     {script: "ln " + secret + " $TMPDIR/link && cat $TMPDIR/link", denied: true, works: "hunter2"},
		"list its directory":         {script: "ls " + elsewhere, denied: true, works: "token"},
		"move it":                    {script: "mv " + secret + " $TMPDIR/t && mv $TMPDIR/t " + secret + " && echo moved", denied: true, works: "moved"},
		"change into it":             {script: "cd " + elsewhere + " && cat token", denied: true, works: "hunter2"},
		"another repository's files": {script: "cat " + neighbour + "/file", denied: true, works: "hunter2"},
		"write to another one":       {script: "echo x > " + neighbour + "/new && echo written", denied: true, works: "written"},
		"list the workspaces":        {script: "ls " + work, denied: true, works: "kubesync-other"},
		"touch the lock":             {script: "cat $INDIR/../lock && echo read", denied: true, works: "read"},
		"list the root directory":    {script: "ls /", denied: true, works: "etc"},
		"list the settings":          {script: "ls /etc", denied: true, works: "passwd"},
		"write to the system":        {script: "touch " + elsewhere + "/x && echo written", denied: true, works: "written"},
		"write to /tmp":              {script: "f=$(TMPDIR=/tmp mktemp) && rm $f && echo written", denied: true, works: "written"},
		"truncate":                   {script: "truncate -s 100 " + secret + " && truncate -s 8 " + secret + " && echo written", denied: true, works: "written", kernels: 3},
		"the daemon's environment":   {script: "cat /proc/$DAEMON/environ > /dev/null && echo read", denied: true, works: "read"},
		"the daemon's files":         {script: "ls /proc/$DAEMON/fd > /dev/null && echo read", denied: true, works: "read"},
		"the daemon's command line":  {script: "cat /proc/$DAEMON/cmdline > /dev/null && echo read", denied: true, works: "read"},
		"the supervisor":             {script: "cat /proc/$PPID/environ > /dev/null && echo read", denied: true, works: "read"},
		"signal the daemon":          {script: "kill -0 $DAEMON && echo sent", denied: true, works: "sent", kernels: 6},
		"signal the supervisor":      {script: "kill -0 $PPID && echo sent", denied: true, works: "sent", kernels: 6},
		"connect to a socket":        {script: "curl -sS --max-time 5 --abstract-unix-socket kubesync-test-$DAEMON http://x/; [ $? != 7 ] && echo connected", denied: true, works: "connected", kernels: 6},

		"network":                    {script: "curl -sSf " + url, works: "name: remote"},
		"names":                      {script: "getent hosts localhost", works: "localhost"},
		"certificates":               {script: "cat /etc/ssl/certs/* > /dev/null; id -un; echo read", works: "read"},
		"temporary files":            {script: "f=$(mktemp) && echo x > $f && cat $f && sort < $f", works: "x\nx"},
		"home":                       {script: "echo x > ~/file && cat ~/file", works: "x"},
		"move from INDIR":            {script: "echo x > a && mkdir d && mv d $OUTDIR/d && mv a $OUTDIR/d/a && cat $OUTDIR/d/a", works: "x"},
		"change INDIR":               {script: "echo x > a && ln a b && ln -s b c && cat c && rm a b c", works: "x"},
		"devices":                    {script: "head -c 8 /dev/urandom > /dev/null && head -c 1 /dev/zero > /dev/null && echo x", works: "x"},
		"standard files":             {script: "echo x > /dev/stdout; echo y > /dev/stderr; cat /dev/stdin", works: "y"},
		"process substitution":       {script: "bash -c 'cat <(echo x) - <<< y'", works: "x\ny"},
		"here document":              {script: "cat <<EOF\n$(seq 1 20000)\nEOF", works: "20000"},
		"own process":                {script: "while read -r k v; do echo $k $v; done < /proc/self/status", works: "Pid:"},
		"signal its own":             {script: "sleep 1000 & kill $! && echo sent", works: "sent"},
		"alternatives":               {script: "awk 'BEGIN { print \"x\" }'", works: "x"},
		"jq":                         {script: "echo '{\"a\": \"x\"}' | jq -r .a", works: "x"},
		"a program in the workspace": {script: "cp /bin/echo . && ./echo x && cp /bin/echo $TMPDIR && $TMPDIR/echo y", works: "x\ny"},
	}
	for name, test := range tests {
		for _, mode := range []SandboxMode{SandboxRequire, SandboxOff} {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				if !test.denied {
					t.Parallel() // the others move the secret about
				}
				files := repo{"r": sh("{ " + test.script + "\n} > $TMPDIR/out 2>&1\necho ended with $? >> $TMPDIR/out\ncp $TMPDIR/out $OUTDIR/out.yaml")}
				tr := newTransform(t, Options{
					Command: "r", RepoName: strings.NewReplacer(" ", "-", "'", "").Replace(name), Sandbox: mode, WorkDir: work,
					Environ: []string{"PATH=" + testPath, "HOME=" + t.TempDir(), "DAEMON=" + strconv.Itoa(os.Getpid())},
				})
				result, err := tr.Run(t.Context(), files.input("1"))
				if err != nil {
					t.Fatal(err)
				}
				out := contents(t, result.Files)["OUTDIR/out.yaml"]
				worked := strings.Contains(out, test.works)
				if want := mode == SandboxOff || !test.denied || confine.LandlockABI() < test.kernels; worked != want {
					t.Errorf("worked: %v, want %v:\n%s", worked, want, out)
				}
			})
		}
	}
	t.Cleanup(func() {
		if requests.Load() == 0 {
			t.Error("no request has reached the server")
		}
	})
}

// A program outside the repository can be run, but not what lies beside it be read.
func TestConfinedProgramElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "r")
	if err := os.WriteFile(script, []byte(sh("cat "+dir+"/beside && exit 1; grep NoNewPrivs /proc/self/status; while read -r k v; do [ $k = NoNewPrivs: ] && echo $k $v > $OUTDIR/a.yaml; done < /proc/self/status; exit 0")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "beside"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	result, err := newTransform(t, Options{Command: script, Sandbox: SandboxRequire}).Run(t.Context(), repo{}.input("1"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": "NoNewPrivs: 1"})
}

func TestConfinedFailureSaysWhy(t *testing.T) {
	t.Parallel()
	files := repo{"r": sh("ls / || exit 1")}
	_, err := newTransform(t, Options{Command: "r"}).Run(t.Context(), files.input("1"))
	checkError(t, err, "(CMD is confined: ")
	files = repo{"r": sh("echo Permission denied; exit 1")}
	_, err = newTransform(t, Options{Command: "r", Sandbox: SandboxOff}).Run(t.Context(), files.input("1"))
	if err == nil || strings.Contains(err.Error(), "CMD is confined") {
		t.Errorf("error %v", err)
	}
}

func TestSandboxModes(t *testing.T) {
	t.Parallel()
	const refused = `Unprivileged repo requires privilege: cmd "r": this kernel has no Landlock to confine it with`
	tests := map[string]struct {
		mode       SandboxMode
		privileged bool
		abi        int
		confined   bool
		note, err  string
	}{
		"auto":                           {SandboxAuto, false, 1, true, "", ""},
		"auto, system":                   {SandboxAuto, true, 1, true, "", ""},
		"auto, no Landlock":              {SandboxAuto, false, 0, false, "", refused},
		"auto, system, no Landlock":      {SandboxAuto, true, 0, false, `CMD "r" runs unconfined: this kernel has no Landlock`, ""},
		"require":                        {SandboxRequire, false, 7, true, "", ""},
		"require, system":                {SandboxRequire, true, 7, true, "", ""},
		"require, no Landlock":           {SandboxRequire, false, 0, false, "", refused},
		"require, system, no Landlock":   {SandboxRequire, true, 0, false, "", `CMD "r" is refused: CMD_SANDBOX is require, and this kernel has no Landlock`},
		"off":                            {SandboxOff, false, 7, false, "", ""},
		"off, system, no Landlock":       {SandboxOff, true, 0, false, "", ""},
		"off, application, no Landlock":  {SandboxOff, false, 0, false, "", ""},
		"off, system, there is Landlock": {SandboxOff, true, 7, false, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := repo{"r": sh("if ls / > /dev/null 2>&1; then echo free; else echo confined; fi > $OUTDIR/a.yaml")}
			tr := newTransform(t, Options{Command: "r", Sandbox: test.mode, Privileged: test.privileged})
			tr.abi = func() int { return test.abi }
			result, err := tr.Run(t.Context(), files.input("1"))
			if test.err != "" && err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("the error does not start as it should")
			}
			if !checkError(t, err, test.err) {
				return
			}
			compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": map[bool]string{true: "confined", false: "free"}[test.confined]})
			if notes := strings.Join(result.Notes, ""); (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
				t.Errorf("notes %q", notes)
			}
			// A CMD that does not exist needs no confinement.
			tr.command, _ = parseCommand("missing")
			if _, err := tr.Run(t.Context(), files.input("2")); err != nil {
				t.Errorf("missing CMD: %v", err)
			}
		})
	}
}

func TestParseSandboxMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SandboxMode{"": SandboxAuto, "auto": SandboxAuto, "Require": SandboxRequire, "OFF": SandboxOff} {
		if mode, err := ParseSandboxMode(text); err != nil || mode != want {
			t.Errorf("%q: %v, %v", text, mode, err)
		}
		if mode, err := ParseSandboxMode(want.String()); err != nil || mode != want {
			t.Errorf("%v is not what it prints", want)
		}
	}
	_, err := ParseSandboxMode("yes")
	checkError(t, err, `"yes" is none of auto, require and off`)
}

// A program in the repository that is a link elsewhere gives no right to read what it
// leads to. (Without an interpreter it would be run, hence read, by a shell.)
func TestProgramThatIsALink(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("hunter2 is what it says\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[SandboxMode]string{SandboxRequire: "ermission denied", SandboxOff: "hunter2"} {
		_, err := newTransform(t, Options{Command: "r", Sandbox: mode}).Run(t.Context(), repo{"r": "-> " + secret}.input("1"))
		checkError(t, err, want)
		if mode == SandboxRequire && strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("the secret is shown: %v", err)
		}
	}
}

// What is withheld is said, and cannot be read.
func TestProtected(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	for name, text := range map[string]string{"key": "hunter2", "tool": sh("cat " + tools + "/key > $OUTDIR/a.yaml 2>&1; exit 0")} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		protected []string
		text      string
		notes     int
	}{"open": {nil, "hunter2", 0}, "protected": {[]string{filepath.Join(tools, "key")}, "ermission denied", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTransform(t, Options{Command: "tool", Sandbox: SandboxRequire, Environ: []string{"PATH=" + tools + ":" + testPath}, Protected: func() []string { return test.protected }})
			result, err := tr.Run(t.Context(), repo{}.input("1"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": test.text})
			if len(result.Notes) != test.notes || test.notes == 1 && !strings.Contains(result.Notes[0], "CMD may not read "+tools) {
				t.Errorf("notes %q", result.Notes)
			}
		})
	}
}
