package wire

// Credentials are what a server asks for over http and https. Printed in any
// way they are masked.
type Credentials struct {
	User     string
	Password string
}

const masked = "***"

// String returns a mask: a user name alone can be a token.
func (Credentials) String() string { return masked }

// GoString returns a mask.
func (Credentials) GoString() string { return masked }

// MarshalText returns a mask, so that no encoder finds more.
func (Credentials) MarshalText() ([]byte, error) { return []byte(masked), nil }
