package main

import (
	"context"
	"maps"
	"os"
	"slices"
	gosync "sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/apply/manifest"
	"github.com/kubesync/kubesync/apply/prune"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/transform"
)

// repoList joins the repos of REPO with those of CONFIG. It implements sync.Lister.
type repoList struct {
	parts
	// wait is how long a sync waits for health.
	wait time.Duration
	// open builds the pipeline of a repo.
	open func(context.Context, config.Repo, sync.Listener) (*sync.Pipeline, error)
	// observe gets what was read, or why it could not be.
	observe func([]config.Repo, error)

	mu     gosync.Mutex // guards what follows
	repos  []config.Repo
	warned map[string]bool
}

// Read implements sync.Lister.
func (l *repoList) Read(ctx context.Context) ([]sync.Repo, error) {
	all, err := l.read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l.observe(all, err)
	if err != nil {
		return nil, err
	}
	repos := make([]sync.Repo, len(all))
	for i, r := range all {
		repos[i] = sync.Repo{
			Name:     r.Name,
			URL:      r.URL.String(),
			Tier:     r.Tier,
			Interval: r.Interval,
			Mode:     r.Version.String(),
			Wait:     l.wait,
			Settings: r,
			Open: func(ctx context.Context, listener sync.Listener) (*sync.Pipeline, error) {
				return l.open(ctx, r, listener)
			},
		}
	}
	return repos, nil
}

// read joins the two lists, and logs each warning once.
func (l *repoList) read(ctx context.Context) ([]config.Repo, error) {
	all := slices.Clone(l.settings.Repos)
	var warnings []string
	if l.settings.List != nil {
		listed, found, err := l.settings.List.Read(ctx)
		if err != nil {
			return nil, err
		}
		all, warnings = append(all, listed...), found
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.repos = all
	for _, warning := range warnings {
		if !l.warned[warning] {
			l.warned[warning] = true
			l.log.Warn().Msg(warning)
		}
	}
	return all, nil
}

// last returns the repos as they were last read.
func (l *repoList) last() []config.Repo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.repos
}

// listed is what a cluster needs to know of the repos.
func listed(repos []config.Repo) []apply.ListedRepo {
	listed := make([]apply.ListedRepo, len(repos))
	for i, r := range repos {
		listed[i] = apply.ListedRepo{Name: r.Name, Tier: r.Tier, Namespaces: r.Namespaces}
	}
	return listed
}

// parts makes the parts of pipelines.
type parts struct {
	settings  config.Config
	log       zerolog.Logger
	userAgent string
	// namespace is where objects go that name none and whose repo has none either;
	// fromPod says that it is merely the daemon's own.
	namespace string
	fromPod   bool
}

// newParts reads the namespace of the kubeconfig and sends nothing.
func newParts(settings config.Config, log zerolog.Logger) (parts, error) {
	namespace, explicit, err := settings.Kubernetes.Namespace()
	return parts{
		settings: settings, log: log, userAgent: "kubesync/" + buildVersion(),
		namespace: namespace, fromPod: !explicit && settings.InPod,
	}, err
}

// pipeline builds the pipeline of a repo around its set, which it closes if it fails.
func (p parts) pipeline(ctx context.Context, r config.Repo, set *apply.Set, meter repo.Meter) (*sync.Pipeline, error) {
	transformer, err := p.transformer(r)
	var recorded repo.Revision
	if err == nil {
		recorded, err = set.Recorded(ctx)
	}
	var source *repo.Repo
	if err == nil {
		source, err = p.source(r, recorded.Ref, meter)
	}
	if err != nil {
		set.Close()
		return nil, err
	}
	return &sync.Pipeline{Source: source, Transformer: transformer, Applier: set}, nil
}

