package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/kubesync/kubesync/test/lab/process"
)

// auditPolicy records who asked for what, once, when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// serviceRange is where the API server takes the addresses of Services from.
const serviceRange = "10.96.0.0/16"

// controllers are the ones a test or the demo can tell the absence of. The rest
// only costs time here: there are no nodes, clouds or disks.
func controllers() string {
	return strings.Join([]string{
		"clusterrole-aggregation-controller",
		"cronjob-controller",
		"daemonset-controller",
		"deployment-controller",
		"disruption-controller",
		"endpoints-controller",
		"endpointslice-controller",
		"garbage-collector-controller",
		"job-controller",
		"namespace-controller",
		"persistentvolume-protection-controller",
		"persistentvolumeclaim-protection-controller",
		"replicaset-controller",
		"resourcequota-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"statefulset-controller",
		"ttl-after-finished-controller",
	}, ",")
}

// run starts one of the programs with its output in a file of its name.
func (c *Cluster) run(program string, args ...string) (*process.Process, error) {
	return process.Start(process.Spec{
		Program: c.bin.Path(program),
		Args:    args,
		// Collecting garbage more rarely saves a fifth of the CPU time of a start.
		Env:      []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + os.TempDir(), "GOGC=400"},
		Stdout:   c.path(program + ".log"),
		Detached: c.opts.detached,
	})
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	url := "http://" + c.etcdPort.Address()
	p, err := c.run(etcdProgram,
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		// Alone, it needs no peers: any port will do.
		"--listen-peer-urls=http://127.0.0.1:0",
		// Nothing here has to survive a power cut, and no one stands for election.
		"--unsafe-no-fsync", "--heartbeat-interval=10", "--election-timeout=100",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etcd = p
	if err := c.save(); err != nil {
		return err
	}
	return p.WaitUntil(ctx, func(ctx context.Context) error { return healthy(ctx, url) })
}

// healthy asks etcd once whether it has a leader.
func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return fmt.Errorf("health of etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("health of etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("health of etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health of etcd: %s", response.Status)
	}
	return nil
}

// StartAPIServer starts the API server, again on the same port and data after
// StopAPIServer, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil {
		return errors.New("the API server is running already")
	}
	args := []string{
		"--etcd-servers=http://" + c.etcdPort.Address(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--secure-port=" + c.apiPort.String(),
		"--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.path("serviceaccounts.key"),
		"--service-account-signing-key-file=" + c.path("serviceaccounts.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--allow-privileged=true", // as every real cluster; CNI manifests are refused without
		"--endpoint-reconciler-type=none",
		"--permit-address-sharing", // start again at once after StopAPIServer
		"--profiling=false",
		"--etcd-compaction-interval=0", "--etcd-count-metric-poll-period=0", "--etcd-db-metric-poll-interval=0",
	}
	if !c.opts.controllers {
		// No one makes the default ServiceAccount, without which it refuses all pods.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.opts.audit {
		args = append(args, "--audit-log-path="+c.AuditLog(), "--audit-policy-file="+c.path("audit-policy.yaml"))
	}
	if c.opts.allAPIs {
		args = append(args, "--runtime-config=api/all=true")
	}
	p, err := c.run(apiServerProgram, args...)
	if err != nil {
		return err
	}
	c.apiServer = p
	if err := c.save(); err != nil {
		return err
	}
	return p.WaitUntil(ctx, c.ready)
}

// StopAPIServer kills the API server: connections break and new ones are
// refused until StartAPIServer. Its data stays.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer != nil {
		c.apiServer.Kill()
		c.apiServer, c.frozen = nil, false
	}
}

// Up reports whether the API server runs and is not frozen.
func (c *Cluster) Up() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer != nil && !c.frozen && !c.apiServer.Ended()
}

// FreezeAPIServer makes the API server accept connections and answer nothing,
// until ThawAPIServer.
func (c *Cluster) FreezeAPIServer() error { return c.freeze(true, (*process.Process).Freeze) }

// ThawAPIServer undoes FreezeAPIServer.
func (c *Cluster) ThawAPIServer() error { return c.freeze(false, (*process.Process).Thaw) }

func (c *Cluster) freeze(frozen bool, do func(*process.Process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer == nil {
		return errors.New("the API server is stopped")
	}
	c.frozen = frozen
	return do(c.apiServer)
}

func (c *Cluster) startControllers() error {
	return c.startOther(controllerProgram,
		"--kubeconfig="+c.Kubeconfig(),
		"--controllers="+controllers(),
		"--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--service-account-private-key-file="+c.path("serviceaccounts.key"),
		"--root-ca-file="+c.path("ca.crt"),
		"--kube-api-qps=1000", "--kube-api-burst=1000",
	)
}

func (c *Cluster) startScheduler() error {
	return c.startOther(schedulerProgram,
		"--kubeconfig="+c.Kubeconfig(), "--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--kube-api-qps=1000", "--kube-api-burst=1000",
	)
}

func (c *Cluster) startOther(program string, args ...string) error {
	p, err := c.run(program, args...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = append(c.others, p)
	return c.save()
}
