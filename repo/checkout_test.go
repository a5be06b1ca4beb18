package repo

import (
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubesync/kubesync/test/lab/gitbytes"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// same expects that a checkout is what git clone makes of a commit: files, modes
// and symlinks, and a .git that git is content with.
func same(t testing.TB, s site, hash, dir string) {
	t.Helper()
	expected := filepath.Join(t.TempDir(), "clone")
	gitIn(t, s.Bare, "clone", "--quiet", "--no-checkout", s.Bare, expected)
	gitIn(t, expected, "checkout", "--quiet", hash)
	if got, want := worktreeListing(t, dir), worktreeListing(t, expected); got != want {
		t.Errorf("the checkout is\n%s\nwant\n%s", got, want)
	}
	for want, args := range map[string][]string{
		"":       {"status", "--porcelain", "--ignored"},
		hash:     {"rev-parse", "HEAD"},
		"HEAD":   {"rev-parse", "--abbrev-ref", "HEAD"},
		"commit": {"cat-file", "-t", "HEAD"},
		"1":      {"rev-list", "--count", "HEAD"},
	} {
		if got := gitIn(t, dir, args...); got != want {
			t.Errorf("git %s: got %q, want %q", strings.Join(args, " "), got, want)
		}
	}
	gitIn(t, dir, "diff-index", "--quiet", "HEAD") // looks at the index alone
	gitIn(t, dir, "fsck", "--strict", "--no-dangling")
}

// worktreeListing shows the files of a work tree with what is in them.
func worktreeListing(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		if name == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out.WriteString(name + " " + info.Mode().String())
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out.WriteString(" -> " + target)
		case !d.IsDir():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out.WriteString(" " + string(content[:min(len(content), 20)]))
		}
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	onEach(t, "master", func(t *testing.T, s site, url string, how func(*Options)) {
		s.commit("zero", file("0"))
		writeFile(t, filepath.Join(s.Work, "run"), "#!/bin/sh\necho hello\n")
		if err := os.Chmod(filepath.Join(s.Work, "run"), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(s.Work, "a", "b c", "d\te"), "odd name")
		writeFile(t, filepath.Join(s.Work, ".gitignore"), "ignored\n")
		writeFile(t, filepath.Join(s.Work, ".gitattributes"), "*.txt eol=lf\n")
		writeFile(t, filepath.Join(s.Work, "ignored"), "but committed")
		writeFile(t, filepath.Join(s.Work, "empty"), "")
		for name, target := range map[string]string{"in": "a", "out": "/etc/passwd", "up": "../../..", "dangling": "nowhere"} {
			if err := os.Symlink(target, filepath.Join(s.Work, name)); err != nil {
				t.Fatal(err)
			}
		}
		hash, err := s.CommitWork("one")
		if err != nil {
			t.Fatal(err)
		}
		s.tag(true, "v1.0.0")
		s.tag(false, "light")
		r := open(t, url, "", how)
		rev := resolve(t, r)
		dir := filepath.Join(t.TempDir(), "not", "there", "yet")
		for range 2 {
			if err := r.Checkout(t.Context(), rev, dir); err != nil {
				t.Fatal(err)
			}
			same(t, s, hash, dir)
		}
		for want, args := range map[string][]string{
			"v1.0.0":        {"describe"},
			"one":           {"log", "-1", "--format=%s"},
			hash:            {"rev-parse", "origin/master"},
			"light\nv1.0.0": {"tag", "--points-at", "HEAD"},
			url:             {"config", "remote.origin.url"},
			"true":          {"rev-parse", "--is-shallow-repository"},
			"tag":           {"cat-file", "-t", "v1.0.0"},
			"ignored":       {"ls-files", "ignored"},
		} {
			if got := gitIn(t, dir, args...); got != want {
				t.Errorf("git %s: got %q, want %q", strings.Join(args, " "), got, want)
			}
		}

		two := s.commit("two", map[string]string{"a": "a file now", "run/x": "a directory now"})
		if err := r.Checkout(t.Context(), resolve(t, r), dir); err != nil {
			t.Fatal(err)
		}
		same(t, s, two, dir)
	})
}

