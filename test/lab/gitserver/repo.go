package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Repo is a bare repository and a work tree in which its commits are made.
type Repo struct {
	Name string
	Bare string // directory of the bare repository
	Work string // directory of the work tree

	mu    sync.Mutex // git allows one writer a repository
	steps int        // run so far
}

// CreateRepo makes an empty repository on the server, whose default branch is
// master.
func (s *Server) CreateRepo(name string) (*Repo, error) {
	return CreateRepo(s.dir, name, "master")
}

// CreateRepo makes an empty repository dir/NAME.git, with its work tree
// dir/NAME, whose default branch is branch.
func CreateRepo(dir, name, branch string) (*Repo, error) {
	r := &Repo{Name: name, Bare: filepath.Join(dir, name+".git"), Work: filepath.Join(dir, name)}
	if err := os.MkdirAll(r.Work, 0o755); err != nil {
		return nil, fmt.Errorf("repository %s: %w", name, err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + branch, r.Bare},
		{"init", "--quiet", "--initial-branch=" + branch},
		{"remote", "add", "origin", r.Bare},
	} {
		if _, err := r.Git(args...); err != nil {
			return nil, err
		}
	}
	if err := r.neverCollects(); err != nil {
		return nil, fmt.Errorf("repository %s: %w", name, err)
	}
	return r, nil
}

// neverCollects has the bare repository do nothing after a push to look for garbage, which
// takes two processes. That stands in its configuration: git keeps what the environment says
// from the process that receives a push. It is no step: dates do not move on.
func (r *Repo) neverCollects() error {
	file, err := os.OpenFile(filepath.Join(r.Bare, "config"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("[receive]\n\tautogc = false\n")
	return errors.Join(err, file.Close())
}

// epoch is when the first step of a repository happens.
func epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Git runs git in the work tree and returns its stdout without white space at
// its ends. Author, committer and dates are fixed: each step is a minute after
// the one before, in every repository alike.
func (r *Repo) Git(args ...string) (string, error) {
	return r.GitAt(time.Time{}, args...)
}

// GitAt is Git with the date of what it makes, for histories out of order.
func (r *Repo) GitAt(when time.Time, args ...string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	if when.IsZero() {
		when = epoch().Add(time.Duration(r.steps) * time.Minute)
	}
	return r.run(when, args...)
}

// run runs git in the work tree. The caller holds mu.
func (r *Repo) run(when time.Time, args ...string) (string, error) {
	date := fmt.Sprintf("%d +0000", when.Unix())
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Work
	cmd.Env = append(bareEnviron(r.Work),
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE="+date)
	cmd.Env = append(cmd.Env, configuration([][2]string{
		{"protocol.file.allow", "always"}, // submodules
		{"advice.detachedHead", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"}, // not even a process that looks whether there is garbage
	})...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w\n%s", strings.Join(args, " "), r.Work, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// Head returns the hash of the commit that is checked out, "" if there is none
// yet. It is no step: dates do not move on.
func (r *Repo) Head() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, err := r.run(epoch(), "rev-parse", "--verify", "--quiet", "HEAD")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", nil
	}
	return out, err
}

// Commit makes the given files (path to content) the whole content of the work
// tree, commits them on the branch that is checked out, pushes and returns the
// commit's hash. A commit that changes nothing is made all the same.
func (r *Repo) Commit(message string, files map[string]string) (string, error) {
	if err := r.clear(); err != nil {
		return "", err
	}
	for name, content := range files {
		path := filepath.Join(r.Work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("commit to %s: %w", r.Name, err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			return "", fmt.Errorf("commit to %s: %w", r.Name, err)
		}
	}
	return r.commit(message)
}

// CommitDir is Commit with the files of a directory. Symlinks and executable
// files stay what they are, and files that start with #! become executable.
func (r *Repo) CommitDir(message, dir string) (string, error) {
	if err := r.clear(); err != nil {
		return "", err
	}
	if err := copyTree(r.Work, dir); err != nil {
		return "", fmt.Errorf("commit to %s: %w", r.Name, err)
	}
	return r.commit(message)
}

// CommitWork commits the work tree as a user left it.
func (r *Repo) CommitWork(message string) (string, error) { return r.commit(message) }

// commit records the work tree and pushes its branch, by force: histories that
// were rewritten are meant.
func (r *Repo) commit(message string) (string, error) {
	for _, args := range [][]string{
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--allow-empty", "--message", message},
		{"push", "--quiet", "--force", "origin", "HEAD"},
	} {
		if _, err := r.Git(args...); err != nil {
			return "", err
		}
	}
	return r.Head()
}

// clear empties the work tree.
func (r *Repo) clear() error {
	entries, err := os.ReadDir(r.Work)
	if err != nil {
		return fmt.Errorf("work tree of %s: %w", r.Name, err)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.Work, e.Name())); err != nil {
			return fmt.Errorf("work tree of %s: %w", r.Name, err)
		}
	}
	return nil
}

// copyTree copies the files of a directory, but no .git at its top.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		return copyFile(target, path, entry)
	})
}

func copyFile(target, path string, entry fs.DirEntry) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 || bytes.HasPrefix(content, []byte("#!")) {
		mode = 0o755
	}
	return os.WriteFile(target, content, mode)
}
