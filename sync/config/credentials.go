package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync/config/redact"
)

// Credentials is where user and password for a repo over http or https come from.
// The zero value is no credentials.
type Credentials struct {
	file     string           // read at every call of Read
	fixed    repo.Credentials // if file is empty
	redactor *redact.Redactor
}

// Read returns the credentials, false if there are none. A file is read anew each
// time, as a Secret in a volume may have been rotated, and added to the redactor. The error names the file and nothing of its content.
func (c Credentials) Read() (repo.Credentials, bool, error) {
	if c.file == "" {
		return c.fixed, c.fixed != repo.Credentials{}, nil
	}
	content, err := os.ReadFile(c.file)
	if err != nil {
		return repo.Credentials{}, false, err // it names the file
	}
	credentials, err := parseCredentials(string(content))
	if err != nil {
		return repo.Credentials{}, false, fmt.Errorf("%s: %w", c.file, err)
	}
	c.redactor.Add(redact.Basic(credentials.User, credentials.Password)...)
	return credentials, true, nil
}

// blanks are what a file that was filled with nothing may hold.
const blanks = " \t\r\n\v\f"

// parseCredentials reads "user:password", or "user" alone. What an editor or
// "echo" puts at the end of a line is no part of a password; blanks are, but blanks
// alone are no credentials.
func parseCredentials(text string) (repo.Credentials, error) {
	text = strings.TrimRight(text, "\r\n")
	switch {
	case strings.Trim(text, ":"+blanks) == "":
		return repo.Credentials{}, errors.New("blank: it must be user:password")
	case strings.ContainsAny(text, "\r\n\x00"):
		return repo.Credentials{}, errors.New("more than one line: it must be user:password")
	}
	user, password, _ := strings.Cut(text, ":")
	return repo.Credentials{User: user, Password: password}, nil
}
