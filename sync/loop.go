package sync

import (
	"context"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/internal/backoff"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// firstRetry is the wait after a first failure; it doubles up to the interval.
const firstRetry = 5 * time.Second

// Loop keeps one repo in sync with one cluster.
type Loop struct {
	repo     Repo
	observer Observer
	log      zerolog.Logger
	first    chan struct{} // closed once the first sync has ended
	wake     chan struct{} // holds one trigger

	only     bool      // git is polled once and not again
	pipeline *Pipeline // nil before the first sync and after a panic
	last     Report
	// waitUntil is when the objects of the revision waitsFor have to be healthy.
	waitsFor  string
	waitUntil time.Time
	// unreadable are the objects of that revision that were reported, and why.
	unreadable map[string]bool
	noted      []string // the notes on revision notedOf, from this pipeline
	notedOf    string
}

func newLoop(r Repo, observer Observer, log zerolog.Logger) *Loop {
	return &Loop{repo: r, observer: observer, log: log, first: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Trigger makes the loop sync now, or once more after a sync under way. It never waits.
func (l *Loop) Trigger() {
	select {
	case l.wake <- struct{}{}:
	default: // one is pending, which will see everything that this one would
	}
}

// Drift passes drift on to the observer.
func (l *Loop) Drift(drift apply.Drift) { l.observer.Drift(drift) }

// Run syncs until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	defer l.close()
	for {
		report := l.sync(ctx)
		wait := l.pause(report)
		if !report.Interrupted {
			report.Next = report.Finished.Add(wait)
		}
		l.observer.Observe(report)
		l.pass()
		if !backoff.Sleep(ctx, wait, l.wake) {
			return
		}
	}
}

// pass lets those start that wait for this repo's first sync.
func (l *Loop) pass() {
	select {
	case <-l.first:
	default:
		close(l.first)
	}
}

// pause is how long to wait after a sync.
func (l *Loop) pause(report Report) time.Duration {
	switch {
	case report.Health.Waiting:
		return 0
	case report.Failures == 0:
		return backoff.Jitter(l.repo.Interval)
	}
	return backoff.Jitter(backoff.Wait(report.Failures, firstRetry, l.repo.Interval))
}

// sync takes the repo through the pipeline once. A stage runs only if every stage before it
// succeeded, so what git does not say completely is never applied and never prunes.
func (l *Loop) sync(ctx context.Context) Report {
	r := l.begin(ctx)
	pipeline := stage(r, Opening, func() (*Pipeline, error) { return l.open(ctx) })
	revision := stage(r, Resolving, func() (repo.Revision, error) { return pipeline.Source.Resolve(ctx) })
	r.report.Revision = revision
	if !l.standing(r, pipeline, revision) {
		l.carryOut(r, pipeline, revision)
	}
	if l.repo.Wait > 0 && r.report.State() == Synced {
		r.report.Health = stage(r, Waiting, func() (Health, error) { return l.awaitHealth(ctx, pipeline.Applier, revision), nil })
	}
	return l.finish(r)
}

// standing reports whether there is nothing to do for a revision, and fills the report: it is
// the one that was synced last, its manifests are made of nothing else, as those of a CMD
// may be, and nothing has happened to its objects.
func (l *Loop) standing(r *run, pipeline *Pipeline, revision repo.Revision) bool {
	last := &l.last
	if r.report.Err != nil || revision.ID != last.Revision.ID || last.Source.Kind == transform.KindCommand || last.State() != Synced {
		return false
	}
	result, stands := pipeline.Applier.Standing(l.setRevision(pipeline.Source, revision, last.Source, r.report.Started))
	if stands {
		r.report.Source, r.report.Notes, r.report.Result = last.Source, l.notes(revision, nil), result
	}
	return stands
}

// carryOut takes a revision through the rest of the pipeline.
func (l *Loop) carryOut(r *run, pipeline *Pipeline, revision repo.Revision) {
	ctx := r.ctx
	files := stage(r, Reading, func() (fs.FS, error) { return pipeline.Source.Files(ctx, revision) })
	manifests := stage(r, Transforming, func() (transform.Result, error) {
		return pipeline.Transformer.Run(ctx, l.input(pipeline, revision, files))
	})
	r.report.Source, r.report.Notes = manifests.Source, l.notes(revision, manifests.Notes)
	// Pruning compares the cluster with this plan. A revision with a document that cannot be
	// read or may not be applied has no plan: its missing objects would look like deletions.
	plan := stage(r, Planning, func() (apply.Plan, error) {
		return pipeline.Applier.Plan(ctx, manifests.Files, l.setRevision(pipeline.Source, revision, manifests.Source, r.report.Started))
	})
	// Apply prunes last. Pruning waits while an object failed or is pending, a kind cannot be
	// read, the revision declares nothing, PRUNE_LIMIT is exceeded, or CMD, YMLDIR or the like
	// changed (prune.Hold). After that, each object needs proof that this repo applied it and
	// that it left git.
	r.report.Result = stage(r, Applying, func() (apply.Result, error) { return pipeline.Applier.Apply(ctx, plan) })
}

// input is the transform's input.
func (l *Loop) input(pipeline *Pipeline, revision repo.Revision, files fs.FS) transform.Input {
	return transform.Input{
		Revision: revision.ID,
		Files:    files,
		Checkout: func(ctx context.Context, dir string) error { return pipeline.Source.Checkout(ctx, revision, dir) },
		Rerun:    l.last.Failures > 0,
	}
}

// notes are all notes of the transform on a revision: it returns each only once, whatever
// fails in between.
func (l *Loop) notes(revision repo.Revision, fresh []string) []string {
	if revision.ID == "" {
		return nil
	}
	if l.notedOf != revision.ID {
		l.noted, l.notedOf = nil, revision.ID
	}
	l.noted = append(l.noted, fresh...)
	return slices.Clone(l.noted)
}

// setRevision is what the parent of the apply set records.
func (l *Loop) setRevision(git source, revision repo.Revision, from transform.Source, polled time.Time) apply.Provenance {
	return apply.Provenance{
		Revision: revision,
		URL:      l.repo.URL,
		Polled:   polled,
		Source:   from.Kind,
		Dir:      from.Dir,
		Built:    from.Builder,
		Mode:     l.repo.Mode,
		Descends: func(ctx context.Context, ancestor string) (bool, error) { return git.Descends(ctx, revision, ancestor) },
	}
}

// open returns the pipeline, built if there is none.
func (l *Loop) open(ctx context.Context) (*Pipeline, error) {
	if l.pipeline == nil {
		pipeline, err := l.repo.Open(ctx, l)
		if err != nil {
			return nil, err
		}
		l.pipeline = pipeline
		l.noted = nil
	}
	return l.pipeline, nil
}

// close closes the pipeline, if there is one.
func (l *Loop) close() {
	pipeline := l.pipeline
	if pipeline == nil {
		return
	}
	l.pipeline = nil
	defer func() {
		if thrown := recover(); thrown != nil {
			l.log.Error().Str("repo", l.repo.Name).Interface("panic", thrown).Msg("panic while closing the pipeline of a repo: this is a bug in kubesync, please report it")
		}
	}()
	if err := pipeline.close(); err != nil {
		l.log.Warn().Err(err).Str("repo", l.repo.Name).Msg("cannot clean up after the repo's transform")
	}
}

// run is a sync under way.
type run struct {
	ctx      context.Context
	observer Observer
	report   Report
	panicked bool
}

func (l *Loop) begin(ctx context.Context) *run {
	return &run{
		ctx:      ctx,
		observer: l.observer,
		report:   Report{Repo: l.repo.Name, URL: l.repo.URL, Tier: l.repo.Tier, Started: time.Now()},
	}
}

// finish completes the report.
func (l *Loop) finish(r *run) Report {
	report := &r.report
	report.Finished = time.Now()
	report.Interrupted = (report.Err != nil || report.Health.Err != nil) && r.ctx.Err() != nil
	switch {
	case report.Interrupted:
		report.Failures = l.last.Failures
	case !report.InSync():
		report.Failures = 1
		if report.Revision.ID == l.last.Revision.ID {
			report.Failures += l.last.Failures
		}
	}
	l.last = *report
	if r.panicked {
		l.close()
	}
	return *report
}

// stage runs one step of the pipeline unless an earlier one failed, and notes how
// long it took and how it failed. The value of a failed step is used only where it says
// what was done until then.
func stage[T any](r *run, name Stage, do func() (T, error)) (value T) {
	if r.report.Err == nil && r.ctx.Err() != nil {
		r.report.FailedStage, r.report.Err = name, context.Cause(r.ctx)
	}
	if r.report.Err != nil {
		return value
	}
	started := time.Now()
	r.observer.Begin(Progress{Repo: r.report.Repo, Revision: r.report.Revision, Stage: name, Began: started})
	defer func() {
		if thrown := recover(); thrown != nil {
			r.panicked = true
			r.report.FailedStage, r.report.Err = name, &PanicError{Value: thrown, Stack: debug.Stack()}
		}
		r.report.Stages = append(r.report.Stages, StageTime{Stage: name, Duration: time.Since(started)})
	}()
	value, err := do()
	if err != nil {
		r.report.FailedStage, r.report.Err = name, err
	}
	return value
}

// PanicError is a bug in this program that a stage ran into.
type PanicError struct {
	Value any
	Stack []byte
}

// Error asks for a report.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic, nothing was pruned: %v: this is a bug in kubesync, please report it", e.Value)
}
