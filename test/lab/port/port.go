// Package port reserves TCP ports of this machine for servers of tests that may
// be stopped and started again on the same port.
//
// The kernel's own way, port 0, picks from a range from which outgoing
// connections get theirs too: a port left for a second may be another owner's.
// The ports given out here are below that range, and a lock on a file keeps
// other test processes off a port for as long as it is held.
package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The range is below the kernel's own, 32768 to 60999.
const (
	first = 20000
	last  = 32000
)

// Port is a TCP port of 127.0.0.1 that no other test process takes until
// Release.
type Port struct {
	number int
	lock   *os.File
}

// Take finds a free port and reserves it.
func Take() (Port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("kubesync-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Port{}, fmt.Errorf("reserving a port: %w", err)
	}
	var reason error
	for range 1000 {
		number := first + rand.IntN(last-first)
		lock, err := reserve(filepath.Join(dir, strconv.Itoa(number)), number)
		if err == nil {
			return Port{number: number, lock: lock}, nil
		}
		reason = err
	}
	return Port{}, fmt.Errorf("no free port from %d to %d: %w", first, last, reason)
}

// reserve locks the file of a port that no one listens on.
func reserve(path string, number int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	listener, err := net.Listen("tcp", address(number))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := listener.Close(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	Closed(address(number)) // else the server itself may find the address in use
	return file, nil
}

// address is where a server on the port listens.
func address(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }

// Address is where a server on the port listens: "127.0.0.1:20123".
func (p Port) Address() string { return address(p.number) }

// String is the number.
func (p Port) String() string { return strconv.Itoa(p.number) }

// Release lets others have the port. Releasing the zero Port does nothing.
func (p Port) Release() {
	if p.lock != nil {
		_ = p.lock.Close()
	}
}

// Closed waits, for a second at most, until connections to a server that has
// closed its listener are refused. A process that is just being forked holds the
// listener open until it runs its own program.
func Closed(address string) {
	deadline := time.Now().Add(time.Second)
	for time.Now().Before(deadline) {
		conn, err := net.Dial("tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = conn.Close()
		}
		time.Sleep(time.Millisecond)
	}
}
