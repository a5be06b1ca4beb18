package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubesync/kubesync/test/canary"
)

// secretFiles are the variables of kubesync's that name a file with a secret in it.
func secretFiles() []string {
	return []string{"REPOCREDS_FILE", "SSH_KEY_FILE", "WEBHOOK_SECRET_FILE", "LISTEN_TOKEN_FILE", "LISTEN_TLS_KEY_FILE"}
}

// keep registers a credential, unless it is too short to be searched for.
func (s *scenario) keep(value string) {
	if len(value) >= canary.Shortest {
		_ = s.secrets.Add(canary.Credential, value) // it is long enough
	}
}

// noticeSecret registers the secrets in a variable of kubesync's.
func (s *scenario) noticeSecret(name, value string) {
	if name == "REPOCREDS" {
		_, password, _ := strings.Cut(value, ":")
		s.keep(password)
	}
	for _, one := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		if parsed, err := url.Parse(one); err == nil && parsed.User != nil {
			password, _ := parsed.User.Password()
			s.keep(password)
		}
	}
}

// noticeFiles registers the secrets in the files that a daemon is given, as they are
// now: scripts rotate them.
func (s *scenario) noticeFiles(variables map[string]string) error {
	var errs []error
	for name, path := range variables {
		switch {
		case name == "KUBECONFIG":
			// One that cannot be read is for kubesync to tell of.
			_ = s.secrets.AddKubeconfig(path)
		case slices.Contains(secretFiles(), name):
			errs = append(errs, s.secrets.AddFile(path))
		}
	}
	return errors.Join(errs...)
}

func (s *scenario) secret(args []string) error {
	for _, value := range args {
		if err := s.secrets.Add(canary.Credential, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) scanNow([]string) error { return s.scan() }

// scanAtEnd searches all output once the daemons have ended.
func (s *scenario) scanAtEnd() {
	if err := s.scan(); err != nil {
		s.t.Error(err)
	}
	s.searched(s.secrets.Covered())
}

// scan returns where secrets were found.
func (s *scenario) scan() error {
	errs := []error{s.scanOutput(), s.scanTemporary(), s.scanProcesses()}
	for _, c := range s.clusters {
		errs = append(errs, s.scanCluster(c))
	}
	return errors.Join(errs...)
}

// scanOutput searches what kubesync has printed and answered.
func (s *scenario) scanOutput() error {
	return scanFiles(s.output(), func(name string, content []byte) error {
		return s.secrets.Search("the output "+name, content)
	})
}

// scanTemporary searches what lies in the directory for temporary files. A work tree
// there may hold what is in git.
func (s *scenario) scanTemporary() error {
	return scanFiles(s.temporary(), func(name string, content []byte) error {
		return s.secrets.Search("the temporary file "+name, content, canary.Credential)
	})
}

// scanFiles searches the files below a directory. What goes away meanwhile is gone.
func scanFiles(dir string, search func(name string, content []byte) error) error {
	var errs []error
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !entry.Type().IsRegular():
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		errs = append(errs, search(name, content))
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// scanProcesses searches how the processes were called that kubesync has started.
func (s *scenario) scanProcesses() error {
	var errs []error
	for _, watch := range s.children {
		for what, text := range watch.Seen() {
			errs = append(errs, s.secrets.Search("the "+what, text, canary.Credential))
		}
	}
	return errors.Join(errs...)
}

// scanCluster searches what kubesync writes into clusters besides what is in git.
func (s *scenario) scanCluster(c *testCluster) error {
	if !c.Up() {
		return nil // the script stopped it
	}
	var errs []error
	for _, kind := range []string{"configmaps", "events", "leases.coordination.k8s.io"} {
		list, err := c.list(s.t.Context(), "", kind, "")
		if err != nil {
			return fmt.Errorf("searching %s for secrets: %w", kind, err)
		}
		for _, object := range list {
			content, err := json.Marshal(object.Object)
			if err != nil {
				return fmt.Errorf("searching %s for secrets: %w", kind, err)
			}
			errs = append(errs, s.secrets.Search(kind+" "+object.GetNamespace()+"/"+object.GetName(), content))
		}
	}
	return errors.Join(errs...)
}
