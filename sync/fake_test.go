package sync

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// stages is a whole pipeline whose every stage does what the test says.
type stages struct {
	resolve   func(context.Context) (repo.Revision, error)
	files     func() (fs.FS, error)
	transform func(context.Context, transform.Input) (transform.Result, error)
	plan      func(context.Context) (apply.Plan, error)
	apply     func(context.Context) (apply.Result, error)
	standing  bool // nothing has happened since the last sync
	notReady  func([]manifest.ID) ([]apply.NotReady, error)

	mu       sync.Mutex
	ran      []Stage // since the test began
	revision apply.Provenance
	opened   int
	closed   int
}

func (s *stages) note(stage Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, stage)
}

// count returns how often a stage ran.
func (s *stages) count(stage Stage) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.ran), func(ran Stage) bool { return ran != stage }))
}

// times returns how often the pipeline was opened and closed.
func (s *stages) times() (opened, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.closed
}

func (s *stages) Resolve(ctx context.Context) (repo.Revision, error) {
	s.note(Resolving)
	if s.resolve != nil {
		return s.resolve(ctx)
	}
	return repo.Revision{ID: firstCommit, Ref: "refs/heads/master", Subject: "First"}, nil
}

const (
	firstCommit  = "1111111111111111111111111111111111111111"
	secondCommit = "2222222222222222222222222222222222222222"
)

func (s *stages) Files(context.Context, repo.Revision) (fs.FS, error) {
	s.note(Reading)
	if s.files != nil {
		return s.files()
	}
	return fstest.MapFS{"a.yaml": &fstest.MapFile{}}, nil
}

func (s *stages) Checkout(context.Context, repo.Revision, string) error { return nil }

func (s *stages) Descends(context.Context, repo.Revision, string) (bool, error) { return false, nil }

func (s *stages) Run(ctx context.Context, in transform.Input) (transform.Result, error) {
	s.note(Transforming)
	if s.transform != nil {
		return s.transform(ctx, in)
	}
	return transform.Result{Files: in.Files, Source: transform.Source{Kind: "root", Dir: "."}}, nil
}

func (s *stages) Plan(ctx context.Context, _ fs.FS, revision apply.Provenance) (apply.Plan, error) {
	s.note(Planning)
	s.revision = revision
	if s.plan != nil {
		return s.plan(ctx)
	}
	return apply.Plan{Revision: revision}, nil
}

func (s *stages) Apply(ctx context.Context, _ apply.Plan) (apply.Result, error) {
	s.note(Applying)
	if s.apply != nil {
		return s.apply(ctx)
	}
	return apply.Result{}, nil
}

func (s *stages) Standing(apply.Provenance) (apply.Result, bool) {
	return apply.Result{Others: 1}, s.standing
}

func (s *stages) NotReady(_ context.Context, of []manifest.ID) ([]apply.NotReady, error) {
	s.note(Waiting)
	if s.notReady != nil {
		return s.notReady(of)
	}
	return nil, nil
}

// fakeApplier and fakeTransformer have the two different Close methods.
type fakeApplier struct{ *stages }

func (f fakeApplier) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
}

type fakeTransformer struct{ *stages }

func (fakeTransformer) Close() error { return nil }

func (s *stages) open(context.Context, Listener) (*Pipeline, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &Pipeline{Source: s, Transformer: fakeTransformer{s}, Applier: fakeApplier{s}}, nil
}

// repo returns a list entry that runs the stages.
func (s *stages) repo(name string, tier manifest.Tier) Repo {
	return Repo{Name: name, URL: "https://git.example/" + name, Tier: tier, Interval: 5 * time.Minute, Open: s.open}
}

// failingResolve returns a resolve stage that always fails.
func failingResolve(text string) func(context.Context) (repo.Revision, error) {
	return func(context.Context) (repo.Revision, error) { return repo.Revision{}, errors.New(text) }
}

// blockingResolve returns a resolve stage that hangs until its context ends.
func blockingResolve() func(context.Context) (repo.Revision, error) {
	return func(ctx context.Context) (repo.Revision, error) {
		<-ctx.Done()
		return repo.Revision{}, ctx.Err()
	}
}

// recorder is an observer that keeps everything.
type recorder struct {
	mu       sync.Mutex
	begun    []Progress
	reports  []Report
	unclear  []Unreadable
	unlisted []string
}

func (r *recorder) Observe(report Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, report)
}

func (r *recorder) Unreadable(object Unreadable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unclear = append(r.unclear, object)
}

func (r *recorder) Begin(progress Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = append(r.begun, progress)
}

func (r *recorder) Drift(apply.Drift) {}

func (r *recorder) Unlist(repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unlisted = append(r.unlisted, repo)
}

// of returns the reports about a repo.
func (r *recorder) of(repo string) []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.reports), func(report Report) bool { return report.Repo != repo })
}

// left returns the repos that were unlisted.
func (r *recorder) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.unlisted)
}

// order returns the repos in the order of their reports.
func (r *recorder) order() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, report := range r.reports {
		names = append(names, report.Repo)
	}
	return names
}

func quiet() zerolog.Logger { return zerolog.New(io.Discard) }

// outcome returns an outcome about a ConfigMap, or an object of another kind.
func outcome(action apply.Action, name string) apply.Outcome {
	o := apply.Outcome{ID: manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name}, Action: action}
	switch action {
	case apply.Failed, apply.Refused:
		o.Err = errors.New("the API server said no")
	case apply.Pending, apply.Blocked:
		o.Reason = "it waits"
	}
	return o
}
