package transform

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"
)

// sh makes a script.
func sh(lines ...string) string { return "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n" }

func TestCommand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		command string
		repo    repo
		options Options
		files   map[string]string // what each file of the result holds, in this order, separated by …
		notes   string
		err     string
	}{
		"only OUTDIR counts": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("cp a.yaml $OUTDIR/out.yaml"), "a.yaml": "a"},
			files:   map[string]string{"OUTDIR/out.yaml": "a"},
		},
		"OUTDIR as an argument": {
			command: "render.sh $OUTDIR 'a b'",
			repo:    repo{"render.sh": sh(`echo "$# $2" > $1/out.yaml`)},
			files:   map[string]string{"OUTDIR/out.yaml": "2 a b\n"},
		},
		"working directory": {
			command: "scripts/render.sh",
			repo:    repo{"scripts/render.sh": sh(`[ "$(pwd)" = "$INDIR" ] && [ "$PWD" = "$INDIR" ] && echo "$0" > $OUTDIR/out.yaml`)},
			files:   map[string]string{"OUTDIR/out.yaml": "/INDIR/scripts/render.sh"},
		},
		"below INDIR": {
			command: "$INDIR/render.sh",
			repo:    repo{"render.sh": sh(`echo x > $OUTDIR/out.yaml`)},
			files:   map[string]string{"OUTDIR/out.yaml": "x"},
		},
		"program on PATH": {
			command: "cp a.yaml b.yaml $OUTDIR",
			repo:    repo{"a.yaml": "a", "b.yaml": "b"},
			files:   map[string]string{"OUTDIR/a.yaml": "a", "OUTDIR/b.yaml": "b"},
		},
		"pattern": {
			command: "cp *.yaml $OUTDIR",
			repo:    repo{"a.yaml": "a", "b.yaml": "b"},
			files:   map[string]string{"OUTDIR/a.yaml": "a", "OUTDIR/b.yaml": "b"},
		},
		"repository before PATH": {
			command: "cp",
			repo:    repo{"cp": sh("echo mine > $OUTDIR/out.yaml")},
			files:   map[string]string{"OUTDIR/out.yaml": "mine"},
		},
		"directory of that name": {
			command: "cp a.yaml $OUTDIR",
			repo:    repo{"cp/x": "", "a.yaml": "a"},
			files:   map[string]string{"OUTDIR/a.yaml": "a"},
		},
		"absolute program": {
			command: "/bin/cp a.yaml $OUTDIR",
			repo:    repo{"a.yaml": "a"},
			files:   map[string]string{"OUTDIR/a.yaml": "a"},
		},
		"through a link": {
			command: "render.sh",
			repo:    repo{"render.sh": "-> scripts/r", "scripts/r": sh("echo x > $OUTDIR/out.yaml")},
			files:   map[string]string{"OUTDIR/out.yaml": "x"},
		},
		"link to a program of the system": {
			command: "copy a.yaml $OUTDIR",
			repo:    repo{"copy": "-> /bin/cp", "a.yaml": "a"},
			files:   map[string]string{"OUTDIR/a.yaml": "a"},
		},
		"missing": {
			command: "render.sh", repo: repo{"a.yaml": "a"},
			files: map[string]string{"a.yaml": "a"},
			notes: `CMD "render.sh": render.sh exists neither in this revision nor elsewhere, so no transform runs`,
		},
		"missing with a slash": {
			command: "./cp", repo: repo{"a.yaml": "a"},
			files: map[string]string{"a.yaml": "a"}, notes: "./cp exists neither",
		},
		"missing and absolute": {
			command: "/nowhere/render.sh", repo: repo{"a.yaml": "a"},
			files: map[string]string{"a.yaml": "a"}, notes: "/nowhere/render.sh exists neither",
		},
		"missing, with YMLDIR": {
			command: "render.sh", repo: repo{"a.yaml": "a", "d/b.yaml": "b"}, options: Options{YMLDir: "d"},
			files: map[string]string{"d/b.yaml": "b"}, notes: "render.sh exists neither",
		},
		"outside":       {command: "../render.sh", repo: repo{}, err: "../render.sh is outside the repository"},
		"empty program": {command: "$NOTHING", repo: repo{}, err: "the program, is empty"},
		"kinds of files": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("cd $OUTDIR; for f in a.yaml b.yml c.json d.txt .e.yaml; do echo $f > $f; done; mkdir d; echo x > d/f.yaml")},
			files:   map[string]string{"OUTDIR/a.yaml": "a", "OUTDIR/b.yml": "b", "OUTDIR/c.json": "c"},
		},
		"at any depth": {
			command: "render.sh", options: Options{Recursive: true},
			repo:  repo{"render.sh": sh("cd $OUTDIR; mkdir -p d/e .h; echo a > d/a.yaml; echo b > d/e/b.yaml; echo c > .h/c.yaml")},
			files: map[string]string{"OUTDIR/d/a.yaml": "a", "OUTDIR/d/e/b.yaml": "b"},
		},
		"ignoring is for the repository": {
			command: "cp a.yaml $OUTDIR",
			repo:    repo{"a.yaml": "a", ".kubesyncignore": "*"},
			files:   map[string]string{"OUTDIR/a.yaml": "a"},
		},
		"nothing": {
			command: "true", repo: repo{"a.yaml": "a"},
			files: map[string]string{}, notes: "there are no .yaml, .yml or .json files in OUTDIR",
		},
		"kustomization": {
			command: "render.sh",
			repo: repo{
				"render.sh": sh(`echo 'resources: [a.yaml, ../INDIR/base]' > $OUTDIR/kustomization.yaml; cp a.yaml $OUTDIR`),
				"a.yaml":    named("a"), "base/kustomization.yaml": "resources: [b.yaml]", "base/b.yaml": named("b"),
			},
			files: map[string]string{"OUTDIR/a.yaml": "name: a", "INDIR/base/b.yaml": "name: b"},
		},
		"kustomization that leaves": {
			command: "render.sh",
			repo:    repo{"render.sh": sh(`echo 'resources: [../TMPDIR/x.yaml]' > $OUTDIR/kustomization.yaml; echo > $TMPDIR/x.yaml`)},
			err:     "TMPDIR/x.yaml is outside OUTDIR and INDIR",
		},
		"links": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("cd $OUTDIR; ln -s $INDIR/a.yaml a.yaml; ln -s ../INDIR/a.yaml b.yaml; echo c > c; ln -s $OUTDIR/c c.yaml; ln -s $INDIR/l.yaml d.yaml"), "a.yaml": "a", "l.yaml": "-> a.yaml"},
			files:   map[string]string{"OUTDIR/a.yaml": "a", "OUTDIR/b.yaml": "a", "OUTDIR/c.yaml": "c", "OUTDIR/d.yaml": "a"},
		},
		"link outside": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("ln -s /etc/passwd $OUTDIR/a.yaml")},
			err:     "symbolic link OUTDIR/a.yaml points to /etc/passwd: only targets inside OUTDIR and INDIR are followed",
		},
		"link to TMPDIR": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("echo x > $TMPDIR/a; ln -s $TMPDIR/a $OUTDIR/a.yaml")},
			err:     "symbolic link OUTDIR/a.yaml points to ",
		},
		"link that leaves on the way": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("ln -s ../../x/INDIR/a.yaml $OUTDIR/a.yaml"), "a.yaml": "a"},
			err:     "OUTDIR/a.yaml points to ../../x/INDIR/a.yaml",
		},
		"dangling link": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("ln -s nowhere $OUTDIR/a.yaml")},
			err:     "OUTDIR/a.yaml",
		},
		"named pipe": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("mkfifo $OUTDIR/a.yaml")},
			err:     "OUTDIR/a.yaml is neither a file nor a directory",
		},
		"OUTDIR replaced": {
			command: "render.sh", options: Options{Sandbox: SandboxOff},
			repo: repo{"render.sh": sh("rm -r $OUTDIR; ln -s /etc $OUTDIR")},
			err:  "symbolic link OUTDIR points to /etc",
		},
		"OUTDIR removed": {
			command: "render.sh", options: Options{Sandbox: SandboxOff},
			repo: repo{"render.sh": sh("rm -r $OUTDIR")},
			err:  "OUTDIR is not there",
		},
		"too much": {
			command: "render.sh",
			repo:    repo{"render.sh": sh("truncate -s 129M $OUTDIR/a.yaml")},
			err:     "the manifests in it: 129 MiB, the limit \"manifests\"",
		},
		"failure": {
			command: "render.sh a",
			repo:    repo{"render.sh": sh("echo x > $OUTDIR/a.yaml; echo to stdout; echo to stderr >&2; exit 3")},
			err:     "CMD \"render.sh a\" failed, so nothing is applied or pruned: exit status 3; its last lines:\n  to std",
		},
		"silent failure": {command: "false", repo: repo{}, err: "exit status 1, without a word"},
		"signal":         {command: "render.sh", repo: repo{"render.sh": sh("kill -9 $$")}, err: "killed by signal 9 (killed)"},
		"not executable": {command: "render.sh", repo: repo{"render.sh": "echo"}, err: "permission denied (it needs to be executable in git"},
		"no interpreter": {command: "render.sh", repo: repo{"render.sh": "#!/nowhere/sh\n"}, err: "#!, installed?"},
		"unset and empty variables": {
			command: `render.sh $NOTHING "$NOTHING" ${SET}`, options: Options{Environ: []string{"PATH=" + testPath, "SET=x y"}},
			repo:  repo{"render.sh": sh(`echo "$#" "$@" > $OUTDIR/a.yaml`)},
			files: map[string]string{"OUTDIR/a.yaml": "3  x y\n"},
		},
		"nothing to read":  {command: "render.sh", repo: repo{"render.sh": sh("cat > $OUTDIR/a.yaml")}, files: map[string]string{"OUTDIR/a.yaml": ""}},
		"no PATH":          {command: "cp a.yaml $OUTDIR", options: Options{Environ: []string{"X=y"}}, repo: repo{"a.yaml": "a"}, files: map[string]string{"OUTDIR/a.yaml": "a"}},
		"relative on PATH": {command: "tool", options: Options{Environ: []string{"PATH=bin:."}}, repo: repo{"bin/tool": sh("exit 1"), "a.yaml": "a"}, files: map[string]string{"a.yaml": "a"}, notes: "tool exists neither"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.options.Command = test.command
			if test.options.Sandbox == SandboxAuto {
				test.options.Sandbox = SandboxRequire
			}
			result, err := newTransform(t, test.options).Run(t.Context(), test.repo.input("1"))
			if !checkError(t, err, test.err) {
				return
			}
			compare(t, contents(t, result.Files), test.files)
			if notes := strings.Join(result.Notes, "\n"); (test.notes == "") != (notes == "") || !strings.Contains(notes, test.notes) {
				t.Errorf("notes %q, want %q", notes, test.notes)
			}
			for name := range test.files {
				if strings.HasPrefix(name, "OUTDIR/") && (result.Source.Kind != KindCommand || result.Source.Dir != "OUTDIR") {
					t.Errorf("source %v", result.Source)
				}
			}
		})
	}
}

