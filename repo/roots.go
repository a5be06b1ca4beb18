package repo

import (
	"crypto/x509"

	"github.com/kubesync/kubesync/internal/authorities"
)

// Roots returns the certificate authorities of a file and a directory, each empty for
// none; nil, which means the system's, if both are.
func Roots(file, dir string) (*x509.CertPool, error) {
	return authorities.Read(authorities.Source{Setting: "GIT_SSL_CAINFO", Path: file}, authorities.Source{Setting: "GIT_SSL_CAPATH", Path: dir})
}
