package main

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync/lease"
)

// writer is the access to the cluster of a process that writes: all that it writes goes
// through the fence of the Lease.
type writer struct {
	lease   *lease.Lease
	cluster *apply.Cluster
}

// newWriter builds the clients and sends nothing.
func newWriter(p parts, connection *rest.Config) (*writer, error) {
	held, err := lease.New(lease.Options{
		Config:    connection,
		Namespace: p.settings.OwnNamespace,
		Name:      p.settings.Lease,
		UserAgent: p.userAgent,
		Timing:    lease.DefaultTiming(),
		Log:       p.log,
	})
	if err != nil {
		return nil, err
	}
	connection.Wrap(held.Fence)
	cluster, err := newCluster(p, connection, held.Restart)
	return &writer{lease: held, cluster: cluster}, err
}

// newCluster builds the clients and sends nothing. wentBack is called when the API server
// returns to an earlier state.
func newCluster(p parts, connection *rest.Config, wentBack func()) (*apply.Cluster, error) {
	return apply.NewCluster(apply.ClusterOptions{
		Config:           connection,
		OwnNamespace:     p.settings.OwnNamespace,
		Writer:           p.settings.Lease,
		Concurrency:      p.settings.ApplyConcurrency,
		SystemNamespaces: p.settings.SystemNamespaces,
		Namespaces:       p.settings.Namespaces,
		UserAgent:        p.userAgent,
		WentBack:         wentBack,
		Log:              p.log,
	})
}

// housekeeping keeps the RoleBindings of application repos and looks after the sets of
// unlisted repos.
func (w *writer) housekeeping(ctx context.Context) error {
	return errors.Join(w.cluster.KeepBindings(ctx), w.cluster.KeepUnlisted(ctx))
}

// Releasing implements mode.
func (w *writer) Releasing() bool { return w.lease.Releasing() }

// standby reports whether another process holds the Lease.
func (w *writer) standby() bool {
	leading, holder := w.lease.Leading()
	return !leading && holder != ""
}

// holder returns the process that holds the Lease.
func (w *writer) holder() string {
	_, holder := w.lease.Leading()
	return holder
}
