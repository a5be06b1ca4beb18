package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/test/lab/pki"
	"github.com/kubesync/kubesync/test/lab/port"
	"github.com/kubesync/kubesync/test/lab/process"
)

// startTimeout bounds the wait for one server to become ready. It takes about
// two seconds on an idle machine; tests share theirs.
const startTimeout = 2 * time.Minute

// Cluster is a running control plane.
type Cluster struct {
	dir      string
	bin      Binaries
	opts     options
	ca       *pki.Authority
	admin    Identity
	etcdPort port.Port
	apiPort  port.Port

	mu        sync.Mutex // guards the processes
	etcd      *process.Process
	apiServer *process.Process
	frozen    bool
	others    []*process.Process // that talk to the API server
}

// Start starts a control plane for one test and ends it with the test. It fails
// the test if that is not possible. Tests that call it may run in parallel. Under
// go test -short it skips the test.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	c, err := Launch(t.Context(), append([]Option{WithDir(filepath.Join(t.TempDir(), "cluster"))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && c.apiServer != nil {
			t.Logf("end of the API server's log:\n%s", c.apiServer.Tail())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Launch starts a control plane, getting its programs first if need be, and returns when
// it is ready. The caller has to Close it. ctx bounds the start only.
func Launch(ctx context.Context, opts ...Option) (*Cluster, error) {
	o := options{progress: os.Stderr}
	for _, option := range opts {
		option(&o)
	}
	bin, err := FindBinaries(ctx, o.progress)
	if err != nil {
		return nil, err
	}
	if o.dir == "" {
		o.dir, err = os.MkdirTemp("", "kubesync-cluster-")
	} else {
		o.dir, err = filepath.Abs(o.dir) // processes are recognised by it
	}
	if err != nil {
		return nil, fmt.Errorf("directory of a cluster: %w", err)
	}
	c := &Cluster{dir: o.dir, bin: bin, opts: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a control plane in %s: %w", c.dir, err), c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	return c.waitForDefaults(ctx)
}

// startServers starts all of the cluster's servers, and waits until the API server is
// ready.
func (c *Cluster) startServers(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.opts.controllers {
		if err := c.startControllers(); err != nil {
			return err
		}
	}
	if c.opts.scheduler {
		return c.startScheduler()
	}
	return nil
}

// prepare writes the files that the servers are started with.
func (c *Cluster) prepare() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("directory of the cluster: %w", err)
	}
	var err error
	if c.etcdPort, err = port.Take(); err != nil {
		return err
	}
	if c.apiPort, err = port.Take(); err != nil {
		return err
	}
	if c.ca, err = pki.NewAuthority("kubesync-test-cluster"); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("ca.crt"), c.ca.PEM, 0o600); err != nil {
		return fmt.Errorf("the cluster's CA: %w", err)
	}
	serving, err := c.ca.Server("kube-apiserver")
	if err != nil {
		return err
	}
	if err := serving.Write(c.dir, "apiserver"); err != nil {
		return err
	}
	_, signing, err := pki.NewKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("serviceaccounts.key"), signing, 0o600); err != nil {
		return fmt.Errorf("key for ServiceAccount tokens: %w", err)
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("audit policy: %w", err)
	}
	// system:masters is above RBAC and above priority and fairness.
	c.admin, err = c.User("admin", "system:masters")
	return err
}

// Close kills the servers and removes the cluster's directory.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.processes()) {
		p.Kill()
	}
	c.apiPort.Release()
	c.etcdPort.Release()
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("removing a cluster's directory: %w", err)
	}
	return nil
}

// processes returns what runs, in the order it was started. The caller holds mu.
func (c *Cluster) processes() []*process.Process {
	all := append([]*process.Process{c.etcd, c.apiServer}, c.others...)
	return slices.DeleteFunc(all, func(p *process.Process) bool { return p == nil })
}

// Dir is the directory of the cluster's files.
func (c *Cluster) Dir() string { return c.dir }

// URL is where the API server listens.
func (c *Cluster) URL() string { return "https://" + c.apiPort.Address() }

// Config returns the administrator's way in, without a client-side rate limit.
func (c *Cluster) Config() *rest.Config { return c.admin.Config() }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.admin.Kubeconfig }

// Program is the path of one of the programs the cluster was started with:
// "kubectl", "kube-apiserver" and so on.
func (c *Cluster) Program(name string) string { return c.bin.Path(name) }

// AuditLog is the path of the API server's audit log (see WithAuditLog).
func (c *Cluster) AuditLog() string { return c.path("audit.log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// ready asks the API server's readiness endpoint once.
func (c *Cluster) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL()+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("readiness: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("readiness: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("readiness: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readiness: %s: %s", response.Status, body)
	}
	return nil
}
