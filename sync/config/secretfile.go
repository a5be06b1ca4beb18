package config

// SecretFile is a file with one secret, for example a token. The zero value names
// none.
type SecretFile struct {
	name     string
	redactor *Redactor
}

// Given tells whether a file is named.
func (f SecretFile) Given() bool { return f.name != "" }

// String returns the file's name.
func (f SecretFile) String() string { return f.name }

// Read returns the secret as it is now, without the end of its last line: a Secret in
// a volume may have been rotated. The redactor is told what was found. An error names
// the file and nothing of its content.
func (f SecretFile) Read() (string, error) {
	secret, err := readSecretFile(f.name)
	f.redactor.Add(secret)
	return secret, err
}
