package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/events"
	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/sync/status/notify"
	"github.com/kubesync/kubesync/sync/status/probe"
)

// wiring holds what the parts of the program share.
type wiring struct {
	settings  config.Config
	log       zerolog.Logger
	userAgent string
	cluster   *apply.Cluster // nil in a dry run without a cluster
	lease     *sync.Lease    // nil in a dry run
	observer  sync.Observer
	told      *sync.Log
	printer   *sync.Printer  // nil without DRYRUN
	events    *events.Events // nil with DRYRUN or ONCE
	ready     *probe.Ready
	board     *status.Board
	notifier  *notify.Notifier // nil if nobody is to be notified
	registry  *prometheus.Registry
	metrics   *metrics.Metrics
	// listed are the repos as the list was last read; manager runs them, nil before the
	// first list.
	listed  atomic.Pointer[[]config.Repo]
	manager atomic.Pointer[sync.Manager]

	// namespace is where objects go that name none and whose repo has none either;
	// fromPod says that it is merely the daemon's own.
	namespace string
	fromPod   bool
}

// wire builds what the configuration asks for. It talks to nobody; an error is one
// of configuration.
func wire(settings config.Config, log zerolog.Logger) (*wiring, error) {
	w := &wiring{settings: settings, log: log, userAgent: "kubesync/" + buildVersion(), registry: metrics.Registry()}
	w.metrics = metrics.New(w.registry, buildVersion())
	namespace, explicit, err := settings.Kubernetes.Namespace()
	if err != nil {
		return nil, err
	}
	w.namespace, w.fromPod = namespace, !explicit && settings.InPod
	if settings.Kubernetes.Configured() || !settings.DryRun {
		if err := w.connect(); err != nil {
			return nil, err
		}
	}
	w.observe()
	return w, nil
}

// connect builds the clients of the cluster; without DRYRUN all that it writes
// goes through the Lease's fence.
func (w *wiring) connect() error {
	config, err := w.settings.Kubernetes.RESTConfig()
	if err != nil {
		return err
	}
	config.Wrap(w.metrics.APIRequests) // below the fence: what that refuses is never sent
	if !w.settings.DryRun {
		w.lease, err = sync.NewLease(sync.LeaseOptions{
			Config:    config,
			Namespace: w.settings.OwnNamespace,
			Name:      w.settings.Lease,
			UserAgent: w.userAgent,
			Timing:    sync.DefaultLeaseTiming(),
			Log:       w.log,
		})
		if err != nil {
			return err
		}
		config.Wrap(w.lease.Fence)
	}
	w.cluster, err = apply.NewCluster(apply.ClusterOptions{
		Config:           config,
		OwnNamespace:     w.settings.OwnNamespace,
		Writer:           w.settings.Lease,
		Concurrency:      w.settings.ApplyConcurrency,
		SystemNamespaces: w.settings.SystemNamespaces,
		Namespaces:       w.settings.Namespaces,
		UserAgent:        w.userAgent,
		WentBack:         w.startAnew,
		Log:              w.log,
	})
	return err
}

// startAnew has everything forgotten that is known of the cluster.
func (w *wiring) startAnew() {
	if w.lease != nil { // else nothing is watched
		w.lease.StartAnew()
	}
}

// releasing tells whether the process is held up by giving its Lease back.
func (w *wiring) releasing() bool { return w.lease != nil && w.lease.Releasing() }

// run syncs until ctx ends, or once, and returns the exit status.
func (w *wiring) run(ctx context.Context) int {
	w.log.Info().Str("version", buildVersion()).Bool("dryrun", w.settings.DryRun).Bool("once", w.settings.Once).Msg("kubesync starts")
	if !w.settings.Once {
		defer w.hear(ctx)()
	}
	served, err := w.serve()
	if err != nil {
		return misconfigured("kubesync", err)
	}
	defer served.Stop()
	defer context.AfterFunc(ctx, w.ready.Stop)()
	list := &repoList{wiring: w, warned: map[string]bool{}}
	repos, err := w.firstList(ctx, list)
	var mistakes config.Errors
	switch {
	case errors.As(err, &mistakes):
		return misconfigured("kubesync", err)
	case err != nil:
		w.log.Error().Err(err).Msg("there is no list of repos")
		return w.notInSync()
	case ctx.Err() != nil:
		return w.stopped(ctx)
	case w.settings.Once:
		return w.once(ctx, repos)
	}
	go w.told.Run(ctx)
	if w.events != nil {
		go w.events.Run(ctx)
	}
	if w.notifier != nil {
		go w.notifier.Run(ctx)
	}
	if commits := w.tellCommits(ctx); commits != nil {
		w.observer = sync.Observers{w.observer, commits}
	}
	manager := sync.NewManager(sync.ManagerOptions{
		List:         list,
		Interval:     w.settings.Interval,
		Observer:     w.observer,
		Watch:        w.watch(),
		Housekeeping: w.housekeeping(),
		Nudged:       w.nudged(),
		Log:          w.log,
	}, repos)
	w.manager.Store(manager)
	if w.lease == nil {
		manager.Run(ctx)
	} else {
		w.lease.Run(ctx, func(ctx context.Context) {
			w.board.Lead(true)
			defer w.board.Lead(false)
			manager.Run(ctx)
		})
	}
	return w.stopped(ctx)
}

// stopped says why the daemon ends.
func (w *wiring) stopped(ctx context.Context) int {
	w.log.Info().Msg(context.Cause(ctx).Error())
	if w.settings.Once {
		return w.notInSync()
	}
	return exitOK
}

// firstList reads the list of repos. One that cannot be reached is tried again
// until ctx ends, except for ONCE.
func (w *wiring) firstList(ctx context.Context, list *repoList) ([]sync.Repo, error) {
	if w.settings.Once {
		return list.Read(ctx)
	}
	return sync.FirstList(ctx, list, w.settings.Interval, w.log, func(err error) bool {
		var unreachable *config.Unreachable
		return errors.As(err, &unreachable)
	})
}

// housekeeping keeps the RoleBindings of application repos and looks after sets that
// were abandoned; nil in a dry run.
func (w *wiring) housekeeping() func(context.Context) error {
	if w.lease == nil {
		return nil
	}
	return func(ctx context.Context) error {
		return errors.Join(w.cluster.KeepBindings(ctx), w.cluster.KeepAbandoned(ctx))
	}
}

// watch has the cluster watched; nil in a dry run, which leaves no drift to look for.
func (w *wiring) watch() func(context.Context) func() {
	if w.lease == nil {
		return nil
	}
	return w.cluster.Watch
}

// nudged receives when there is housekeeping to do; never in a dry run.
func (w *wiring) nudged() <-chan struct{} {
	if w.lease == nil {
		return nil
	}
	return w.cluster.Nudged()
}
