package sync

import (
	"context"
	"slices"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
)

// OnceOptions are what one pass works with.
type OnceOptions struct {
	Observer Observer
	// Housekeeping is done once, before the first application repo; nil for nothing.
	Housekeeping func(context.Context) error
	DryRun       bool // a retry would change nothing
	Log          zerolog.Logger
}

// Pass is the result of one pass over all repos.
type Pass struct {
	// InSync says that all repos are in sync or, in a dry run, planned. A pass that was
	// interrupted is not.
	InSync bool
	// Changes says that the last sync of a repo wrote or deleted objects or, in a dry run,
	// would.
	Changes bool
	// WaitingPrunes counts the objects that left git and are not deleted yet.
	WaitingPrunes int
}

// Once takes all repos through the pipeline one after the other, system repos first, then
// retries those with failed or pending objects, as long as a round makes progress.
func Once(ctx context.Context, repos []Repo, options OnceOptions) Pass {
	ok := true
	var all, pending []*Loop
	ordered := inOrder(repos)
	applications := slices.IndexFunc(ordered, func(r Repo) bool { return r.Tier == manifest.Application })
	for i, r := range ordered {
		if i == applications && !keepHouse(ctx, options) {
			ok = false
		}
		loop := newLoop(r, options.Observer, options.Log)
		loop.only = true
		all = append(all, loop)
		defer loop.close()
		report := loop.once(ctx)
		switch {
		case report.settled():
		case report.InSync(), report.State() == Partial:
			pending = append(pending, loop)
		default:
			ok = false
		}
	}
	if options.DryRun {
		ok = ok && len(pending) == 0
	} else {
		ok = retry(ctx, pending) && ok
	}
	return passOf(all, ok)
}

// passOf sums up the last reports of the loops.
func passOf(loops []*Loop, inSync bool) Pass {
	pass := Pass{InSync: inSync}
	for _, loop := range loops {
		pass.Changes = pass.Changes || loop.last.Changed()
		pass.WaitingPrunes += loop.last.Result.WaitingPrunes()
	}
	return pass
}

// keepHouse does the housekeeping, if there is any, and reports whether it went well.
func keepHouse(ctx context.Context, options OnceOptions) bool {
	if options.Housekeeping == nil {
		return true
	}
	if err := options.Housekeeping(ctx); err != nil {
		options.Log.Error().Err(err).Msg("housekeeping failed")
		return false
	}
	return true
}

// once syncs and reports.
func (l *Loop) once(ctx context.Context) Report {
	report := l.sync(ctx)
	l.observer.Observe(report)
	return report
}

// retry syncs the loops again until all are in sync or a whole round makes no progress.
func retry(ctx context.Context, pending []*Loop) bool {
	for left := openEnds(pending); len(pending) > 0; {
		var still []*Loop
		for _, loop := range pending {
			if !loop.once(ctx).settled() {
				still = append(still, loop)
			}
		}
		pending = still
		now := openEnds(pending)
		if now >= left || ctx.Err() != nil {
			break
		}
		left = now
	}
	return len(pending) == 0
}

// openEnds counts the objects that are not as declared.
func openEnds(loops []*Loop) int {
	count := 0
	for _, loop := range loops {
		counts := loop.last.Result.Counts()
		if loop.last.Result.Waits != "" {
			count++
		}
		count += counts[apply.Pending] + counts[apply.Failed] + counts[apply.Refused]
	}
	return count
}
