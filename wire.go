package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/repo"
	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/events"
	"github.com/kubesync/kubesync/sync/status/metrics"
	"github.com/kubesync/kubesync/sync/status/notify"
	"github.com/kubesync/kubesync/sync/status/probe"
	"github.com/kubesync/kubesync/sync/status/server"
	"github.com/kubesync/kubesync/sync/status/web"
	"github.com/kubesync/kubesync/sync/status/webhook"
	"github.com/kubesync/kubesync/transform"
)

// oncePatience is how long ONCE waits for the Lease.
const oncePatience = 30 * time.Second

// wiring holds what the parts of the program share.
type wiring struct {
	settings  config.Config
	log       zerolog.Logger
	userAgent string
	cluster   *apply.Cluster // nil in a dry run without a cluster
	lease     *sync.Lease    // nil in a dry run
	observer  sync.Observer
	told      *sync.Log
	printer   *sync.Printer  // nil without DRYRUN
	events    *events.Events // nil with DRYRUN or ONCE
	ready     *probe.Ready
	board     *status.Board
	notifier  *notify.Notifier // nil if nobody is to be notified
	registry  *prometheus.Registry
	metrics   *metrics.Metrics
	// listed are the repos as the list was last read; manager runs them, nil before the
	// first list.
	listed  atomic.Pointer[[]config.Repo]
	manager atomic.Pointer[sync.Manager]

	// namespace is where objects go that name none and whose repo has none either;
	// fromPod says that it is merely the daemon's own.
	namespace string
	fromPod   bool
}

// wire builds what the configuration asks for. It talks to nobody; an error is one
// of configuration.
func wire(settings config.Config, log zerolog.Logger) (*wiring, error) {
	w := &wiring{settings: settings, log: log, userAgent: "kubesync/" + buildVersion(), registry: metrics.Registry()}
	w.metrics = metrics.New(w.registry, buildVersion())
	namespace, explicit, err := settings.Kubernetes.Namespace()
	if err != nil {
		return nil, err
	}
	w.namespace, w.fromPod = namespace, !explicit && settings.InPod
	if settings.Kubernetes.Configured() || !settings.DryRun {
		if err := w.connect(); err != nil {
			return nil, err
		}
	}
	w.observe()
	return w, nil
}

// connect builds the clients of the cluster; without DRYRUN all that it writes
// goes through the Lease's fence.
func (w *wiring) connect() error {
	config, err := w.settings.Kubernetes.RESTConfig()
	if err != nil {
		return err
	}
	config.Wrap(w.metrics.APIRequests) // below the fence: what that refuses is never sent
	if !w.settings.DryRun {
		w.lease, err = sync.NewLease(sync.LeaseOptions{
			Config:    config,
			Namespace: w.settings.OwnNamespace,
			Name:      w.settings.Lease,
			UserAgent: w.userAgent,
			Timing:    sync.DefaultLeaseTiming(),
			Log:       w.log,
		})
		if err != nil {
			return err
		}
		config.Wrap(w.lease.Fence)
	}
	w.cluster, err = apply.NewCluster(apply.ClusterOptions{
		Config:           config,
		OwnNamespace:     w.settings.OwnNamespace,
		Writer:           w.settings.Lease,
		Concurrency:      w.settings.ApplyConcurrency,
		SystemNamespaces: w.settings.SystemNamespaces,
		Namespaces:       w.settings.Namespaces,
		UserAgent:        w.userAgent,
		Log:              w.log,
	})
	return err
}

