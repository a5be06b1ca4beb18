package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubesync/kubesync/test/lab/cluster"
	"github.com/kubesync/kubesync/test/lab/daemon"
	"github.com/kubesync/kubesync/test/lab/gitserver"
	"github.com/kubesync/kubesync/test/lab/port"
)

// lab is a kubesync with what it works on.
type lab struct {
	cluster *cluster.Cluster
	git     *gitserver.Server
	site    *gitserver.Repo // a few objects, which change
	many    *gitserver.Repo // a thousand, which do not
	url     string          // of the page
}

// newLab starts servers and, with start, a kubesync.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{cluster: cluster.Start(t, cluster.WithControllers), git: gitserver.Start(t)}
	var err error
	for name, to := range map[string]**gitserver.Repo{"site": &l.site, "many": &l.many} {
		if *to, err = l.git.CreateRepo(name); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// start starts kubesync, and stops it at the end of the test.
func (l *lab) start(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "kubesync")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-trimpath", "-ldflags", "-X main.version=v1.0.0", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubesync: %v\n%s", err, output)
	}
	taken, err := port.Take()
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Address()
	taken.Release()
	l.url = "http://" + address
	spec, err := daemon.Spec(program, dir, daemon.Env{
		"KUBECONFIG": l.cluster.Kubeconfig(), "REPO": l.git.URL("site") + " " + l.git.URL("many"),
		"INTERVAL": "2s", "TIMEOUT": "5s", "LISTEN": address,
	})
	if err != nil {
		t.Fatal(err)
	}
	started, err := daemon.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			log, _ := os.ReadFile(spec.Stderr)
			t.Logf("the log of kubesync:\n%s", log[max(0, len(log)-8000):])
		}
	})
}

// commit makes files the whole content of a repo.
func commit(t *testing.T, to *gitserver.Repo, message string, files map[string]string) string {
	t.Helper()
	revision, err := to.Commit(message, files)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// configMap returns a manifest.
func configMap(name, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {text: %q}\n", name, text)
}

// secret returns a manifest.
func secret(name, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {text: %q}\n", name, text)
}

// deployment returns a manifest whose pods no node will ever run.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  progressDeadlineSeconds: 4
  minReadySeconds: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: web.example/%[1]s}]}
`, name, replicas)
}

// until waits for a minute at most until a condition holds.
func until(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
