package sync

import (
	"context"
	"slices"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
)

// OnceOptions are what one pass works with.
type OnceOptions struct {
	Observer Observer
	// Housekeeping is done once, before the first application repo; nil for nothing.
	Housekeeping func(context.Context) error
	DryRun       bool // nothing will be different at a second try
	Log          zerolog.Logger
}

// Pass is what one pass over all repos came to.
type Pass struct {
	// InSync tells that all repos are in sync or, in a dry run, planned. A pass that was
	// cut short is not.
	InSync bool
	// Changes tells that the last sync of a repo wrote or deleted objects or, in a dry run,
	// would.
	Changes bool
	// WaitingPrunes is how many objects left git and wait to be deleted.
	WaitingPrunes int
}

// Once takes all repos through the pipeline one after the other, system repos
// first, then tries those again that were left with failed or parked objects, as
// long as that gets any further.
func Once(ctx context.Context, repos []Repo, options OnceOptions) Pass {
	ok := true
	var all, pending []*Loop
	ordered := inOrder(repos)
	applications := slices.IndexFunc(ordered, func(r Repo) bool { return r.Tier == apply.Application })
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
		case report.InSync(), report.State() == Incomplete:
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

// passOf sums up what the loops came to at last.
func passOf(loops []*Loop, inSync bool) Pass {
	pass := Pass{InSync: inSync}
	for _, loop := range loops {
		pass.Changes = pass.Changes || loop.last.Changed()
		pass.WaitingPrunes += loop.last.Result.WaitingPrunes()
	}
	return pass
}

// keepHouse does the housekeeping, if there is any, and tells whether it went well.
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

// retry syncs the loops again until all are in sync or a whole round has got none
// of their objects further.
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
		count += counts[apply.Parked] + counts[apply.Failed] + counts[apply.Refused]
	}
	return count
}
