package main

import (
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
