package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// listen opens an address. The error says what to do.
func listen(to Listen) (net.Listener, error) {
	if to.Network == "unix" {
		return listenSocket(to.Address)
	}
	listener, err := net.Listen("tcp", to.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: set it to an address of this machine that is free, or to \"off\"", err)
	}
	return listener, nil
}

// listenSocket opens a socket that only this user may connect to. It is removed when
// the listener is closed.
func listenSocket(path string) (net.Listener, error) {
	if err := clear(path); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: its directory must be there, and kubesync must be able to write to it", err)
	}
	// Until then the umask holds, and no usual one lets others write, which is what
	// connecting takes.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keep others from socket %s: %w", path, err), listener.Close())
	}
	return listener, nil
}

// dialTimeout is plenty for a socket of this machine.
const dialTimeout = time.Second

// clear removes a socket on which no one listens any more.
func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there already and is no socket: name another path, or remove it", path)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("another process listens on %s: stop it, or name another path", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("the socket of a process that has ended cannot be replaced: %w", err)
	}
	return nil
}
