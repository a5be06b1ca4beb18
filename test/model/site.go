package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/kubesync/kubesync/test/cluster"
)

// site is what walks share: a control plane, the program, and a temporary directory.
type site struct {
	cluster  *cluster.Cluster
	dir      string
	kubesync string // the program, a copy: the tree may be built again meanwhile
	dynamic  dynamic.Interface

	mu  sync.Mutex // guards what follows
	out io.Writer
}

// newSite starts the control plane, with its controllers: without them no Namespace is
// ever gone.
func newSite(ctx context.Context, program string, out io.Writer) (_ *site, err error) {
	dir, err := os.MkdirTemp("", "kubesync-model-")
	if err != nil {
		return nil, fmt.Errorf("directory of the walks: %w", err)
	}
	s := &site{dir: dir, kubesync: filepath.Join(dir, "kubesync"), out: out}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("the program to walk with: %w", err)
	}
	if err := os.WriteFile(s.kubesync, content, 0o755); err != nil {
		return nil, fmt.Errorf("the program to walk with: %w", err)
	}
	s.cluster, err = cluster.Launch(ctx, cluster.WithDir(filepath.Join(dir, "cluster")), cluster.WithControllers, cluster.WithProgress(out))
	if err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
		return nil, fmt.Errorf("client of the walks: %w", err)
	}
	return s, nil
}

// close ends what runs and removes every trace.
func (s *site) close() error {
	var err error
	if s.cluster != nil {
		err = s.cluster.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// say tells whoever waits how far it is.
func (s *site) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
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
