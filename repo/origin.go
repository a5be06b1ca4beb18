package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// OriginName returns what the repository is called that a clone on disk came from: the
// name of the URL of its remote "origin". It is empty where the directory is no clone's
// top, or has no such remote. The file is read where it lies, and nothing that it says
// is run.
//
// A directory inside a clone is none: read as a repository of its own it holds only a
// part of what the remote's name stands for.
func (u URL) OriginName() (string, error) {
	if !u.IsFile() {
		return "", nil
	}
	if _, err := os.Lstat(filepath.Join(u.path, ".git")); err != nil {
		return "", ignoreMissing(err)
	}
	_, common, err := gitDirs(u.path)
	if err != nil {
		return "", err
	}
	file, err := os.Open(filepath.Join(common, "config"))
	if err != nil {
		return "", ignoreMissing(err)
	}
	defer func() { _ = file.Close() }()
	settings := config.New()
	if err := config.NewDecoder(file).Decode(settings); err != nil {
		return "", fmt.Errorf("%s: %w", file.Name(), err)
	}
	return nameOfRemote(settings.Section("remote").Subsection("origin").Option("url")), nil
}

// nameOfRemote returns the name in the URL of a remote, which may be a plain path.
func nameOfRemote(remote string) string {
	if parsed, err := ParseURL(remote); err == nil {
		return parsed.Name()
	}
	if remote == "" || strings.Contains(remote, "://") {
		return ""
	}
	return URL{scheme: "file", path: remote}.Name()
}

// ignoreMissing returns an error unless it says that a file does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
