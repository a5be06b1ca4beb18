package main

import (
	"context"
	"crypto/x509"

	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/status/commitstatus"
	"github.com/kubesync/kubesync/sync/status/notify"
)

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
