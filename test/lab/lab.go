// Package lab is what bench, crash and model share: programs that start kubesync on real
// servers, for minutes or hours, and write down what came of it.
//
// Flow: Main parses the flags and runs the program until it is done or interrupted. Open
// makes a temporary directory with a copy of the kubesync to look at. Cluster starts a
// control plane there, and Administrator makes a user of it; package daemon starts
// kubesync, package gitserver a git server, package apiproxy a way to either that fails
// on request. Close removes it all.
package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/test/lab/cluster"
)

// Main runs one of the programs and returns its exit status: 2 for flags that parse
// refuses, 1 for an error of do. An interrupt ends the context of do; a second one ends
// the process at once, with nothing cleaned up.
func Main[S any](name string, stderr io.Writer, parse func() (S, error), do func(context.Context, S) error) int {
	chosen, err := parse()
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel)
	if err := do(ctx, chosen); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Lab is a temporary directory with the program to look at. All methods may be called
// concurrently.
type Lab struct {
	Dir     string
	Program string // the path of a copy: the tree may be built again meanwhile

	mu   sync.Mutex // guards what follows
	out  io.Writer
	made int // directories
}

// Open makes a lab for a program, such as "bench", that looks at the kubesync at a path
// and reports its progress to out. The caller has to Close it.
func Open(name, kubesync string, out io.Writer) (*Lab, error) {
	dir, err := os.MkdirTemp("", "kubesync-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("directory of the %s: %w", name, err)
	}
	l := &Lab{Dir: dir, Program: filepath.Join(dir, "kubesync"), out: out}
	content, err := os.ReadFile(kubesync)
	if err == nil {
		err = os.WriteFile(l.Program, content, 0o755)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy of kubesync: %w", err), l.Close())
	}
	return l, nil
}

// Close removes the directory.
func (l *Lab) Close() error { return os.RemoveAll(l.Dir) }

// Say reports progress, with the time of day before it.
func (l *Lab) Say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// MakeDir makes a new directory, whose name begins with the one that is given.
func (l *Lab) MakeDir(name string) (string, error) {
	l.mu.Lock()
	l.made++
	dir := filepath.Join(l.Dir, name+"-"+strconv.Itoa(l.made))
	l.mu.Unlock()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("directory in a lab: %w", err)
	}
	return dir, nil
}

// Cluster starts a control plane in a directory of its own.
func (l *Lab) Cluster(ctx context.Context, options ...cluster.Option) (*cluster.Cluster, error) {
	dir, err := l.MakeDir("cluster")
	if err != nil {
		return nil, err
	}
	return cluster.Launch(ctx, append([]cluster.Option{cluster.WithDir(dir), cluster.WithProgress(l.out)}, options...)...)
}

// Administrator makes a ServiceAccount that may do everything, as far as RBAC goes.
func Administrator(ctx context.Context, c *cluster.Cluster, name string) (cluster.Identity, error) {
	who, err := c.ServiceAccount(ctx, "kube-system", name)
	if err != nil {
		return cluster.Identity{}, err
	}
	return who, c.GrantRole(ctx, who, "cluster-admin")
}

// Sleep waits, but not longer than ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
