package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	if _, err := os.Lstat(filepath.Join(u.path, ".git")); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	_, common, err := gitDirs(u.path)
	if err != nil {
		return "", err
	}
	settings, err := readConfig(common)
	if err != nil {
		return "", err
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