// damage does to a checkout what a script could.
var damage = map[string]func(t *testing.T, dir string){
	"nothing":        func(*testing.T, string) {},
	"changed a file": func(t *testing.T, dir string) { writeFile(t, filepath.Join(dir, "dir", "file"), "changed") },
	"changed a file, kept size and time": func(t *testing.T, dir string) {
		path := filepath.Join(dir, "dir", "file")
		info, err := os.Stat(path)
		must(t, err)
		writeFile(t, path, "!")
		must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	},
	"added files": func(t *testing.T, dir string) {
		writeFile(t, filepath.Join(dir, "new"), "")
		writeFile(t, filepath.Join(dir, "new dir", "deep", "file"), "")
		writeFile(t, filepath.Join(dir, "ignored.o"), "")
		writeFile(t, filepath.Join(dir, ".hidden"), "")
	},
	"removed files": func(t *testing.T, dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, "dir")))
		must(t, os.Remove(filepath.Join(dir, "run")))
	},
	"changed modes": func(t *testing.T, dir string) {
		must(t, os.Chmod(filepath.Join(dir, "run"), 0o644))
		must(t, os.Chmod(filepath.Join(dir, "dir", "file"), 0o4777))
		must(t, os.Chmod(filepath.Join(dir, "dir"), 0o777|fs.ModeSetgid))
	},
	"took away permissions": func(t *testing.T, dir string) {
		writeFile(t, filepath.Join(dir, "new", "deep", "file"), "")
		must(t, os.Chmod(filepath.Join(dir, "new", "deep"), 0o555))
		must(t, os.Chmod(filepath.Join(dir, "new"), 0))
		must(t, os.Chmod(filepath.Join(dir, "dir", "file"), 0))
		must(t, os.Chmod(filepath.Join(dir, "dir"), 0))
		must(t, os.Chmod(filepath.Join(dir, ".git", "objects"), 0o400))
		must(t, os.Chmod(dir, 0o100))
	},
	"directory for a file": func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, "run")))
		writeFile(t, filepath.Join(dir, "run", "x"), "")
	},
	"file for a directory": func(t *testing.T, dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, "dir")))
		writeFile(t, filepath.Join(dir, "dir"), "")
	},
	"file for a symlink": func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, "link")))
		writeFile(t, filepath.Join(dir, "link"), "dir/file")
	},
	"another symlink": func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, "link")))
		must(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	},
	"pipe for a file": func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, "run")))
		must(t, syscall.Mkfifo(filepath.Join(dir, "run"), 0o644))
	},
	"git": func(t *testing.T, dir string) {
		gitIn(t, dir, "checkout", "--quiet", "-b", "mine")
		gitIn(t, dir, "config", "core.fsmonitor", "evil")
		gitIn(t, dir, "rm", "--quiet", "run")
		gitIn(t, dir, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--message", "mine")
		writeFile(t, filepath.Join(dir, ".git", "hooks", "post-checkout"), "#!/bin/sh\n")
		writeFile(t, filepath.Join(dir, ".git", "index.lock"), "")
	},
	"no .git": func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".git"))) },
	"file .git": func(t *testing.T, dir string) {
		replaceGit(t, dir)
		writeFile(t, filepath.Join(dir, ".git"), "gitdir: /x")
	},
	"link .git": func(t *testing.T, dir string) {
		replaceGit(t, dir)
		must(t, os.Symlink("/tmp", filepath.Join(dir, ".git")))
	},
	"truncated objects": func(t *testing.T, dir string) { truncateAll(t, filepath.Join(dir, ".git")) },
	"truncated files":   func(t *testing.T, dir string) { truncateAll(t, dir) },
	"no directory":      func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
	"file for it all":   func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)); writeFile(t, dir, "") },
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func replaceGit(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".git"))) }

// truncateAll cuts each file in half, as a crash may.
func truncateAll(t *testing.T, dir string) {
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()/2)
	}))
}

// TestRestore damages a checkout in all those ways, as a user who is not root:
// root may do what a daemon may not.
func TestRestore(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		asNobody(t, "^TestRestore$")
		return
	}
	s, r := damageable(t)
	rev := resolve(t, r)
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "checkout")
			must(t, r.Checkout(t.Context(), rev, dir))
			do(t, dir)
			must(t, r.Checkout(t.Context(), rev, dir))
			same(t, s, rev.ID, dir)
			if branches := gitIn(t, dir, "branch", "--list", "mine"); branches != "" {
				t.Errorf("there is still branch %s", branches)
			}
			if found, err := filepath.Glob(filepath.Join(dir, ".git", "hooks", "*")); err != nil || found != nil {
				t.Errorf("hooks %v, %v", found, err)
			}
		})
	}
}

func damageable(t *testing.T) (site, *Repo) {
	s := newSite(t, t.TempDir(), "master")
	must(t, os.Symlink("dir/file", filepath.Join(s.Work, "link")))
	writeFile(t, filepath.Join(s.Work, "dir", "file"), "1")
	writeFile(t, filepath.Join(s.Work, "run"), "#!/bin/sh\n")
	writeFile(t, filepath.Join(s.Work, "big"), gitbytes.Noise(50_000))
	writeFile(t, filepath.Join(s.Work, ".gitignore"), "*.o\n")
	must(t, os.Chmod(filepath.Join(s.Work, "run"), 0o755))
	if _, err := s.CommitWork("one"); err != nil {
		t.Fatal(err)
	}
	return s, open(t, "file://"+s.Bare, "")
}

