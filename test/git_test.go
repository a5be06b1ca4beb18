package test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// shortHash is how many digits of a hash kubesync prints.
const shortHash = 7

func (s *scenario) repo(args []string) error {
	branch := "master"
	args, err := flags("repo", args, func(f *flag.FlagSet) { f.StringVar(&branch, "branch", branch, "") })
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("want repo [-branch BRANCH] NAME")
	}
	if s.repos[args[0]], err = gitserver.CreateRepo(s.repoDir(), args[0], branch); err != nil {
		return err
	}
	return nil
}

func (s *scenario) theRepo(name string) (*gitserver.Repo, error) {
	if r := s.repos[name]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("there is no repository %q: make it with the command repo", name)
}

func (s *scenario) commit(args []string) error {
	if len(args) < 3 {
		return errors.New("want commit NAME DIR SUBJECT [PARAGRAPH…]")
	}
	r, err := s.theRepo(args[0])
	if err != nil {
		return err
	}
	if _, err := r.CommitDir(strings.Join(args[2:], "\n\n"), s.ts.MkAbs(args[1])); err != nil {
		return err
	}
	return s.setRevision(r)
}

func (s *scenario) git(args []string) error {
	var at time.Time
	args, err := flags("git", args, func(f *flag.FlagSet) {
		f.Func("at", "", func(value string) (err error) {
			at, err = time.Parse(time.RFC3339, value)
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(args) < 2 {
		return errors.New("want git [-at TIME] NAME ARG…")
	}
	r, err := s.theRepo(args[0])
	if err != nil {
		return err
	}
	out, err := r.GitAt(at, args[1:]...)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.ts.Stdout(), out)
	return s.setRevision(r)
}

// setRevision sets the script's variables to what is checked out, unless there
// is no commit yet.
func (s *scenario) setRevision(r *gitserver.Repo) error {
	hash, err := r.Head()
	if err != nil || hash == "" {
		return err
	}
	s.set("rev", hash)
	s.set("short", hash[:shortHash])
	s.set(r.Name, hash)
	return nil
}
