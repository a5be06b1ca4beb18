package main

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/commitstatus"
	"github.com/kubesync/kubesync/sync/status/events"
	"github.com/kubesync/kubesync/sync/status/log"
	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/sync/status/notify"
	"github.com/kubesync/kubesync/sync/status/probe"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/sync/status/web"
	"github.com/kubesync/kubesync/sync/status/webhook"
)

// daemon keeps the cluster in sync until it is stopped.
type daemon struct {
	parts
	*writer
	list     *repoList
	manager  *sync.Manager
	board    *status.Board
	ready    *probe.Ready
	registry *prometheus.Registry
	// observers run beside the loops.
	observers []func(context.Context)
}

// newDaemon builds what the configuration asks for and sends nothing. An error is one of
// configuration.
func newDaemon(settings config.Config, log zerolog.Logger) (*daemon, error) {
	p, err := newParts(settings, log)
	if err != nil {
		return nil, err
	}
	connection, err := settings.Kubernetes.RESTConfig()
	if err != nil {
		return nil, err
	}
	d := &daemon{parts: p, registry: metrics.Registry()}
	counts := metrics.New(d.registry, buildVersion())
	connection.Wrap(counts.APIRequests) // below the fence: what that refuses is never sent
	if d.writer, err = newWriter(p, connection); err != nil {
		return nil, err
	}
	d.ready = probe.NewReady(d.standby)
	d.board = status.NewBoard(status.Options{
		Version: buildVersion(), Redact: settings.Redactor.String,
		Cluster: d.cluster, Health: d.cluster, Holder: d.holder,
	})
	d.registry.MustRegister(metrics.NewState(d.board))
	d.list = &repoList{
		parts: p, wait: settings.Wait, observe: d.listed, warned: map[string]bool{},
		open: func(ctx context.Context, r config.Repo, listener sync.Listener) (*sync.Pipeline, error) {
			return p.pipeline(ctx, r, p.set(d.cluster, r, listener, false), counts.Git(r.Name))
		},
	}
	d.manager = sync.NewManager(sync.ManagerOptions{
		List:            d.list,
		Interval:        settings.Interval,
		Observer:        d.observe(counts),
		Watch:           d.cluster.Watch,
		Housekeeping:    d.housekeeping,
		HousekeepingDue: d.cluster.HousekeepingDue(),
		Log:             log,
	}, nil)
	return d, nil
}

// observe builds what gets every report.
func (d *daemon) observe(counts *metrics.Metrics) sync.Observers {
	reports := log.New(d.log, false)
	recorded := events.New(events.Options{Cluster: d.cluster, Redact: d.settings.Redactor.String})
	notifier := notify.New(notify.Options{
		Addresses: d.settings.NotifyURLs,
		Source:    "/kubesync/" + d.settings.OwnNamespace + "/" + d.settings.Lease,
		UserAgent: d.userAgent,
		Redact:    d.settings.Redactor.String,
		Log:       d.log,
	})
	observers := sync.Observers{reports, d.ready, d.board, counts, recorded, notifier}
	d.observers = []func(context.Context){reports.Run, recorded.Run, notifier.Run}
	if d.settings.CommitStatus {
		commits := commitstatus.New(commitstatus.Options{
			Find:      d.commitServer,
			Roots:     func() (*x509.CertPool, error) { return repo.Roots(d.settings.Git.CAFile, d.settings.Git.CADir) },
			UserAgent: d.userAgent,
			Redact:    d.settings.Redactor.String,
			Log:       d.log,
		})
		observers = append(observers, commits)
		d.observers = append(d.observers, commits.Run)
	}
	return observers
}

