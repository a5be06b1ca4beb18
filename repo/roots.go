package repo

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Roots returns the certificate authorities of a file and a directory, each
// empty for none; nil, which means the system's, if both are. As in git they
// take the place of the system's. They are read at every poll, so renewed files
// count at once.
func Roots(file, dir string) (*x509.CertPool, error) {
	if file == "" && dir == "" {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("GIT_SSL_CAINFO: %w", err)
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("GIT_SSL_CAINFO: there is no PEM certificate in %s", file)
		}
	}
	if dir != "" {
		if err := appendDir(roots, dir); err != nil {
			return nil, fmt.Errorf("GIT_SSL_CAPATH: %w", err)
		}
	}
	return roots, nil
}

// appendDir takes every certificate in a directory. OpenSSL wants hashed names
// there; we take any.
func appendDir(roots *x509.CertPool, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		// What cannot be read as a file (a directory, a dangling link) is none.
		pem, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && roots.AppendCertsFromPEM(pem) {
			found = true
		}
	}
	if !found {
		return fmt.Errorf("there is no PEM certificate in %s", dir)
	}
	return nil
}
