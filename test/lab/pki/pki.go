// Package pki makes the certificates of test servers and their users: a
// certificate authority per server, valid for a month. ECDSA, because RSA keys
// take longer to make than the servers take to start.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	PEM  []byte // its certificate
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority makes an authority of its own name and key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the CA %s: %w", name, err)
	}
	template := certificate(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("the CA %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the CA %s: %w", name, err)
	}
	return &Authority{key: key, cert: cert, PEM: encode("CERTIFICATE", der)}, nil
}

// certificate is what all certificates have in common.
func certificate(name string, groups ...string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// Server issues the certificate of a server on this machine.
func (a *Authority) Server(name string) (Pair, error) {
	template := certificate(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	return a.issue(template)
}

// User issues the certificate of a user of the given groups.
func (a *Authority) User(name string, groups ...string) (Pair, error) {
	template := certificate(name, groups...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: keyPEM}, nil
}

// NewKey makes a private key and returns it in PEM too.
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("private key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("private key: %w", err)
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Write puts the pair into dir as name.crt and name.key.
func (p Pair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Cert, 0o600); err != nil {
		return fmt.Errorf("certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600); err != nil {
		return fmt.Errorf("key of %s: %w", name, err)
	}
	return nil
}
