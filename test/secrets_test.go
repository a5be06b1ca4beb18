package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shortestSecret is what can be searched for without finding it everywhere.
const shortestSecret = 5

// keep registers a value as secret.
func (s *scenario) keep(value string) {
	if len(value) >= shortestSecret {
		s.secrets[value] = true
	}
}

// noticeSecret registers the password in a variable of kubesync's.
func (s *scenario) noticeSecret(name, value string) {
	switch name {
	case "REPOCREDS":
		_, password, _ := strings.Cut(value, ":")
		s.keep(password)
	case "REPO":
		for _, one := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
			if parsed, err := url.Parse(one); err == nil && parsed.User != nil {
				password, _ := parsed.User.Password()
				s.keep(password)
			}
		}
	}
}

func (s *scenario) secret(args []string) error {
	for _, value := range args {
		if len(value) < shortestSecret {
			return fmt.Errorf("a secret of less than %d characters is found everywhere", shortestSecret)
		}
		s.keep(value)
	}
	return nil
}

func (s *scenario) scanNow([]string) error { return s.scan() }

// scanAtEnd searches all output once the daemons have ended.
func (s *scenario) scanAtEnd() {
	if err := s.scan(); err != nil {
		s.t.Error(err)
	}
}

// scan returns where secrets were found.
func (s *scenario) scan() error {
	if len(s.secrets) == 0 {
		return nil
	}
	errs := []error{s.scanOutput()}
	for _, c := range s.clusters {
		errs = append(errs, s.scanCluster(c))
	}
	return errors.Join(errs...)
}

// scanOutput searches what kubesync has printed.
func (s *scenario) scanOutput() error {
	var errs []error
	err := filepath.WalkDir(s.output(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		errs = append(errs, s.scanText("the output "+entry.Name(), content))
		return nil
	})
	return errors.Join(append(errs, err)...)
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
			errs = append(errs, s.scanText(kind+" "+object.GetNamespace()+"/"+object.GetName(), content))
		}
	}
	return errors.Join(errs...)
}

// scanText searches for each secret as it is and in the usual encodings.
func (s *scenario) scanText(where string, content []byte) error {
	for _, secret := range slices.Sorted(maps.Keys(s.secrets)) {
		for how, form := range map[string]string{
			"as it is": secret, "in base64": base64.StdEncoding.EncodeToString([]byte(secret)), "escaped": url.QueryEscape(secret),
		} {
			if at := bytes.Index(content, []byte(form)); at >= 0 {
				around := content[max(0, at-100):min(len(content), at+len(form)+100)]
				return fmt.Errorf("%s holds a secret %s: …%s…", where, how, around)
			}
		}
	}
	return nil
}
