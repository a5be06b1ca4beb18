package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// SaveEtcd makes dir a copy of all that the cluster stores, as it is at one moment. etcd
// stands still meanwhile, for some milliseconds, and finds the copy as it would find
// its files after a power cut.
func (c *Cluster) SaveEtcd(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	if err := c.etcd.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err := os.CopyFS(dir, os.DirFS(c.path("etcd")))
	if err := errors.Join(err, c.etcd.Signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	return nil
}

// RestoreEtcd makes the cluster what it was when SaveEtcd made dir, the way an
// operator does: all servers are stopped, the data is put in place, and they are
// started again, on the same ports. Versions of objects go on from those of then, so
// they are given out a second time. The API server is ready when it returns.
func (c *Cluster) RestoreEtcd(ctx context.Context, dir string) error {
	c.StopAPIServer()
	c.mu.Lock()
	for _, p := range append(c.others, c.etcd) {
		p.Kill()
	}
	c.others, c.etcd = nil, nil
	c.mu.Unlock()
	if err := os.RemoveAll(c.path("etcd")); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.CopyFS(c.path("etcd"), os.DirFS(dir)); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.Chmod(c.path("etcd"), 0o700); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	return c.startServers(ctx)
}