// observe builds what hears of every sync: the log, the cluster's events, the probe, the board and the
// metrics, and in a dry run the printer.
func (w *wiring) observe() {
	w.told = sync.NewLog(w.log, w.settings.DryRun)
	w.ready = probe.NewReady(w.standby)
	w.board = status.NewBoard(w.boardOptions())
	w.registry.MustRegister(metrics.NewState(w.board))
	heard := sync.Observers{w.told, w.ready, w.board, w.metrics}
	if w.lease != nil && !w.settings.Once {
		w.events = events.New(events.Options{Cluster: w.cluster, Redact: w.settings.Redactor.String})
		heard = append(heard, w.events)
	}
	if w.notifier = w.newNotifier(); w.notifier != nil {
		heard = append(heard, w.notifier)
	}
	w.observer = heard
	if !w.settings.DryRun {
		return
	}
	render := sync.ManifestText
	if w.cluster != nil {
		coloured := colour(os.Stdout)
		render = func(report sync.Report) string { return sync.PlanText(report, coloured) }
	}
	w.printer = sync.NewPrinter(w.settings.Redactor.Writer(os.Stdout), render)
	w.observer = sync.Observers{w.printer, w.told}
}

// boardOptions say what the board asks when it is looked at.
func (w *wiring) boardOptions() status.Options {
	options := status.Options{Version: buildVersion(), Redact: w.settings.Redactor.String}
	if w.cluster != nil {
		options.Cluster, options.Health = w.cluster, w.cluster
	}
	if w.lease != nil {
		options.Holder = func() string {
			_, holder := w.lease.Leading()
			return holder
		}
	}
	return options
}

// run syncs until ctx ends, or once, and returns the exit status.
func (w *wiring) run(ctx context.Context) int {
	w.log.Info().Str("version", buildVersion()).Bool("dryrun", w.settings.DryRun).Bool("once", w.settings.Once).Msg("kubesync starts")
	served, err := w.serve()
	if err != nil {
		return misconfigured("kubesync", err)
	}
	defer served.Stop()
	defer context.AfterFunc(ctx, w.ready.Stop)()
	list := &repoList{wiring: w, warned: map[string]bool{}}
	repos, err := w.firstList(ctx, list)
	var mistakes config.Errors
	switch {
	case errors.As(err, &mistakes):
		return misconfigured("kubesync", err)
	case err != nil:
		w.log.Error().Err(err).Msg("there is no list of repos")
		return exitNotInSync
	case ctx.Err() != nil:
		return w.stopped(ctx)
	case w.settings.Once:
		return w.once(ctx, repos)
	}
	go w.told.Run(ctx)
	go w.hear(ctx)
	if w.events != nil {
		go w.events.Run(ctx)
	}
	if w.notifier != nil {
		go w.notifier.Run(ctx)
	}
	if commits := w.tellCommits(ctx); commits != nil {
		w.observer = sync.Observers{w.observer, commits}
	}
	manager := sync.NewManager(sync.ManagerOptions{
		List:         list,
		Interval:     w.settings.Interval,
		Observer:     w.observer,
		Watch:        w.watch(),
		Housekeeping: w.housekeeping(),
		Nudged:       w.nudged(),
		Log:          w.log,
	}, repos)
	w.manager.Store(manager)
	if w.lease == nil {
		manager.Run(ctx)
	} else {
		w.lease.Run(ctx, func(ctx context.Context) {
			w.board.Lead(true)
			defer w.board.Lead(false)
			manager.Run(ctx)
		})
	}
	return w.stopped(ctx)
}

// serve opens what LISTEN and PROBE_LISTEN name; neither with ONCE nor in a dry run,
// whose end is what there is to know.
func (w *wiring) serve() (*server.Server, error) {
	if w.settings.Once || w.settings.DryRun {
		return nil, nil
	}
	options := server.Options{
		Listen:      w.settings.Listen,
		Certificate: w.settings.ListenTLS,
		ProbeListen: w.settings.ProbeListen,
		Routes: server.Routes{
			Status:  web.New(w.board),
			Metrics: metrics.Handler(w.registry, w.log),
			Health:  http.HandlerFunc(probe.Healthy),
			Ready:   w.ready,
		},
		Debug: w.settings.Debug,
		Log:   w.log,
	}
	if w.settings.WebhookSecret.Given() {
		options.Routes.Webhook = webhook.New(webhook.Options{
			Secret:  w.settings.WebhookSecret.Read,
			Targets: w.targets,
			Standby: w.standby,
			Poll:    func(name string) { w.poll(name) },
			Log:     w.log,
		})
	}
	if w.settings.ListenToken.Given() {
		options.Token = w.settings.ListenToken.Read
	}
	return server.Start(options)
}

