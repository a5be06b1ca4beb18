package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	testlab "github.com/kubesync/kubesync/test/lab"
	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/gitserver"
)

// lab is where it all happens: with a git server, and what clusters are asked for.
type lab struct {
	*testlab.Lab
	scale
	seed uint64
	git  *gitserver.Server
}

func newLab(chosen settings, out io.Writer) (*lab, error) {
	l := &lab{scale: chosen.scale, seed: chosen.seed}
	var err error
	if l.Lab, err = testlab.Open("bench", chosen.kubesync, out); err != nil {
		return nil, err
	}
	if l.git, err = gitserver.Launch(gitserver.WithDir(filepath.Join(l.Dir, "git"))); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// close ends what runs and removes every trace.
func (l *lab) close() error { return errors.Join(l.git.Close(), l.Close()) }

// site is a cluster with nothing in it but who will work there.
type site struct {
	*cluster.Cluster
	kubesync, peer cluster.Identity
	clients
}

// newSite starts a cluster, with kube-controller-manager or without, and returns
// when it has come to rest.
func (l *lab) newSite(ctx context.Context, controllers bool) (_ *site, err error) {
	options := []cluster.Option{cluster.WithAuditLog}
	if controllers {
		options = append(options, cluster.WithControllers)
	}
	c, err := l.Cluster(ctx, options...)
	if err != nil {
		return nil, err
	}
	s := &site{Cluster: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if s.kubesync, err = testlab.Administrator(ctx, c, "kubesync"); err != nil {
		return nil, err
	}
	if s.peer, err = testlab.Administrator(ctx, c, "peer"); err != nil {
		return nil, err
	}
	if s.clients, err = newClients(c.Config()); err != nil {
		return nil, err
	}
	return s, s.rest(ctx)
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
		if err := testlab.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}
