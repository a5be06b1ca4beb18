package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	gosync "sync"
	"syscall"
	"time"
)

// grace is how long after a signal the work may take to stop: an orchestrator
// commonly kills after 30 s, and the promise is 10.
const grace = 9 * time.Second

// longGrace is the same while the Lease is released and writing it takes long. The
// manifests in deploy/ grant 15 s, and to be killed meanwhile does no harm.
const longGrace = 14 * time.Second

// sameSignal is how close together two signals are one: timeout(1) and some init
// programs send to the process and then to its group, which it is in.
const sameSignal = 300 * time.Millisecond

// untilStopped does the work under a context that the first SIGTERM or SIGINT
// ends. It waits for the work to return, but not for longer than grace, or longGrace if
// it is busy with what takes long then, and not after a second signal.
func untilStopped(work func(context.Context) int, takesLong func() bool) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
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
			fmt.Fprintf(os.Stderr, "kubesync: not stopped within %s, exiting\n", patience)
			return exitOK
		}
	}
}

// beside runs parts of a mode in the background. The returned function ends their context
// and waits until all have returned.
func beside(ctx context.Context, parts ...func(context.Context)) (join func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all gosync.WaitGroup
	for _, part := range parts {
		all.Go(func() { part(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// onHangUp calls poll whenever the process gets SIGHUP, until ctx ends. Before it is
// called, and after the function that it returns is called, a SIGHUP ends the process: so
// the former is early, and the latter last.
func onHangUp(ctx context.Context, poll func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	join := beside(ctx, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				poll()
			}
		}
	})
	return func() {
		join()
		signal.Stop(signals)
	}
}