// asNobody runs a test of this program as another user.
func asNobody(t *testing.T, run string) {
	t.Helper()
	const nobody = 65534
	home, err := os.MkdirTemp("", "kubesync-nobody-") // t.TempDir's parent is root's alone
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(home)) })
	program := filepath.Join(home, "test")
	copyProgram(t, program)
	must(t, os.Chown(home, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), program, "-test.run", run, "-test.v")
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// copyProgram copies this program to where it can be started. Nothing is forked
// meanwhile: a child would hold the copy open for writing for a moment, and the
// kernel starts no program that is.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	from, err := os.Open(os.Args[0])
	must(t, err)
	defer func() { _ = from.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(out, from)
	must(t, err)
	must(t, out.Close())
}

// TestRestoreTouchesNothingOutside leaves symlinks and hard links behind that lead
// out, and looks whether what they lead to is still as it was.
func TestRestoreTouchesNothingOutside(t *testing.T) {
	t.Parallel()
	s, r := damageable(t)
	rev := resolve(t, r)
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "file"), "mine")
	writeFile(t, filepath.Join(outside, "keep", "config"), "mine")
	dir := filepath.Join(t.TempDir(), "checkout")
	must(t, r.Checkout(t.Context(), rev, dir))
	before := inventory(t, outside)

	must(t, os.RemoveAll(filepath.Join(dir, "dir")))
	must(t, os.Symlink(outside, filepath.Join(dir, "dir")))
	must(t, os.Symlink(filepath.Join(outside, "keep"), filepath.Join(dir, "extra")))
	must(t, os.RemoveAll(filepath.Join(dir, ".git", "objects")))
	must(t, os.Symlink(filepath.Join(outside, "keep"), filepath.Join(dir, ".git", "objects")))
	must(t, os.Remove(filepath.Join(dir, ".git", "index")))
	must(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, ".git", "index")))
	must(t, os.Remove(filepath.Join(dir, "big")))
	must(t, os.Link(filepath.Join(outside, "file"), filepath.Join(dir, "big")))
	must(t, r.Checkout(t.Context(), rev, dir))
	same(t, s, rev.ID, dir)
	if after := inventory(t, outside); after != before {
		t.Errorf("outside was\n%s\nand is\n%s", before, after)
	}

	must(t, os.RemoveAll(dir))
	must(t, os.Symlink(outside, dir))
	must(t, r.Checkout(t.Context(), rev, dir))
	same(t, s, rev.ID, dir)
	if after := inventory(t, outside); after != before {
		t.Errorf("outside was\n%s\nand is\n%s", before, after)
	}
}

// countdown is a context that ends after some looks at it, which is as good as
// being killed at that point: nothing is tidied up.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCheckoutInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), "master")
	files := map[string]string{}
	for _, name := range strings.Fields("a/b/c a/d/e f/g h i/j/k/l m/n") {
		files[name] = name
	}
	hash := s.commit("one", files)
	r := open(t, "file://"+s.Bare, "")
	rev := resolve(t, r)
	must(t, r.pack(t.Context(), r.current))
	dir := filepath.Join(t.TempDir(), "checkout")
	for done := false; !done; {
		err := r.Checkout(&countdown{t.Context(), rand.IntN(16)}, rev, dir)
		done = err == nil
	}
	same(t, s, hash, dir)
}

func TestCheckoutHasNoCredentials(t *testing.T) {
	t.Parallel()
	server := gitserver.Start(t, gitserver.WithBasicAuth("ann", secret))
	newSite(t, server.Dir(), "master").commit("one", file("1"))
	own := strings.Replace(server.URL("site"), "http://", "http://ann:s3cr3t-p%2Fw%3F@", 1)
	r := open(t, own, "", with("ann", secret))
	dir := t.TempDir()
	must(t, r.Checkout(t.Context(), resolve(t, r), dir))
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		hasNoSecret(t, string(content))
		return err
	}))
	if got := gitIn(t, dir, "config", "remote.origin.url"); got != server.URL("site") {
		t.Errorf("origin is %s", got)
	}
}

func TestQuoteConfig(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://example.com/a", `C:\x "quoted" # ; `, "it's"} {
		path := write(t, "[a]\n\tb = "+quoteConfig(text)+"\n")
		if got := gitIn(t, t.TempDir(), "config", "--file", path, "a.b"); got != strings.TrimSpace(text) {
			t.Errorf("git reads %q as %q", text, got)
		}
	}
}