// Run implements mode: read the list, wait for the Lease, and run a loop for each repo while it is held.
func (d *daemon) Run(ctx context.Context) int {
	defer onHangUp(ctx, func() {
		d.log.Info().Int("repos", d.manager.Poll()).Msg("signal received, polling all repos and reading their list")
	})()
	served, err := server.Start(d.served())
	if err != nil {
		return misconfigured("kubesync", err)
	}
	defer served.Stop()
	defer beside(ctx, d.unready)()
	if code, ok := d.firstList(ctx, d.manager); !ok {
		return code
	}
	defer beside(ctx, append(d.observers, returnMemory)...)()
	d.lease.Run(ctx, func(ctx context.Context) {
		d.board.Lead(true)
		defer d.board.Lead(false)
		d.manager.Run(ctx)
	})
	d.log.Info().Msg(context.Cause(ctx).Error())
	return exitOK
}

// firstList has a manager read the list of repos, as long as it takes. Without a list, it
// returns the exit status and false.
func (p parts) firstList(ctx context.Context, manager *sync.Manager) (int, bool) {
	err := manager.FirstList(ctx, func(err error) bool {
		var unreachable *config.Unreachable
		return errors.As(err, &unreachable)
	})
	switch {
	case err != nil:
		return p.noList(err, exitNotInSync), false
	case ctx.Err() != nil:
		p.log.Info().Msg(context.Cause(ctx).Error())
		return exitOK, false
	}
	return exitOK, true
}

// noList reports why there is no list of repos, and returns the exit status: failed unless
// the configuration is wrong.
func (p parts) noList(err error, failed int) int {
	var mistakes config.Errors
	if errors.As(err, &mistakes) {
		return misconfigured("kubesync", err)
	}
	p.log.Error().Err(err).Msg("cannot read the list of repos")
	return failed
}

// unready answers the readiness probe with no once ctx ends, while the loops still finish.
func (d *daemon) unready(ctx context.Context) {
	<-ctx.Done()
	d.ready.Stop()
}

// listed passes on which repos there are.
func (d *daemon) listed(repos []config.Repo, err error) {
	shown, names := make([]status.Listed, len(repos)), make([]string, len(repos))
	for i, r := range repos {
		shown[i], names[i] = status.Listed{Name: r.Name, URL: r.URL.String(), Tier: r.Tier}, r.Name
	}
	d.board.List(shown, err)
	if err == nil {
		d.cluster.Listed(listed(repos))
		d.ready.Listed(names)
	}
}

// served is what LISTEN and PROBE_LISTEN serve.
func (d *daemon) served() server.Options {
	options := server.Options{
		Listen:      d.settings.Listen,
		Certificate: d.settings.ListenTLS,
		ProbeListen: d.settings.ProbeListen,
		Routes: server.Routes{
			Status:  web.New(d.board),
			Metrics: metrics.Handler(d.registry, d.log),
			Health:  http.HandlerFunc(probe.Healthy),
			Ready:   d.ready,
		},
		Debug: d.settings.Debug,
		Log:   d.log,
	}
	if d.settings.WebhookSecret.Given() {
		options.Routes.Webhook = webhook.New(webhook.Options{
			Secret:  d.settings.WebhookSecret.Read,
			Targets: d.targets,
			Standby: d.standby,
			Poll:    func(name string) { d.manager.Poll(name) },
			Log:     d.log,
		})
	}
	if d.settings.ListenToken.Given() {
		options.Token = d.settings.ListenToken.Read
	}
	return options
}

// targets are the repos that may be pushed to.
func (d *daemon) targets() []webhook.Target {
	var targets []webhook.Target
	for _, r := range d.list.last() {
		targets = append(targets, webhook.Target{Name: r.Name, URL: r.URL, Version: r.Version})
	}
	return targets
}

// commitServer returns how the git server of a repo is reached.
func (d *daemon) commitServer(name string) (commitstatus.Repo, bool) {
	for _, r := range d.list.last() {
		if r.Name == name {
			return commitstatus.Repo{URL: r.URL, Credentials: r.Credentials.Read}, true
		}
	}
	return commitstatus.Repo{}, false
}