// source builds the git side of a pipeline. lastRef is what the last sync was of; meter is nil where no one looks at metrics.
func (p parts) source(r config.Repo, lastRef string, meter repo.Meter) (*repo.Repo, error) {
	return repo.New(repo.Options{
		URL:               r.URL,
		Version:           r.Version,
		LastRef:           lastRef,
		Credentials:       r.Credentials.Read,
		CAFile:            p.settings.Git.CAFile,
		CADir:             p.settings.Git.CADir,
		SSHKeyFile:        p.settings.Git.SSHKeyFile,
		SSHKnownHostsFile: p.settings.Git.SSHKnownHostsFile,
		Timeout:           p.settings.Timeout,
		Limits:            p.settings.Limits,
		UserAgent:         p.userAgent,
		Meter:             meter,
		Log:               p.logOf(r),
	})
}

// transformer builds what makes manifests of a repo's files.
func (p parts) transformer(r config.Repo) (*transform.Transform, error) {
	return transform.New(transform.Options{
		RepoName:        r.Name,
		Command:         r.Command,
		YMLDir:          r.YMLDir,
		Recursive:       r.Recursive,
		ConventionalDir: r.ConventionalDir,
		OnRevisionOnly:  p.settings.CommandOnRevision,
		Sandbox:         p.settings.Sandbox,
		Privileged:      r.Tier == manifest.System,
		Environ:         os.Environ(),
		EnvDeny:         p.settings.CommandEnvDeny,
		OwnVariables:    slices.AppendSeq(config.OwnVariables(), maps.Keys(silenceVariables())),
		Protected:       p.settings.SecretFiles,
		Timeout:         p.settings.Timeout,
		Limits:          p.settings.Limits,
		Log:             p.logOf(r),
	})
}

// set builds the cluster side of a pipeline. A preview is about what another kubesync would do.
func (p parts) set(cluster *apply.Cluster, r config.Repo, listener sync.Listener, preview bool) *apply.Set {
	namespace, fromPod := p.namespaceOf(r)
	return cluster.NewSet(apply.SetOptions{
		Name:             r.Name,
		Tier:             r.Tier,
		Namespace:        namespace,
		NamespaceFromPod: fromPod,
		Namespaces:       r.Namespaces,
		Prune:            r.Prune,
		PruneLimit:       p.settings.PruneLimit,
		Rendering:        rendering(r),
		Suspend:          r.Suspend,
		Preview:          preview,
		Drift:            p.settings.Drift,
		Resync:           p.settings.Resync,
		Limits:           p.settings.Limits,
		Wake:             listener.Trigger,
		OnDrift:          listener.Drift,
		Log:              p.logOf(r),
	})
}

// offline checks a repo's manifests without a cluster.
func (p parts) offline(r config.Repo) *sync.Offline {
	namespace, fromPod := p.namespaceOf(r)
	return sync.NewOffline(manifest.Rules{
		Tier:             r.Tier,
		Namespace:        namespace,
		NamespaceFromPod: fromPod,
		Namespaces:       [][]string{p.settings.Namespaces, r.Namespaces},
		SystemNamespace:  func(name string) bool { return slices.Contains(p.settings.SystemNamespaces, name) },
	}, p.settings.Limits)
}

func (p parts) logOf(r config.Repo) zerolog.Logger { return p.log.With().Str("repo", r.Name).Logger() }

// namespaceOf returns where objects of a repo go that name no namespace, and
// whether that is merely the daemon's own.
func (p parts) namespaceOf(r config.Repo) (namespace string, fromPod bool) {
	if r.Namespace != "" {
		return r.Namespace, false
	}
	return p.namespace, p.fromPod
}

// rendering is what a repo's entry says of how manifests are made of a revision. A CMD may
// hold a secret, hence it is hashed.
func rendering(r config.Repo) prune.Rendering {
	rendering := prune.Rendering{"CMD": prune.HashText(r.Command), "YMLDIR": r.YMLDir}
	if r.Recursive {
		rendering["RECURSIVE"] = "on"
	}
	return rendering
}
