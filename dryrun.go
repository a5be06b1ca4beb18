package main

import (
	"context"
	"os"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status/log"
	"github.com/kubesync/kubesync/sync/status/plan"
)

// dryRun prints what would be done to the cluster or, without one, the checked manifests.
type dryRun struct {
	parts
	list    *repoList
	printer *plan.Printer
	reports *log.Logger
	// unreachable returns why the cluster cannot be asked, nil if it can or need not be.
	unreachable func(context.Context) error
}

// newDryRun builds what the configuration asks for and sends nothing. An error is one of
// configuration.
func newDryRun(settings config.Config, logger zerolog.Logger) (*dryRun, error) {
	p, err := newParts(settings, logger)
	if err != nil {
		return nil, err
	}
	d := &dryRun{parts: p, reports: log.New(p.log, true)}
	d.list = &repoList{parts: p, warned: map[string]bool{}}
	render := plan.Manifests
	if settings.Kubernetes.Configured() {
		coloured := colour(os.Stdout)
		render = func(report sync.Report) string { return plan.Text(report, coloured) }
		err = d.online()
	} else {
		d.offline()
	}
	d.printer = plan.NewPrinter(settings.Redactor.Writer(os.Stdout), render)
	return d, err
}

// online plans against the cluster.
func (d *dryRun) online() error {
	connection, err := d.settings.Kubernetes.RESTConfig()
	if err != nil {
		return err
	}
	cluster, err := newCluster(d.parts, connection, func() {}) // nothing is watched
	if err != nil {
		return err
	}
	d.unreachable = cluster.Unreachable
	d.list.observe = func(repos []config.Repo, err error) {
		for _, r := range repos {
			if r.Version.IsWorktree() {
				return // a preview names only some of the daemon's repos
			}
		}
		if err == nil {
			cluster.Listed(listed(repos))
		}
	}
	d.list.open = func(ctx context.Context, r config.Repo, listener sync.Listener) (*sync.Pipeline, error) {
		set := d.set(cluster, r, listener, r.Version.IsWorktree())
		pipeline, err := d.pipeline(ctx, r, set, nil)
		if err == nil {
			pipeline.Applier = sync.Rehearsal{Set: set}
		}
		return pipeline, err
	}
	return nil
}

// offline checks the manifests alone.
func (d *dryRun) offline() {
	d.unreachable = func(context.Context) error { return nil }
	d.list.observe = func([]config.Repo, error) {}
	d.list.open = func(_ context.Context, r config.Repo, _ sync.Listener) (*sync.Pipeline, error) {
		transformer, err := d.transformer(r)
		if err != nil {
			return nil, err
		}
		source, err := d.source(r, "", nil)
		return &sync.Pipeline{Source: source, Transformer: transformer, Applier: d.parts.offline(r)}, err
	}
}

// Releasing implements mode: a dry run has no Lease.
func (d *dryRun) Releasing() bool { return false }

// Run implements mode.
func (d *dryRun) Run(ctx context.Context) int {
	if d.settings.Once {
		return d.once(ctx)
	}
	manager := sync.NewManager(sync.ManagerOptions{List: d.list, Interval: d.settings.Interval, Observer: sync.Observers{d.printer, d.reports}, Log: d.log}, nil)
	defer onHangUp(ctx, func() {
		d.log.Info().Int("repos", manager.Poll()).Msg("signal received, polling all repos and reading their list")
	})()
	if code, ok := d.firstList(ctx, manager); !ok {
		return code
	}
	defer beside(ctx, d.reports.Run)()
	manager.Run(ctx)
	d.log.Info().Msg(context.Cause(ctx).Error())
	return exitOK
}

// once plans every repo once.
func (d *dryRun) once(ctx context.Context) int {
	failed := exitNotInSync
	if d.settings.DryRunDiff { // status 1 says that something would change
		failed = exitNotPlanned
	}
	repos, err := d.list.Read(ctx)
	if ctx.Err() == nil && err != nil {
		return d.noList(err, failed)
	}
	var pass sync.Pass
	var unreachable error
	if ctx.Err() == nil {
		// Reported once: every repo's plan would report it again.
		if unreachable = d.unreachable(ctx); unreachable == nil {
			pass = sync.Once(ctx, repos, sync.OnceOptions{Observer: sync.Observers{d.printer, d.reports}, DryRun: true, Log: d.log})
		}
	}
	switch {
	case ctx.Err() != nil:
		d.log.Info().Msg(context.Cause(ctx).Error())
		return failed
	case unreachable != nil:
		d.log.Error().Err(unreachable).Msg("cannot reach the cluster, nothing is planned: set KUBECONFIG=/dev/null to check the manifests without a cluster")
		return failed
	case d.printer.Err() != nil:
		d.log.Error().Err(d.printer.Err()).Msg("cannot print the plan")
		return failed
	}
	conclude(d.log, len(repos), pass, "all repos are planned")
	switch {
	case !pass.InSync:
		return failed
	case d.settings.DryRunDiff && differs(pass):
		return exitWouldChange
	}
	return exitOK
}

// differs reports whether something would be written or deleted, at once or once it is approved.
func differs(pass sync.Pass) bool { return pass.Changes || pass.WaitingPrunes > 0 }
