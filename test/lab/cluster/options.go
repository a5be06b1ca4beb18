package cluster

import "io"

// Option adds something to the bare API server that a cluster starts with.
type Option func(*options)

type options struct {
	dir         string
	controllers bool
	scheduler   bool
	audit       bool
	allAPIs     bool
	detached    bool
	progress    io.Writer
}

// WithControllers also starts kube-controller-manager. Deleting Namespaces,
// garbage collection, the status of workloads, default ServiceAccounts and the
// rules of the aggregated ClusterRoles (admin, edit, view) need it.
func WithControllers(o *options) { o.controllers = true }

// WithScheduler also starts kube-scheduler.
func WithScheduler(o *options) { o.scheduler = true }

// WithAuditLog makes the API server write one line of JSON for each request it
// finished to Cluster.AuditLog.
func WithAuditLog(o *options) { o.audit = true }

// WithAllAPIs makes the API server serve alpha and beta APIs too.
func WithAllAPIs(o *options) { o.allAPIs = true }

// WithDir keeps the cluster's files in dir, which is created, rather than in a
// temporary directory.
func WithDir(dir string) Option { return func(o *options) { o.dir = dir } }

// Detached lets the cluster outlive this process; Down ends it.
func Detached(o *options) { o.detached = true }

// WithProgress says where to report how getting the control plane's programs goes on.
// The default is stderr.
func WithProgress(w io.Writer) Option { return func(o *options) { o.progress = w } }
