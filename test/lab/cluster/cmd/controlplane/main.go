// Command controlplane starts and stops a Kubernetes control plane on this
// machine; scripts/controlplane runs it.
package main

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
	"strings"
	"syscall"

	"github.com/kubesync/kubesync/test/lab/cluster"
)

const usage = `Usage: scripts/controlplane <command> [-dir DIR]

  get     downloads or builds the programs, unless they are in the cache folder,
          and prints where they are; CONTROLPLANE=download or build allows only that,
          KUBERNETES=oldest is the oldest Kubernetes that kubesync supports
  up      starts etcd, API server, controllers and scheduler and prints, as
          lines for a shell's eval, where they are
  down    kills them and removes DIR
  status  says which of them run; exit status 1 unless all do

DIR holds keys, kubeconfigs, logs and data. Several control planes run side by
side in directories of their own.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	dir := flags.String("dir", defaultDir(), "directory of the control plane")
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		flags.Usage()
		return 2
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		flags.Usage()
		return 2
	}
	path, err := filepath.Abs(*dir)
	if err == nil {
		err = command(ctx, args[0], path, stdout, stderr)
	}
	if errors.Is(err, errUsage) {
		flags.Usage()
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "controlplane:", err)
		return 1
	}
	return 0
}

var errUsage = errors.New("no such command")

func command(ctx context.Context, name, dir string, stdout, stderr io.Writer) error {
	switch name {
	case "get":
		bin, err := cluster.FindBinaries(ctx, stderr)
		if err == nil {
			fmt.Fprintln(stdout, bin.Dir)
		}
		return err
	case "up":
		return up(ctx, dir, stdout, stderr)
	case "down":
		return cluster.Down(dir)
	case "status":
		return status(dir, stdout)
	}
	return errUsage
}

// defaultDir is one per user.
func defaultDir() string {
	return filepath.Join(os.TempDir(), "kubesync-controlplane-"+strconv.Itoa(os.Getuid()))
}

func up(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	if _, err := cluster.Status(dir); err == nil {
		return fmt.Errorf("there is a control plane in %s already: run `scripts/controlplane down -dir %s` first", dir, dir)
	}
	c, err := cluster.Launch(ctx, cluster.WithDir(dir), cluster.WithControllers, cluster.WithScheduler,
		cluster.WithProgress(stderr), cluster.Detached)
	if err != nil {
		return err
	}
	// No one gave this user a role: it stands for whoever may do next to nothing.
	unprivileged, err := c.User("unprivileged")
	if err != nil {
		return errors.Join(err, c.Close())
	}
	for _, line := range []struct{ name, value string }{
		{"KUBECONFIG", c.Kubeconfig()},
		{"UNPRIVILEGED_KUBECONFIG", unprivileged.Kubeconfig},
		{"KUBECTL", c.Program("kubectl")},
		{"APISERVER", c.URL()},
		{"CONTROLPLANE_DIR", c.Dir()},
	} {
		fmt.Fprintf(stdout, "export %s='%s'\n", line.name, strings.ReplaceAll(line.value, "'", `'\''`))
	}
	return nil
}

func status(dir string, stdout io.Writer) error {
	servers, err := cluster.Status(dir)
	if err != nil {
		return err
	}
	var dead []string
	for _, s := range servers {
		state := "running"
		if !s.Running {
			state = "ended"
			dead = append(dead, s.Name)
		}
		fmt.Fprintf(stdout, "%-24s %-8s process %d\n", s.Name, state, s.PID)
	}
	if len(dead) > 0 {
		return fmt.Errorf("%s ended: see the logs in %s", strings.Join(dead, ", "), dir)
	}
	return nil
}
