package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// checkFile tells whether a file can be read. Its content is read when it is needed.
func checkFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: give the path of a file that kubesync can read", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.IsDir() {
		return fmt.Errorf("%s is a directory: give the path of a file", name)
	}
	return nil
}

// checkDirectory tells whether a directory can be read.
func checkDirectory(name string) error {
	_, err := os.ReadDir(name)
	return err
}

// exists tells whether there is a file of that name, readable or not.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, os.ErrNotExist)
}

// readSecretFile returns the content of a file without the end of its last line. Blanks
// alone are no secret: they come of a Secret that was filled with an empty variable, and
// everybody would guess them.
func readSecretFile(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(content), "\r\n")
	if strings.TrimSpace(secret) == "" {
		return "", fmt.Errorf("%s is empty, or holds blanks alone: put the secret into it", name)
	}
	return secret, nil
}
