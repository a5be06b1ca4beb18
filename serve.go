package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/sync/status/probe"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/sync/status/web"
	"github.com/kubesync/kubesync/sync/status/webhook"
)

// serve opens what LISTEN and PROBE_LISTEN name; neither with ONCE nor in a dry run,
// whose end is what there is to know.
func (w *wiring) serve() (*server.Server, error) {
	if w.settings.Once || w.settings.DryRun {
		return nil, nil
	}
	options := server.Options{
		Listen:      w.settings.Listen,
		Certificate: w.settings.ListenTLS,
		ProbeListen: w.settings.ProbeListen,
		Routes: server.Routes{
			Status:  web.New(w.board),
			Metrics: metrics.Handler(w.registry, w.log),
			Health:  http.HandlerFunc(probe.Healthy),
			Ready:   w.ready,
		},
		Debug: w.settings.Debug,
		Log:   w.log,
	}
	if w.settings.WebhookSecret.Given() {
		options.Routes.Webhook = webhook.New(webhook.Options{
			Secret:  w.settings.WebhookSecret.Read,
			Targets: w.targets,
			Standby: w.standby,
			Poll:    func(name string) { w.poll(name) },
			Log:     w.log,
		})
	}
	if w.settings.ListenToken.Given() {
		options.Token = w.settings.ListenToken.Read
	}
	return server.Start(options)
}

// targets are the repos that may be pushed to.
func (w *wiring) targets() []webhook.Target {
	listed := w.listed.Load()
	if listed == nil {
		return nil
	}
	targets := make([]webhook.Target, len(*listed))
	for i, r := range *listed {
		targets[i] = webhook.Target{Name: r.Name, URL: r.URL, Version: r.Version}
	}
	return targets
}

// poll has repos synced now, all of them without names, and returns how many. What has
// not started yet will sync when it does.
func (w *wiring) poll(names ...string) int {
	manager := w.manager.Load()
	if manager == nil {
		return 0
	}
	return manager.Poll(names...)
}

// hear polls all repos whenever the process gets SIGHUP, until ctx ends. Before it is
// called, and after what it returns is called, a SIGHUP ends the process: so the former
// is early, and the latter last.
func (w *wiring) hear(ctx context.Context) (stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	go w.pollWhenAsked(ctx, asked)
	return func() { signal.Stop(asked) }
}

func (w *wiring) pollWhenAsked(ctx context.Context, asked <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			w.log.Info().Int("repos", w.poll()).Msg("told by a signal to poll all repos and read their list")
		}
	}
}

// standby tells whether another process holds the Lease.
func (w *wiring) standby() bool {
	if w.lease == nil {
		return false
	}
	leading, holder := w.lease.Leading()
	return !leading && holder != ""
}
