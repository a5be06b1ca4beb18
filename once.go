package main

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/sync"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status/log"
)

// oncePatience is how long ONCE waits for the Lease.
const oncePatience = 30 * time.Second

// once syncs every repo once.
type once struct {
	parts
	*writer
	list *repoList
}

// newOnce builds what the configuration asks for and sends nothing. An error is one of
// configuration.
func newOnce(settings config.Config, log zerolog.Logger) (*once, error) {
	p, err := newParts(settings, log)
	if err != nil {
		return nil, err
	}
	connection, err := settings.Kubernetes.RESTConfig()
	if err != nil {
		return nil, err
	}
	w, err := newWriter(p, connection)
	if err != nil {
		return nil, err
	}
	observe := func(repos []config.Repo, err error) {
		if err == nil {
			w.cluster.Listed(listed(repos))
		}
	}
	open := func(ctx context.Context, r config.Repo, listener sync.Listener) (*sync.Pipeline, error) {
		return p.pipeline(ctx, r, p.set(w.cluster, r, listener, false), nil)
	}
	list := &repoList{parts: p, wait: settings.Wait, open: open, observe: observe, warned: map[string]bool{}}
	return &once{parts: p, writer: w, list: list}, nil
}

// Run implements mode: read the list, wait for the Lease, and sync each repo.
func (o *once) Run(ctx context.Context) int {
	repos, err := o.list.Read(ctx)
	if ctx.Err() == nil && err != nil {
		return o.noList(err, exitNotInSync)
	}
	var pass sync.Pass
	if ctx.Err() == nil {
		err = o.lease.Once(ctx, oncePatience, func(ctx context.Context) {
			pass = sync.Once(ctx, repos, sync.OnceOptions{Observer: log.New(o.log, false), Housekeeping: o.housekeeping, Log: o.log})
		})
	}
	switch {
	case ctx.Err() != nil:
		o.log.Info().Msg(context.Cause(ctx).Error())
		return exitNotInSync
	case err != nil:
		o.log.Error().Err(err).Msg("nothing was synced")
		return exitNotInSync
	}
	conclude(o.log, len(repos), pass, "all repos are in sync")
	if !pass.InSync {
		return exitNotInSync
	}
	return exitOK
}

// conclude logs how a pass over so many repos ended: with a message, or its opposite.
func conclude(log zerolog.Logger, repos int, pass sync.Pass, message string) {
	level := zerolog.InfoLevel
	switch {
	case !pass.InSync:
		level, message = zerolog.ErrorLevel, "not "+message
	case pass.WaitingPrunes > 0:
		level = zerolog.WarnLevel
	}
	event := log.WithLevel(level).Int("repos", repos)
	if pass.WaitingPrunes > 0 {
		event.Int("prunes_waiting", pass.WaitingPrunes)
	}
	event.Msg(message)
}
