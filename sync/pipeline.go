package sync

import (
	"context"
	"io/fs"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/transform"
)

// source is where revisions come from.
type source interface {
	Resolve(context.Context) (repo.Revision, error)
	Files(context.Context, repo.Revision) (fs.FS, error)
	Checkout(ctx context.Context, revision repo.Revision, dir string) error
	// Descends reports whether a revision has another commit among its ancestors; an
	// error says why that is unknown.
	Descends(ctx context.Context, revision repo.Revision, ancestor string) (bool, error)
}

// transformer makes manifests of a revision's files.
type transformer interface {
	Run(context.Context, transform.Input) (transform.Result, error)
	Close() error
}

// applier applies manifests to the cluster.
type applier interface {
	Plan(context.Context, fs.FS, apply.Provenance) (apply.Plan, error)
	Apply(context.Context, apply.Plan) (apply.Result, error)
	// Standing returns what the last sync came to, if one of the revision would come to the
	// same now.
	Standing(apply.Provenance) (apply.Result, bool)
	// NotReady returns those of some objects, nil for all, that are not healthy.
	NotReady(context.Context, []manifest.ID) ([]apply.NotReady, error)
	Close()
}

// Pipeline is what takes one repo to one cluster.
type Pipeline struct {
	Source      source
	Transformer transformer
	Applier     applier
}

// close releases what the pipeline holds; its objects stay in the cluster.
func (p *Pipeline) close() error {
	p.Applier.Close()
	return p.Transformer.Close()
}

// Repo is one entry of the list of repos: what a loop needs to know of it.
type Repo struct {
	Name     string
	URL      string // without credentials
	Tier     manifest.Tier
	Interval time.Duration
	Mode     string // what selects revisions, as VERSION_MODE has it
	// Wait is how long a revision may take to become healthy; 0 for not waiting.
	Wait time.Duration
	// Settings is everything else that is configured for the repo: if it is not deeply
	// equal to that of a running loop, the loop is restarted.
	Settings any
	// Open builds the pipeline. It may read what the cluster records of the repo.
	Open func(context.Context, Listener) (*Pipeline, error)
}

// Listener is called by a pipeline between syncs. Its methods never wait.
type Listener interface {
	// Trigger asks for a sync now.
	Trigger()
	// Drift reports an object that another writer changed.
	Drift(apply.Drift)
}

// Lister reads the list of repos.
type Lister interface {
	// Read returns the repos in the order of the list. After an error, the last list
	// stays in force.
	Read(context.Context) ([]Repo, error)
}
