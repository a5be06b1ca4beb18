package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/transform"
)

// repoList joins the repos of REPO with the list in CONFIG.
type repoList struct {
	*wiring
	warned map[string]bool
}

// Read implements sync.Lister, and tells those who need to know which repos there are.
func (l *repoList) Read(ctx context.Context) ([]sync.Repo, error) {
	repos, err := l.read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	listed := make([]status.Listed, len(repos))
	for i, r := range repos {
		listed[i] = status.Listed{Name: r.Name, URL: r.URL, Tier: r.Tier}
	}
	l.board.List(listed, err)
	return repos, err
}

// read joins the two lists.
func (l *repoList) read(ctx context.Context) ([]sync.Repo, error) {
	all := slices.Clone(l.settings.Repos)
	if l.settings.List != nil {
		listed, warnings, err := l.settings.List.Read(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
		for _, warning := range warnings {
			if !l.warned[warning] {
				l.warned[warning] = true
				l.log.Warn().Msg(warning)
			}
		}
	}
	repos := make([]sync.Repo, len(all))
	known := make([]apply.ListedRepo, len(all))
	names := make([]string, len(all))
	for i, r := range all {
		repos[i] = l.repo(r)
		names[i] = r.Name
		known[i] = apply.ListedRepo{Name: r.Name, Tier: r.Tier, Namespaces: r.Namespaces}
	}
	if l.cluster != nil && !slices.ContainsFunc(all, l.previews) {
		l.cluster.Listed(known) // a preview names only some of the daemon's repos
	}
	l.ready.Listed(names)
	l.listed.Store(&all)
	return repos, nil
}

// repo makes a list entry for the loops.
func (w *wiring) repo(r config.Repo) sync.Repo {
	return sync.Repo{
		Name:     r.Name,
		URL:      r.URL.String(),
		Tier:     r.Tier,
		Interval: r.Interval,
		Mode:     r.Version.String(),
		Wait:     w.wait(),
		Settings: r,
		Open: func(ctx context.Context, listener sync.Listener) (*sync.Pipeline, error) {
			return w.open(ctx, r, listener)
		},
	}
}

// wait is how long a sync waits for health, for which a dry run has no use.
func (w *wiring) wait() time.Duration {
	if w.settings.DryRun {
		return 0
	}
	return w.settings.Wait
}

// previews tells whether a repo is looked at for what another kubesync would do, once it
// has the files that lie here.
func (w *wiring) previews(r config.Repo) bool { return w.settings.DryRun && r.Version.IsWorktree() }

// open builds the pipeline of a repo.
func (w *wiring) open(ctx context.Context, r config.Repo, listener sync.Listener) (*sync.Pipeline, error) {
	transformer, err := transform.New(transform.Options{
		RepoName:        r.Name,
		Command:         r.Command,
		YMLDir:          r.YMLDir,
		Recursive:       r.Recursive,
		ConventionalDir: r.ConventionalDir,
		OnRevisionOnly:  w.settings.CommandOnRevision,
		Sandbox:         w.settings.Sandbox,
		Privileged:      r.Tier == apply.System,
		Environ:         os.Environ(),
		EnvDeny:         w.settings.CommandEnvDeny,
		OwnVariables:    slices.AppendSeq(config.OwnVariables(), maps.Keys(silenceVariables())),
		Protected:       w.settings.SecretFiles,
		Timeout:         w.settings.Timeout,
		Limits:          w.settings.Limits,
		Log:             w.log.With().Str("repo", r.Name).Logger(),
	})
	if err != nil {
		return nil, err
	}
	if w.cluster == nil {
		source, err := w.source(r, false)
		return &sync.Pipeline{Source: source, Transformer: transformer, Applier: w.offline(r)}, err
	}
	set := w.set(r, listener)
	recorded, err := set.Recorded(ctx)
	if err != nil {
		set.Close()
		return nil, err
	}
	source, err := w.source(r, recorded.Ref == "refs/heads/master")
	if err != nil {
		set.Close()
		return nil, err
	}
	pipeline := &sync.Pipeline{Source: source, Transformer: transformer, Applier: set}
	if w.settings.DryRun {
		pipeline.Applier = sync.Rehearsal{Set: set}
	}
	return pipeline, nil
}

// source builds the git side of a repo's pipeline.
func (w *wiring) source(r config.Repo, masterSynced bool) (*repo.Repo, error) {
	return repo.New(repo.Options{
		URL:               r.URL,
		Version:           r.Version,
		MasterSynced:      masterSynced,
		Credentials:       r.Credentials.Read,
		CAFile:            w.settings.Git.CAFile,
		CADir:             w.settings.Git.CADir,
		SSHKeyFile:        w.settings.Git.SSHKeyFile,
		SSHKnownHostsFile: w.settings.Git.SSHKnownHostsFile,
		Timeout:           w.settings.Timeout,
		Limits:            w.settings.Limits,
		UserAgent:         w.userAgent,
		Meter:             w.metrics.Git(r.Name),
		Log:               w.log.With().Str("repo", r.Name).Logger(),
	})
}

// set builds the cluster side of a repo's pipeline.
func (w *wiring) set(r config.Repo, listener sync.Listener) *apply.Set {
	namespace, fromPod := w.namespaceOf(r)
	return w.cluster.NewSet(apply.SetOptions{
		Name:             r.Name,
		Tier:             r.Tier,
		Namespace:        namespace,
		NamespaceFromPod: fromPod,
		Namespaces:       r.Namespaces,
		Prune:            r.Prune,
		PruneLimit:       w.settings.PruneLimit,
		Rendering:        rendering(r),
		Suspend:          r.Suspend,
		Preview:          w.previews(r),
		Drift:            w.settings.Drift,
		Resync:           w.settings.Resync,
		Limits:           w.settings.Limits,
		Wake:             listener.Trigger,
		OnDrift:          listener.Drift,
		Log:              w.log.With().Str("repo", r.Name).Logger(),
	})
}

// rendering is what a repo's entry says of how manifests are made of a revision. A CMD may
// hold a secret, hence it is hashed.
func rendering(r config.Repo) prune.Rendering {
	said := prune.Rendering{"CMD": prune.HashText(r.Command), "YMLDIR": r.YMLDir}
	if r.Recursive {
		said["RECURSIVE"] = "on"
	}
	return said
}

// namespaceOf returns where objects of a repo go that name no namespace, and
// whether that is merely the daemon's own.
func (w *wiring) namespaceOf(r config.Repo) (namespace string, fromPod bool) {
	if r.Namespace != "" {
		return r.Namespace, false
	}
	return w.namespace, w.fromPod
}

// offline checks a repo's manifests where there is no cluster to ask.
func (w *wiring) offline(r config.Repo) *sync.Offline {
	namespace, fromPod := w.namespaceOf(r)
	return sync.NewOffline(apply.Rules{
		Tier:             r.Tier,
		Namespace:        namespace,
		NamespaceFromPod: fromPod,
		Namespaces:       [][]string{w.settings.Namespaces, r.Namespaces},
		SystemNamespace:  func(name string) bool { return slices.Contains(w.settings.SystemNamespaces, name) },
	}, w.settings.Limits)
}
