// Command kubesync keeps a Kubernetes cluster in sync with git. It is configured by
// environment variables; `kubesync help` lists them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/rs/zerolog"

	"github.com/kubesync/kubesync/apply/parent"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status/cli"
	"github.com/kubesync/kubesync/transform"
	"github.com/kubesync/kubesync/transform/confine"
)

// version is stamped by the build: -ldflags "-X main.version=…".
var version = ""

// Exit statuses.
const (
	exitOK            = 0
	exitNotInSync     = 1 // ONCE: some repo failed, or objects remain pending or failed, or the Lease is held
	exitConfiguration = 2

	exitWouldChange = 1 // DRYRUN=diff with ONCE, as diff has it: something would change
	exitNotPlanned  = 3 // DRYRUN=diff with ONCE: what would be exitNotInSync otherwise
)

func main() { os.Exit(run(os.Args)) }

// run does what the arguments say and returns the exit status.
func run(args []string) int {
	if code, ran := confine.Main(args, transform.Helpers()); ran {
		return code
	}
	switch {
	case len(args) < 2:
		return start()
	case args[1] == "status":
		return showStatus(args[2:])
	case len(args) > 2:
	case args[1] == "version" || args[1] == "--version":
		fmt.Println(buildVersion())
		return exitOK
	case args[1] == "help" || args[1] == "--help" || args[1] == "-h":
		return usage(os.Stdout)
	}
	fmt.Fprintf(os.Stderr, "kubesync: unknown argument %q: see \"kubesync help\"\n", args[len(args)-1])
	return exitConfiguration
}

// usage prints how kubesync is called, and returns the exit status.
func usage(w io.Writer) int {
	fmt.Fprint(w, "kubesync keeps a Kubernetes cluster in sync with git.\n\n"+
		"usage:\n  kubesync          sync as configured by the environment variables below, until stopped\n"+
		"  kubesync status   print the state of the repos; status 0: healthy, 1: not (kubesync status --help)\n"+
		"  kubesync version  print the version\n  kubesync help     print this\n\n")
	if err := config.Usage(w); err != nil {
		fmt.Fprintf(os.Stderr, "kubesync: %v\n", err)
		return exitNotInSync
	}
	return exitOK
}

// showStatus prints the status that a running kubesync serves or, if none answers, what
// it has recorded in the cluster.
func showStatus(args []string) int {
	settings, err := config.LoadClient()
	if err != nil {
		return misconfigured("kubesync status", err)
	}
	options := cli.Options{
		Listen:   settings.Listen,
		CertFile: settings.ListenTLS.CertFile,
		Out:      settings.Redactor.Writer(os.Stdout),
		Err:      settings.Redactor.Writer(os.Stderr),
	}
	if settings.ListenToken.Given() {
		options.Token = settings.ListenToken.Read
	}
	if settings.Kubernetes.Configured() {
		options.Records = func(ctx context.Context) ([]parent.Record, error) {
			connection, err := settings.Kubernetes.RESTConfig()
			if err != nil {
				return nil, err
			}
			connection.UserAgent = "kubesync/" + buildVersion()
			return parent.Records(ctx, connection, settings.OwnNamespace)
		}
	}
	return untilStopped(func(ctx context.Context) int { return cli.Run(ctx, args, options) }, func() bool { return false })
}

// buildVersion is the stamped version, else what the Go toolchain recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// mode is a way to run kubesync.
type mode interface {
	// Run works until ctx ends or nothing is left to do, and returns the exit status. When
	// it returns, every goroutine that it started has ended.
	Run(ctx context.Context) int
	// Releasing reports whether Run is releasing its Lease, which may take long.
	Releasing() bool
}

// newMode builds the mode that the configuration asks for.
func newMode(settings config.Config, log zerolog.Logger) (mode, error) {
	switch {
	case settings.DryRun:
		return newDryRun(settings, log)
	case settings.Once:
		return newOnce(settings, log)
	default:
		return newDaemon(settings, log)
	}
}

// start runs kubesync as the environment says.
func start() int {
	saveMemory()
	noticeSilence()
	protection := confine.ProtectProcess()
	settings, err := config.Load()
	if err != nil {
		return misconfigured("kubesync", err)
	}
	if !settings.Debug {
		forgetProfile()
	}
	log := newLogger(settings)
	routeForeignLogs(log)
	if protection != nil {
		log.Warn().Err(protection).Msg("not protected")
	}
	for _, warning := range settings.Warnings {
		log.Warn().Msg(warning)
	}
	chosen, err := newMode(settings, log)
	if err != nil {
		return misconfigured("kubesync", err)
	}
	log.Info().Str("version", buildVersion()).Bool("dryrun", settings.DryRun).Bool("once", settings.Once).Msg("starting kubesync")
	return untilStopped(chosen.Run, chosen.Releasing)
}

// silenceVariables have connections to the API server that went silent noticed within
// 5 s, for which client-go takes 45 by itself: until then the status would be out of date.
func silenceVariables() map[string]string {
	return map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "3", "HTTP2_PING_TIMEOUT_SECONDS": "2"}
}

// noticeSilence sets them, unless the environment does.
func noticeSilence() {
	for name, seconds := range silenceVariables() {
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, seconds) // such a name and value cannot be wrong
		}
	}
}

// misconfigured prints all that is wrong with the configuration.
func misconfigured(what string, err error) int {
	fmt.Fprintf(os.Stderr, "%s cannot start:\n  %s\n", what, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	return exitConfiguration
}