// targets are the repos that may be pushed to.
func (w *wiring) targets() []webhook.Target {
	listed := w.listed.Load()
	if listed == nil {
		return nil
	}
	targets := make([]webhook.Target, len(*listed))
	for i, r := range *listed {
		targets[i] = webhook.Target{Name: r.Name, URL: r.URL, Version: r.Version}
	}
	return targets
}

// poll has repos synced now, all of them without names, and returns how many. What has
// not started yet will sync when it does.
func (w *wiring) poll(names ...string) int {
	manager := w.manager.Load()
	if manager == nil {
		return 0
	}
	return manager.Poll(names...)
}

// hear polls all repos whenever the process gets SIGHUP, until ctx ends.
func (w *wiring) hear(ctx context.Context) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			w.log.Info().Int("repos", w.poll()).Msg("told by a signal to poll all repos and read their list")
		}
	}
}

// standby tells whether another process holds the Lease.
func (w *wiring) standby() bool {
	if w.lease == nil {
		return false
	}
	leading, holder := w.lease.Leading()
	return !leading && holder != ""
}

// stopped says why the daemon ends.
func (w *wiring) stopped(ctx context.Context) int {
	w.log.Info().Msg(context.Cause(ctx).Error())
	if w.settings.Once {
		return exitNotInSync
	}
	return exitOK
}

// firstList reads the list of repos. One that cannot be reached is tried again
// until ctx ends, except for ONCE.
func (w *wiring) firstList(ctx context.Context, list *repoList) ([]sync.Repo, error) {
	if w.settings.Once {
		return list.Read(ctx)
	}
	return sync.FirstList(ctx, list, w.settings.Interval, w.log, func(err error) bool {
		var unreachable *config.Unreachable
		return errors.As(err, &unreachable)
	})
}

// once takes all repos through the pipeline once.
func (w *wiring) once(ctx context.Context, repos []sync.Repo) int {
	inSync := false
	pass := func(ctx context.Context) {
		inSync = sync.Once(ctx, repos, sync.OnceOptions{
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
		return exitNotInSync
	}
	switch {
	case ctx.Err() != nil:
		return w.stopped(ctx)
	case w.printer != nil && w.printer.Err() != nil:
		w.log.Error().Err(w.printer.Err()).Msg("the plan could not be printed")
		return exitNotInSync
	}
	done := "in sync"
	if w.settings.DryRun {
		done = "planned"
	}
	if !inSync {
		w.log.Error().Int("repos", len(repos)).Msg("not all repos are " + done)
		return exitNotInSync
	}
	w.log.Info().Int("repos", len(repos)).Msg("all repos are " + done)
	return exitOK
}

// housekeeping keeps the RoleBindings of application repos and looks after sets that
// were abandoned; nil in a dry run.
func (w *wiring) housekeeping() func(context.Context) error {
	if w.lease == nil {
		return nil
	}
	return func(ctx context.Context) error {
		return errors.Join(w.cluster.KeepBindings(ctx), w.cluster.KeepAbandoned(ctx))
	}
}

// watch has the cluster watched; nil in a dry run, which leaves no drift to look for.
func (w *wiring) watch() func(context.Context) func() {
	if w.lease == nil {
		return nil
	}
	return w.cluster.Watch
}

// nudged receives when there is housekeeping to do; never in a dry run.
func (w *wiring) nudged() <-chan struct{} {
	if w.lease == nil {
		return nil
	}
	return w.cluster.Nudged()
}

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
	if l.cluster != nil {
		l.cluster.Listed(known)
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
		Suspend:          r.Suspend,
		Drift:            w.settings.Drift,
		Resync:           w.settings.Resync,
		Wake:             listener.Trigger,
		OnDrift:          listener.Drift,
		Log:              w.log.With().Str("repo", r.Name).Logger(),
	})
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
	})
}
