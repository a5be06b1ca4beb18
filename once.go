package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubesync/kubesync/sync"
)

// oncePatience is how long ONCE waits for the Lease.
const oncePatience = 30 * time.Second

// once takes all repos through the pipeline once, and returns the exit status.
func (w *wiring) once(ctx context.Context, repos []sync.Repo) int {
	if !w.reachable(ctx) {
		return w.notInSync()
	}
	var came sync.Pass
	pass := func(ctx context.Context) {
		came = sync.Once(ctx, repos, sync.OnceOptions{
			Observer:     w.observer,
			Housekeeping: w.housekeeping(),
			DryRun:       w.settings.DryRun,
			Log:          w.log,
		})
	}
	if w.lease == nil {
		pass(ctx)
	} else if err := w.lease.Once(ctx, oncePatience, pass); err != nil {
		w.log.Error().Err(err).Msg("nothing was synced")
		return w.notInSync()
	}
	switch {
	case ctx.Err() != nil:
		return w.stopped(ctx)
	case w.printer != nil && w.printer.Err() != nil:
		w.log.Error().Err(w.printer.Err()).Msg("the plan could not be printed")
		return w.notInSync()
	}
	message := conclusion(came, w.settings.DryRun)
	switch {
	case !came.InSync:
		w.log.Error().Int("repos", len(repos)).Msg(message)
		return w.notInSync()
	case came.WaitingPrunes > 0:
		w.log.Warn().Int("repos", len(repos)).Msg(message)
	default:
		w.log.Info().Int("repos", len(repos)).Msg(message)
	}
	if w.settings.DryRunDiff && differs(came) {
		return exitWouldChange
	}
	return exitOK
}

// reachable tells whether the API server of a dry run answers, if it is to be asked, and
// says so once where it does not: every repo's plan would say it again, after all that
// it says besides.
func (w *wiring) reachable(ctx context.Context) bool {
	if !w.settings.DryRun || w.cluster == nil {
		return true
	}
	err := w.cluster.Unreachable(ctx)
	if err != nil && ctx.Err() == nil {
		w.log.Error().Err(err).Msg("the cluster cannot be reached, so nothing can be planned; without a cluster (KUBECONFIG=/dev/null) the manifests alone are checked")
	}
	return err == nil
}

// notInSync is the exit status of a pass that did not come to its end, or left something
// undone. Where status 1 says that something would change, it is another one.
func (w *wiring) notInSync() int {
	if w.settings.DryRunDiff && w.settings.Once {
		return exitNotPlanned
	}
	return exitNotInSync
}

// differs tells whether the cluster is to be told apart from what git says: something
// would be written or deleted, at once or as soon as what it waits for is there.
func differs(came sync.Pass) bool { return came.Changes || came.WaitingPrunes > 0 }

// conclusion words what a pass over all repos came to.
func conclusion(came sync.Pass, dryRun bool) string {
	all, wait := "all repos are in sync", "waits"
	if came.WaitingPrunes > 1 {
		wait = "wait"
	}
	if dryRun {
		all, wait = "all repos are planned", "would wait"
	}
	if !came.InSync {
		all = "not " + all
	}
	if came.WaitingPrunes == 0 {
		return all
	}
	but := ", but"
	if !came.InSync {
		but = ", and"
	}
	prunes := "prunes"
	if came.WaitingPrunes == 1 {
		prunes = "prune"
	}
	return fmt.Sprintf("%s%s %d %s %s", all, but, came.WaitingPrunes, prunes, wait)
}
