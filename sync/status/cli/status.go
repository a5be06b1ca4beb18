package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/sync/status"
	"github.com/kubesync/kubesync/sync/status/server"
)

// Exit statuses.
const (
	Healthy   = 0
	Unhealthy = 1
	Misused   = 2
)

// Options say whom to ask, and where to print.
type Options struct {
	Listen   server.Listen
	Token    func() (string, error) // that Listen asks for; nil: it asks for none
	CertFile string                 // of the certificate that Listen shows; empty: it speaks no TLS
	// Records returns what the parents in the cluster say; nil if no cluster is known.
	Records  func(context.Context) ([]parent.Record, error)
	Out, Err io.Writer
}

// Usage says how the command is called.
const Usage = "kubesync status [-o table|wide|json] [REPO...]"

// Run prints how the repos are and returns the exit status.
func Run(ctx context.Context, args []string, options Options) int {
	flags := pflag.NewFlagSet("status", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	format := flags.StringP("output", "o", "table", "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(options.Out, "usage: %s\n\nPrints how the repos are: asks the kubesync at LISTEN or, if none answers there, the cluster.\n"+
			"Exit status 0: all are healthy, 1: not, 2: a mistake in the call or the configuration.\n", Usage)
		return Healthy
	case err != nil:
		return misused(options, err)
	case !slices.Contains([]string{"table", "wide", "json"}, *format):
		return misused(options, fmt.Errorf("-o %q: there is table, wide and json", *format))
	}
	overview, err := ask(ctx, options)
	if err != nil {
		fmt.Fprintf(options.Err, "kubesync status: %v\n", err)
		return Unhealthy
	}
	missing := choose(&overview, flags.Args())
	if err := show(options.Out, *format, overview); err != nil {
		fmt.Fprintf(options.Err, "kubesync status: %v\n", err)
		return Unhealthy
	}
	for _, name := range missing {
		fmt.Fprintf(options.Err, "kubesync status: there is no repo %q\n", name)
	}
	if len(missing) > 0 || !overview.Healthy {
		return Unhealthy
	}
	return Healthy
}

// misused says how to call it.
func misused(options Options, err error) int {
	fmt.Fprintf(options.Err, "kubesync status: %v\nusage: %s\n", err, Usage)
	return Misused
}

// choose leaves only the repos in an overview that are named, if any are, and returns
// the names that are not there.
func choose(overview *status.Overview, names []string) (missing []string) {
	if len(names) == 0 {
		return nil
	}
	named := func(r status.Repo) bool { return slices.Contains(names, r.Name) }
	for _, name := range names {
		if !slices.ContainsFunc(overview.Repos, func(r status.Repo) bool { return r.Name == name }) {
			missing = append(missing, name)
		}
	}
	overview.Repos = slices.DeleteFunc(overview.Repos, func(r status.Repo) bool { return !named(r) })
	overview.Healthy = !slices.ContainsFunc(overview.Repos, func(r status.Repo) bool { return !r.Healthy })
	return missing
}

// show prints an overview.
func show(to io.Writer, format string, overview status.Overview) error {
	if format != "json" {
		return table(to, format == "wide", overview)
	}
	body, err := json.MarshalIndent(overview, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", body)
	return err
}

// ask finds out how the repos are.
func ask(ctx context.Context, options Options) (status.Overview, error) {
	var unreachable error
	if options.Listen.Off() {
		unreachable = errors.New("LISTEN is off")
	} else {
		overview, err := request(ctx, options)
		var unanswered *unanswered
		if !errors.As(err, &unanswered) {
			return overview, err
		}
		unreachable = err
	}
	if options.Records == nil {
		return status.Overview{}, fmt.Errorf("%w, and no cluster is configured that could be asked instead", unreachable)
	}
	records, err := options.Records(ctx)
	if err != nil {
		return status.Overview{}, fmt.Errorf("%w; nor does the cluster have a record: %w", unreachable, err)
	}
	fmt.Fprintf(options.Err, "%s: this is what the last syncs recorded in the cluster\n", strings.TrimSpace(unreachable.Error()))
	return recorded(records), nil
}
