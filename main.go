// Command kubesync makes a Kubernetes cluster what git says. It is configured by
// environment variables; `kubesync help` lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/kubesync/kubesync/apply"
	"github.com/kubesync/kubesync/sync/config"
	"github.com/kubesync/kubesync/sync/status/cli"
	"github.com/kubesync/kubesync/transform"
)

// version is stamped by the build: -ldflags "-X main.version=…".
var version = ""

// Exit statuses.
const (
	exitOK            = 0
	exitNotInSync     = 1 // ONCE: some repo failed, or objects remain parked or failed, or the Lease is held
	exitConfiguration = 2

	exitWouldChange = 1 // DRYRUN=diff with ONCE, as diff has it: something would change
	exitNotPlanned  = 3 // DRYRUN=diff with ONCE: what would be exitNotInSync otherwise
)

// grace is how long after a signal the work may take to stop: an orchestrator
// commonly kills after 30 s, and the promise is 10.
const grace = 9 * time.Second

// longGrace is the same while the Lease is given back where writing it takes long. The
// manifests in deploy/ grant 15 s, and to be killed meanwhile does no harm.
const longGrace = 14 * time.Second

// sameSignal is how close together two signals are one: timeout(1) and some init
// programs send to the process and then to its group, which it is in.
const sameSignal = 300 * time.Millisecond

func main() { os.Exit(run(os.Args)) }

// run does what the arguments say and returns the exit status.
func run(args []string) int {
	if code, ran := transform.ConfinedMain(args); ran {
		return code
	}
	switch {
	case len(args) < 2:
		return daemon()
	case args[1] == "status":
		return showStatus(args[2:])
	case len(args) > 2:
	case args[1] == "version" || args[1] == "--version":
		fmt.Println(buildVersion())
		return exitOK
	case args[1] == "help" || args[1] == "--help" || args[1] == "-h":
		return usage(os.Stdout)
	}
	fmt.Fprintf(os.Stderr, "kubesync: unknown argument %q: \"kubesync help\" tells what there is\n", args[len(args)-1])
	return exitConfiguration
}

// usage prints how kubesync is called, and returns the exit status.
func usage(w io.Writer) int {
	fmt.Fprint(w, "kubesync makes a Kubernetes cluster what git says.\n\n"+
		"usage:\n  kubesync          sync as the environment variables below say, until stopped\n"+
		"  kubesync status   print how the repos are; status 0: healthy, 1: not (kubesync status --help)\n"+
		"  kubesync version  print the version\n  kubesync help     print this\n\n")
	if err := config.Usage(w); err != nil {
		fmt.Fprintf(os.Stderr, "kubesync: %v\n", err)
		return exitNotInSync
	}
	return exitOK
}

// showStatus prints what a running kubesync tells of itself or, if there is none, what
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
		options.Records = func(ctx context.Context) ([]apply.Record, error) {
			connection, err := settings.Kubernetes.RESTConfig()
			if err != nil {
				return nil, err
			}
			connection.UserAgent = "kubesync/" + buildVersion()
			return apply.Records(ctx, connection, settings.OwnNamespace)
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

// daemon runs kubesync as the environment says.
func daemon() int {
	saveMemory()
	noticeSilence()
	protection := transform.ProtectProcess()
	settings, err := config.Load()
	if err != nil {
		return misconfigured("kubesync", err)
	}
	log := newLogger(settings)
	routeForeignLogs(log)
	if protection != nil {
		log.Warn().Err(protection).Msg("not protected")
	}
	for _, warning := range settings.Warnings {
		log.Warn().Msg(warning)
	}
	wired, err := wire(settings, log)
	if err != nil {
		return misconfigured("kubesync", err)
	}
	return untilStopped(wired.run, wired.releasing)
}

// saveMemory has garbage collected sooner than Go would by itself: a daemon works
// for moments and holds its memory all day. GOGC, where it is set, says otherwise.
func saveMemory() {
	const percent = 50
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(percent)
	}
}

// silenceVariables have connections to the API server that went silent noticed within
// 5 s, for which client-go takes 45 by itself: until then the status would claim to
// know what it does not.
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
	fmt.Fprintf(os.Stderr, "%s cannot start:\n", what)
	var mistakes config.Errors
	if !errors.As(err, &mistakes) {
		fmt.Fprintf(os.Stderr, "  %v\n", err)
	}
	for _, mistake := range mistakes {
		fmt.Fprintf(os.Stderr, "  %s\n", mistake)
	}
	return exitConfiguration
}

// untilStopped does the work under a context that the first SIGTERM or SIGINT
// ends. It waits for the work to return, but not for longer than grace, or longGrace if
// it is busy with what takes long then, and not after a second signal.
func untilStopped(work func(context.Context) int, takesLong func() bool) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan int, 1)
	go func() { done <- work(ctx) }()
	select {
	case code := <-done:
		return code
	case received := <-signals:
		cancel(fmt.Errorf("stopped by signal: %s", received))
	}
	first, patience := time.Now(), grace
	late := time.After(grace)
	for {
		select {
		case code := <-done:
			return code
		case <-signals:
			if time.Since(first) < sameSignal {
				continue
			}
			fmt.Fprintln(os.Stderr, "kubesync: second signal, stopping at once")
			return exitNotInSync
		case <-late:
			if patience == grace && takesLong() {
				patience, late = longGrace, time.After(longGrace-grace)
				continue
			}
			fmt.Fprintf(os.Stderr, "kubesync: not everything stopped within %s, leaving it\n", patience)
			return exitOK
		}
	}
}
