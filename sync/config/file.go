package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// checkFile reports whether a file can be read. Its content is read when it is needed.
func checkFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: set the path of a readable file", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.IsDir() {
		return fmt.Errorf("%s is a directory: set the path of a file", name)
	}
	return nil
}

// checkDirectory reports whether a directory can be read.
func checkDirectory(name string) error {
	_, err := os.ReadDir(name)
	return err
}

// checkCertificates reports whether a file holds certificates.
func checkCertificates(name string) error {
	content, err := os.ReadFile(name)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
		return fmt.Errorf("%s holds no certificate in PEM form", name)
	}
	return err
}

// exists reports whether there is a file of that name, readable or not.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, os.ErrNotExist)
}

// readSecretFile returns the content of a file without the end of its last line. Blanks
// alone are no secret: they come from a Secret that was filled with an empty variable, and
// are easy to guess.
func readSecretFile(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(content), "\r\n")
	if strings.TrimSpace(secret) == "" {
		return "", fmt.Errorf("%s is empty or blank: it must hold the secret", name)
	}
	return secret, nil
}
