package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// SaveEtcd writes all that the cluster stores, as it is at one moment, into a file: a
// backup, made as an operator makes one (etcdctl snapshot save).
func (c *Cluster) SaveEtcd(ctx context.Context, file string) error {
	if err := os.RemoveAll(file); err != nil {
		return fmt.Errorf("save etcd: %w", err)
	}
	return c.tool(ctx, etcdctlProgram, "--endpoints=http://"+c.etcdPort.Address(), "snapshot", "save", file)
}

// RestoreEtcd makes the cluster what it was when SaveEtcd wrote the file, the way an
// operator does: all servers are stopped, the backup is put in the place of the data
// (etcdutl snapshot restore), and they are started again, on the same ports. Versions of
// objects go on from those of then, so they are given out a second time; unless flags
// say otherwise, such as --bump-revision=N and --mark-compacted. The API server is ready
// when it returns.
func (c *Cluster) RestoreEtcd(ctx context.Context, file string, flags ...string) error {
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
	args := append([]string{"snapshot", "restore", file, "--data-dir=" + c.path("etcd")}, flags...)
	if err := c.tool(ctx, etcdutlProgram, args...); err != nil {
		return err
	}
	return c.startServers(ctx)
}

// tool runs one of etcd's own tools.
func (c *Cluster) tool(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, c.Program(program), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, args[0], err, out)
	}
	return nil
}