// A file without a #! line is run by sh, as in every shell.
func TestCommandWithoutInterpreter(t *testing.T) {
	t.Parallel()
	files := repo{"render.sh": "", "a.yaml": "a"}
	input := files.input("1")
	input.Checkout = func(ctx context.Context, dir string) error {
		return errors.Join(files.checkout(ctx, dir), os.WriteFile(filepath.Join(dir, "render.sh"), []byte("cp a.yaml $1\n"), 0o755), os.Chmod(filepath.Join(dir, "render.sh"), 0o755))
	}
	result, err := newTransform(t, Options{Command: "render.sh $OUTDIR"}).Run(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": "a"})
}

// A process that was forked while the checkout was written may hold its files open
// for a moment, and the kernel runs no program that is open for writing.
func TestCommandStillOpenForWriting(t *testing.T) {
	t.Parallel()
	files := repo{"r": sh("cp a.yaml $OUTDIR"), "a.yaml": "a"}
	input := files.input("1")
	input.Checkout = func(ctx context.Context, dir string) error {
		if err := files.checkout(ctx, dir); err != nil {
			return err
		}
		held, err := os.OpenFile(filepath.Join(dir, "r"), os.O_WRONLY, 0)
		if err == nil {
			time.AfterFunc(200*time.Millisecond, func() { _ = held.Close() })
		}
		return err
	}
	result, err := newTransform(t, Options{Command: "r"}).Run(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": "a"})
}

func TestCommandResultIsAFileSystem(t *testing.T) {
	t.Parallel()
	files := repo{"r": sh("mkdir $OUTDIR/d; echo a > $OUTDIR/d/a.yaml; echo b > $OUTDIR/b.yaml")}
	tr := newTransform(t, Options{Command: "r", Recursive: true})
	result, err := tr.Run(t.Context(), files.input("1"))
	if err != nil {
		t.Fatal(err)
	}
	// It outlives the directories.
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(result.Files, "OUTDIR/d/a.yaml", "OUTDIR/b.yaml"); err != nil {
		t.Error(err)
	}
	info, err := fs.Stat(result.Files, "OUTDIR/d/a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What `git hash-object` says.
	if hash := info.(interface{ Hash() string }).Hash(); hash != "78981922613b2afb6025042ff6bd878ac1994e85" {
		t.Errorf("hash %s", hash)
	}
}

// What a run finds and leaves behind.
func TestCommandDirectories(t *testing.T) {
	t.Parallel()
	const script = `#!/bin/sh
list=$(ls -A $INDIR $OUTDIR $TMPDIR; cat a.yaml)
echo changed > a.yaml
rm -r d && ln -s $1 d
mkdir -p $TMPDIR/readonly/deep && chmod 500 $TMPDIR/readonly
git config core.hooksPath /evil
echo left > $OUTDIR/left.yaml
echo "$list" > $OUTDIR/list.yaml
`
	victim := t.TempDir()
	work := t.TempDir()
	files := repo{"r": script, "a.yaml": "original\n", "d/b.yaml": "b"}
	tr := newTransform(t, Options{Command: "r " + victim, WorkDir: work, Sandbox: SandboxOff})
	var first string
	for revision := range 3 {
		result, err := tr.Run(t.Context(), files.input(strconv.Itoa(revision)))
		if err != nil {
			t.Fatal(err)
		}
		list := contents(t, result.Files)["OUTDIR/list.yaml"]
		if first == "" {
			first = list
		}
		if list != first || !strings.HasSuffix(list, "original\n") || strings.Contains(list, "left") {
			t.Errorf("run %d found:\n%s\nthe first one:\n%s", revision, list, first)
		}
	}
	if left, _ := os.ReadDir(victim); len(left) > 0 {
		t.Errorf("the checkout followed a link that CMD had left: %v", left)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(work); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	files := repo{"r": sh("env > $OUTDIR/env.yaml")}
	tr := newTransform(t, Options{
		Command: "r", WorkDir: work, RepoName: "my repo",
		Environ: []string{
			"PATH=" + testPath, "HOME=/root", "MINE=1", "MINE=2", "EMPTY=", "ODD=\xfe",
			"REPO=x", "REPOCREDS=user:secret", "KUBECONFIG=/x", "KUBERNETES_SERVICE_HOST=1.2.3.4", "KUBERNETESX=stays",
			"http_proxy=http://user:secret@proxy:3128", "HTTPS_PROXY=proxy:3128", "All_Proxy=user:secret@proxy", "no_proxy=localhost",
			"DENIED=secret", "INDIR=/wrong", "TMPDIR=/wrong", "=C:=x", "nonsense",
		},
		OwnVariables: []string{"REPO", "REPOCREDS", "KUBECONFIG"}, EnvDeny: []string{"DENIED", "NEVER"},
	})
	result, err := tr.Run(t.Context(), files.input("4242"))
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(work, "kubesync-my-repo")
	want := map[string]string{
		"PATH": testPath, "HOME": base + "/TMPDIR", "MINE": "2", "EMPTY": "", "ODD": "\xfe", "KUBERNETESX": "stays",
		"HTTPS_PROXY": "proxy:3128", "no_proxy": "localhost",
		"INDIR": base + "/INDIR", "OUTDIR": base + "/OUTDIR", "TMPDIR": base + "/TMPDIR", "PWD": base + "/INDIR",
		"REVISION": "4242", "REPO_NAME": "my repo",
	}
	for line := range strings.Lines(contents(t, result.Files)["OUTDIR/env.yaml"]) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if got, ok := want[name]; !ok || got != value {
			t.Errorf("%s is %q, want %q", name, value, got)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestCommandOnRevision(t *testing.T) {
	t.Parallel()
	counter := filepath.Join(t.TempDir(), "counter")
	files := repo{"r": sh("echo >> "+counter, "cp a.yaml $OUTDIR", "! grep -q fail a.yaml"), "a.yaml": "a"}
	runs := func() int {
		data, _ := os.ReadFile(counter)
		return len(data)
	}
	for _, onRevision := range []bool{false, true} {
		if err := os.WriteFile(counter, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tr := newTransform(t, Options{Command: "r", OnRevisionOnly: onRevision, Sandbox: SandboxOff})
		want := 0
		step := func(what, revision string, rerun bool, ran, fails bool) {
			t.Helper()
			input := files.input(revision)
			input.Rerun = rerun
			_, err := tr.Run(t.Context(), input)
			if (err != nil) != fails {
				t.Errorf("%s: error %v", what, err)
			}
			if ran || !onRevision {
				want++
			}
			if runs() != want {
				t.Errorf("on revision %v: %s: CMD has run %d times, want %d", onRevision, what, runs(), want)
			}
		}
		step("first", "1", false, true, false)
		step("again", "1", false, false, false)
		step("after a failed sync", "1", true, true, false)
		step("new revision", "2", false, true, false)
		files["a.yaml"] = "fail"
		step("failing revision", "3", false, true, true)
		step("failing again", "3", false, true, true)
		files["a.yaml"] = "a"
		step("back to one that was good", "2", false, true, false)
		step("and again", "2", false, false, false)
	}
}

// A repository's CMD comes and goes with its revisions, and notes are said once for each.
func TestCommandComesAndGoes(t *testing.T) {
	t.Parallel()
	with, without := repo{"r": sh("cp a.yaml $OUTDIR/b.yaml"), "a.yaml": "a"}, repo{"a.yaml": "a"}
	tr := newTransform(t, Options{Command: "r", OnRevisionOnly: true})
	for _, step := range []struct {
		repo     repo
		revision string
		files    string
		notes    int
	}{
		{without, "1", "a.yaml", 1}, {without, "1", "a.yaml", 0}, {with, "2", "OUTDIR/b.yaml", 0},
		{without, "1", "a.yaml", 1}, {with, "2", "OUTDIR/b.yaml", 0}, {with, "2", "OUTDIR/b.yaml", 0},
	} {
		result, err := tr.Run(t.Context(), step.repo.input(step.revision))
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, result.Files); got != step.files || len(result.Notes) != step.notes {
			t.Errorf("revision %s: %s, notes %q, want %+v", step.revision, got, result.Notes, step)
		}
	}
}

func TestCommandFailsToCheckOut(t *testing.T) {
	t.Parallel()
	input := repo{"r": sh("true")}.input("1")
	input.Checkout = func(context.Context, string) error { return errors.New("no such object") }
	_, err := newTransform(t, Options{Command: "r"}).Run(t.Context(), input)
	checkError(t, err, "check out revision 1 for CMD: no such object")
}

func TestCommandOutput(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	files := repo{"r": sh(
		"for i in $(seq 1 30); do echo line $i; done",
		`printf 'colour \033[31m and \377 and \r\n'`,
		"head -c 100000 /dev/zero | tr '\\0' x; echo",
		"printf 'no line break'", "exit 1")}
	_, err := newTransform(t, Options{Command: "r", Log: zerolog.New(log).Level(zerolog.DebugLevel).With().Str("own", "logger").Logger()}).Run(t.Context(), files.input("1"))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[1] != "  line 14" || lines[17] != "  line 30" {
		t.Errorf("%d lines:\n%s", len(lines), err)
	}
	if lines[18] != "  colour \ufffd[31m and \ufffd and " {
		t.Errorf("line %q", lines[18])
	}
	if !strings.HasSuffix(lines[19], "x… (99000 bytes more)") || len(lines[19]) > 1100 {
		t.Errorf("a line of %d bytes: %.50s", len(lines[19]), lines[19])
	}
	if lines[20] != "  no line break" {
		t.Errorf("line %q", lines[20])
	}
	if n := strings.Count(log.String(), `"level":"debug"`); n != 33 {
		t.Errorf("%d lines in the log", n)
	}
	if !strings.Contains(log.String(), `{"level":"debug","own":"logger","stream":"stdout","message":"line 1"}`) {
		t.Errorf("the log: %.300s", log)
	}
}

func TestCommandTimeout(t *testing.T) {
	t.Parallel()
	marker := uniqueSleep(t)
	files := repo{"r": sh("echo before", marker)}
	tr := newTransform(t, Options{Command: "r", Timeout: 5 * time.Second})
	_, err := tr.Run(t.Context(), files.input("1"))
	checkError(t, err, `CMD "r" failed, so nothing is applied or pruned: killed with everything it had started: it took longer than TIMEOUT, 5s; its last lines:`+"\n  before")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no DeadlineExceeded", err)
	}
	checkGone(t, marker)
}

func TestCommandCancelled(t *testing.T) {
	t.Parallel()
	marker := uniqueSleep(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("shutting down")
	// The log shows that it runs.
	log := zerolog.New(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("running")) {
			cancel(stop)
		}
		return len(line), nil
	}))
	files := repo{"r": sh("setsid "+marker+" &", "echo running", marker)}
	_, err := newTransform(t, Options{Command: "r", Log: log}).Run(ctx, files.input("1"))
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	checkGone(t, marker)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

// Whatever CMD has started ends with it, and none of it keeps us waiting, though it
// holds on to CMD's output.
func TestCommandLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"background":               "SLEEP &",
		"ignoring hang-ups":        "nohup SLEEP &",
		"other group":              "set -m; SLEEP &",
		"other session":            "setsid SLEEP &",
		"orphan in other session":  "setsid sh -c 'setsid SLEEP & SLEEP & exit' ",
		"many":                     "for i in $(seq 1 100); do setsid sh -c 'SLEEP & exec SLEEP' & done",
		"stopped":                  "SLEEP & kill -STOP $!",
		"restarting for some time": `setsid sh -c 'for i in $(seq 1 1000); do setsid sh -c "exec SLEEP" & done' &`,
	}
	for name, script := range tests {
		for _, mode := range []SandboxMode{SandboxRequire, SandboxOff} {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				t.Parallel()
				marker := uniqueSleep(t)
				files := repo{"r": sh(strings.ReplaceAll(script, "SLEEP", marker), "echo x > $OUTDIR/a.yaml")}
				tr := newTransform(t, Options{Command: "r", Sandbox: mode, Timeout: time.Minute})
				result, err := tr.Run(t.Context(), files.input("1"))
				if err != nil {
					t.Fatal(err)
				}
				compare(t, contents(t, result.Files), map[string]string{"OUTDIR/a.yaml": "x"})
				checkGone(t, marker)
			})
		}
	}
}

// uniqueSleep returns a command that takes longer than any test, and that no other
// test uses.
func uniqueSleep(t *testing.T) string {
	t.Helper()
	return "sleep 100" + strings.TrimLeft(strconv.FormatInt(time.Now().UnixNano(), 10), "0")
}

// checkGone checks that no process with this command is left.
func checkGone(t *testing.T, command string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		line, _ := os.ReadFile(name)
		if strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), command) {
			t.Errorf("%s still runs: %q", filepath.Dir(name), line)
		}
	}
}

// git works in INDIR, confined, whatever the user's settings are.
func TestCommandUsesGit(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := repo{"r": sh("set -e", "git add -A", "git -c user.name=n -c user.email=e commit -qm message", "git log --format=%s > $OUTDIR/log.yaml", "git config user.name >> $OUTDIR/log.yaml || echo nobody >> $OUTDIR/log.yaml")}
	result, err := newTransform(t, Options{Command: "r", Sandbox: SandboxRequire, Environ: []string{"PATH=" + testPath, "HOME=" + home}}).Run(t.Context(), files.input("1"))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, contents(t, result.Files), map[string]string{"OUTDIR/log.yaml": "message\nnobody\n"})
}
