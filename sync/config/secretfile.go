package config

import "github.com/kubesync/kubesync/sync/config/redact"

// SecretFile is a file with one secret, for example a token. The zero value names
// none.
type SecretFile struct {
	name     string
	redactor *redact.Redactor
}

// Given reports whether a file is named.
func (f SecretFile) Given() bool { return f.name != "" }

// String returns the file's name.
func (f SecretFile) String() string { return f.name }

// Read returns the secret as it is now, without the end of its last line: a Secret in
// a volume may have been rotated. It is added to the redactor. An error names
// the file and nothing of its content.
func (f SecretFile) Read() (string, error) {
	secret, err := readSecretFile(f.name)
	f.redactor.Add(secret)
	return secret, err
}
