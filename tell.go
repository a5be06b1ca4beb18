package main

import (
	"context"
	"crypto/x509"
	"os"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/commitstatus"
	"github.com/kubesync/kubesync/sync/status/events"
	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/sync/status/notify"
	"github.com/kubesync/kubesync/sync/status/probe"
)

// observe builds what hears of every sync: the log, the cluster's events, the probe, the board and the
// metrics, and in a dry run the printer.
func (w *wiring) observe() {
	w.told = sync.NewLog(w.log, w.settings.DryRun)
	w.ready = probe.NewReady(w.standby)
	w.board = status.NewBoard(w.boardOptions())
	w.registry.MustRegister(metrics.NewState(w.board))
	heard := sync.Observers{w.told, w.ready, w.board, w.metrics}
	if w.lease != nil && !w.settings.Once {
		w.events = events.New(events.Options{Cluster: w.cluster, Redact: w.settings.Redactor.String})
		heard = append(heard, w.events)
	}
	if w.notifier = w.newNotifier(); w.notifier != nil {
		heard = append(heard, w.notifier)
	}
	w.observer = heard
	if !w.settings.DryRun {
		return
	}
	render := sync.ManifestText
	if w.cluster != nil {
		coloured := colour(os.Stdout)
		render = func(report sync.Report) string { return sync.PlanText(report, coloured) }
	}
	w.printer = sync.NewPrinter(w.settings.Redactor.Writer(os.Stdout), render)
	w.observer = sync.Observers{w.printer, w.told}
}

// boardOptions say what the board asks when it is looked at.
func (w *wiring) boardOptions() status.Options {
	options := status.Options{Version: buildVersion(), Redact: w.settings.Redactor.String}
	if w.cluster != nil {
		options.Cluster, options.Health = w.cluster, w.cluster
	}
	if w.lease != nil {
		options.Holder = func() string {
			_, holder := w.lease.Leading()
			return holder
		}
	}
	return options
}

// newNotifier returns who tells NOTIFY_URL of what changes, nil if nobody is to be told:
// with ONCE and in a dry run the end of the process tells.
func (w *wiring) newNotifier() *notify.Notifier {
	if len(w.settings.NotifyURLs) == 0 || w.settings.Once || w.settings.DryRun {
		return nil
	}
	return notify.New(notify.Options{
		Addresses: w.settings.NotifyURLs,
		Source:    "/kubesync/" + w.settings.OwnNamespace + "/" + w.settings.Lease,
		UserAgent: w.userAgent,
		Redact:    w.settings.Redactor.String,
		Log:       w.log,
	})
}

// tellCommits returns who tells git servers what becomes of commits, until ctx ends; nil if
// that is not wanted.
func (w *wiring) tellCommits(ctx context.Context) sync.Observer {
	if !w.settings.CommitStatus || w.settings.Once || w.settings.DryRun {
		return nil
	}
	return commitstatus.New(ctx, commitstatus.Options{
		Find:      w.commitServer,
		Roots:     func() (*x509.CertPool, error) { return repo.Roots(w.settings.Git.CAFile, w.settings.Git.CADir) },
		UserAgent: w.userAgent,
		Redact:    w.settings.Redactor.String,
		Log:       w.log,
	})
}

// commitServer returns how the git server of a repo is reached.
func (w *wiring) commitServer(name string) (commitstatus.Repo, bool) {
	listed := w.listed.Load()
	if listed == nil {
		return commitstatus.Repo{}, false
	}
	for _, r := range *listed {
		if r.Name == name {
			return commitstatus.Repo{URL: r.URL, Credentials: r.Credentials.Read}, true
		}
	}
	return commitstatus.Repo{}, false
}
