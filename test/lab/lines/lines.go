// Package lines keeps what a program under test writes, to be read while it writes.
package lines

import (
	"bytes"
	"sync"
)

// Log is what was written so far. Its zero value is empty; all methods may be called
// concurrently.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer; it never fails.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns all of it.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
