// Command gitserver serves the bare repositories of a directory over HTTP until
// it is interrupted. It prints its URL on the first line of stdout; the demo
// starts it in the background and reads that line.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubesync/kubesync/test/lab/gitserver"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gitserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "Usage: gitserver [flags] DIR\n\nServes DIR/NAME.git at URL/NAME.git until interrupted and prints URL.")
		flags.PrintDefaults()
	}
	https := flags.Bool("tls", false, "serve https; the CA's certificate is written to DIR/ca.crt")
	user := flags.String("user", "", "let in only this user, whose password is in the environment variable GITSERVER_PASSWORD")
	address := flags.String("address", "", "listen at this host:port (default a free port of 127.0.0.1)")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	options := []gitserver.Option{gitserver.WithDir(flags.Arg(0))}
	if *https {
		options = append(options, gitserver.WithTLS)
	}
	if *user != "" {
		options = append(options, gitserver.WithBasicAuth(*user, os.Getenv("GITSERVER_PASSWORD")))
	}
	if *address != "" {
		options = append(options, gitserver.WithAddress(*address))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	server, err := gitserver.Launch(options...)
	if err != nil {
		fmt.Fprintln(stderr, "gitserver:", err)
		return 1
	}
	fmt.Fprintln(stdout, server.Base())
	<-ctx.Done()
	if err := server.Close(); err != nil {
		fmt.Fprintln(stderr, "gitserver:", err)
		return 1
	}
	return 0
}
