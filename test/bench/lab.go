package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kubesync/kubesync/test/cluster"
	"github.com/kubesync/kubesync/test/gitserver"
)

// lab is where it all happens: a temporary directory, with the program to be
// measured and a git server in it, and what clusters are asked for.
type lab struct {
	scale
	seed     uint64
	dir      string
	kubesync string // the program, a copy: the tree may be built again meanwhile
	git      *gitserver.Server
	out      io.Writer
	made     int // directories
}

func newLab(chosen settings, out io.Writer) (_ *lab, err error) {
	dir, err := os.MkdirTemp("", "kubesync-bench-")
	if err != nil {
		return nil, fmt.Errorf("directory of the bench: %w", err)
	}
	l := &lab{scale: chosen.scale, seed: chosen.seed, dir: dir, kubesync: filepath.Join(dir, "kubesync"), out: out}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	program, err := os.ReadFile(chosen.kubesync)
	if err != nil {
		return nil, fmt.Errorf("the program to measure: %w", err)
	}
	if err := os.WriteFile(l.kubesync, program, 0o755); err != nil {
		return nil, fmt.Errorf("the program to measure: %w", err)
	}
	l.git, err = gitserver.Launch(gitserver.WithDir(filepath.Join(dir, "git")))
	if err != nil {
		return nil, err
	}
	return l, nil
}

// close ends what runs and removes every trace.
func (l *lab) close() error {
	var err error
	if l.git != nil {
		err = l.git.Close()
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// say tells whoever waits how far it is.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.out, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// makeDir makes a directory of its own for something.
func (l *lab) makeDir(name string) (string, error) {
	l.made++
	dir := filepath.Join(l.dir, name+"-"+strconv.Itoa(l.made))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("directory of the bench: %w", err)
	}
	return dir, nil
}

// site is a cluster with nothing in it but who will work there.
type site struct {
	*cluster.Cluster
	kubesync, peer cluster.Identity
	clients
}

// newSite starts a cluster, with kube-controller-manager or without, and returns
// when it has come to rest.
func (l *lab) newSite(ctx context.Context, controllers bool) (_ *site, err error) {
	dir, err := l.makeDir("cluster")
	if err != nil {
		return nil, err
	}
	options := []cluster.Option{cluster.WithDir(dir), cluster.WithAuditLog, cluster.WithProgress(l.out)}
	if controllers {
		options = append(options, cluster.WithControllers)
	}
	c, err := cluster.Launch(ctx, options...)
	if err != nil {
		return nil, err
	}
	s := &site{Cluster: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if s.kubesync, err = administrator(ctx, c, "kubesync"); err != nil {
		return nil, err
	}
	if s.peer, err = administrator(ctx, c, "peer"); err != nil {
		return nil, err
	}
	if s.clients, err = newClients(c.Config()); err != nil {
		return nil, err
	}
	return s, s.rest(ctx)
}

// administrator returns a ServiceAccount that may do everything.
func administrator(ctx context.Context, c *cluster.Cluster, name string) (cluster.Identity, error) {
	who, err := c.ServiceAccount(ctx, "kube-system", name)
	if err != nil {
		return cluster.Identity{}, err
	}
	return who, c.GrantRole(ctx, who, "cluster-admin")
}

// rest waits until the cluster's processes have next to nothing to do: what one
// contestant left behind shall not be in the way of the next.
func (s *site) rest(ctx context.Context) error {
	const (
		look  = 500 * time.Millisecond
		quiet = 50 * time.Millisecond // of CPU time between two looks
		limit = 90 * time.Second      // a cluster that never rests is measured all the same
	)
	servers, err := cluster.Status(s.Dir())
	if err != nil {
		return err
	}
	before := -time.Hour
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		var now time.Duration
		for _, server := range servers {
			used, err := cpuTime(server.PID)
			if err != nil {
				return err
			}
			now += used
		}
		if now-before < quiet {
			return nil
		}
		before = now
		if err := sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits, but not longer than ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
