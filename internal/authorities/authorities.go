package authorities

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Source is where certificates come from: a path, empty for none, and what its user calls
// the setting, for errors.
type Source struct{ Setting, Path string }

// Read returns the certificate authorities of a file and of a directory; nil, which means
// the system's, if there is neither. They take the place of the system's. They are read
// each time that they are used, so renewed files count at once.
func Read(file, dir Source) (*x509.CertPool, error) {
	if file.Path == "" && dir.Path == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if file.Path != "" {
		pem, err := os.ReadFile(file.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Setting, err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", file.Setting, file.Path)
		}
	}
	if dir.Path != "" {
		if err := appendDir(pool, dir.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", dir.Setting, err)
		}
	}
	return pool, nil
}

// appendDir takes every certificate in a directory. OpenSSL wants hashed names there; here
// any will do.
func appendDir(pool *x509.CertPool, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		// To open a pipe would wait for whoever writes to it.
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		pem, err := os.ReadFile(name)
		found = err == nil && pool.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return fmt.Errorf("%s holds no certificate in PEM form", dir)
	}
	return nil
}
