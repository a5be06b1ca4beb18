package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from below the range the kernel hands out by itself
// (32768–60999), so that no outgoing connection gets the port of a server that
// is stopped for a moment.
const (
	firstPort = 20000
	lastPort  = 32000
)

// port is a TCP port on 127.0.0.1 that no other test process takes while it is
// held.
type port struct {
	number int
	lock   *os.File
}

// takePort finds a free port and reserves it by a locked file.
func takePort() (port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("kubesync-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return port{}, fmt.Errorf("reserving a port: %w", err)
	}
	var last error
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := reserve(filepath.Join(dir, strconv.Itoa(number)), number)
		if err == nil {
			return port{number: number, lock: lock}, nil
		}
		last = err
	}
	return port{}, fmt.Errorf("no free port from %d to %d: %w", firstPort, lastPort, last)
}

// reserve locks the file of a port that nobody listens on.
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
	return file, listener.Close()
}

// address is what a server on the port listens at.
func address(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }

func (p port) String() string { return strconv.Itoa(p.number) }

// release lets others have the port.
func (p port) release() {
	if p.lock != nil {
		_ = p.lock.Close()
	}
}
